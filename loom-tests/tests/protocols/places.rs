//! The C library's places of transfers: given out and taken back once, whoever releases the transfer. The protocol is the
//! library's own file, with loom's atomics in the place of the standard library's.

use std::cell::Cell;
use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;
use telering_core::sync::{AtomicU64, Ordering};

use crate::common::{check, check_bounded, must_fail_with};

#[path = "../../../bindings/c/src/handle.rs"]
mod handle;
#[path = "../../../bindings/c/src/transfers/ownership.rs"]
mod ownership;

mod sync {
    pub(super) use telering_core::sync::{AtomicU64, Ordering};

    use super::ownership::Fault;

    pub(super) fn faulty(fault: Fault) -> bool {
        super::PLANTED.get() == Some(fault)
    }
}

use ownership::{Fault, NOBODY, Ownership};

thread_local! {
    // loom runs all threads of a model on the thread of the test.
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
}

const KEEPER: u64 = 1;
/// What the other thread adds to the words of the transfer that it holds.
const CHANGED: u64 = 10;

/// A place, its transfer's words, and the keeper's inbox.
struct Scene {
    place: Ownership,
    word: AtomicU64,
    inbox: Mutex<u32>,
}

impl Scene {
    fn new() -> Arc<Scene> {
        let place = Ownership::free(handle::first(handle::Kind::Transfer, 0));
        Arc::new(Scene { place, word: AtomicU64::new(0), inbox: Mutex::new(0) })
    }

    /// Gives the place out to a transfer with this word.
    fn give_out(&self, word: u64, keeper: u64) -> u64 {
        let handle = self.place.next_handle();
        self.word.store(word, Ordering::Relaxed);
        self.place.give_out(handle, keeper);
        handle
    }

    /// What another thread does: it finds a transfer, changes it, releases it, and tells the keeper.
    fn release_by_another(&self, handle: u64) -> Option<u64> {
        if !self.place.is_of(handle) {
            return None;
        }
        self.word.store(self.word.load(Ordering::Relaxed) + CHANGED, Ordering::Relaxed);
        let keeper = self.place.release(handle)?;
        if keeper != NOBODY {
            *self.inbox.lock().expect("no panic") += 1;
        }
        Some(keeper)
    }

    /// Empties the inbox; how often the keeper got the place.
    fn receive(&self) -> u32 {
        let sent = std::mem::take(&mut *self.inbox.lock().expect("no panic"));
        (0..sent).map(|_| u32::from(self.place.receive(KEEPER))).sum()
    }
}

/// A transfer is released by another thread, as the rules allow.
fn handed_over() {
    check(|| {
        let scene = Scene::new();
        let first = scene.give_out(1, KEEPER);
        let other = thread::spawn({
            let scene = scene.clone();
            move || scene.release_by_another(first)
        });
        // If it has come by now, the place goes on.
        if scene.receive() == 1 {
            promise!(scene.word.load(Ordering::Relaxed) == 1 + CHANGED, "the place came before what was done to it");
            let second = scene.give_out(2, KEEPER);
            promise!(scene.place.is_of(second) && !scene.place.is_of(first), "the new transfer is not found");
        }
        let released = other.join().expect("the other thread only releases");
        promise!(released == Some(KEEPER), "it was not released: {released:?}");
        promise!(!scene.place.is_of(first), "one that was released is found");
    });
}

/// `OTHERS` threads release one transfer together, against the rules, and so does the keeper; it goes on with the place.
fn released_together<const OTHERS: usize>() {
    let scene = Scene::new();
    let first = scene.give_out(1, KEEPER);
    let others = [(); OTHERS].map(|()| {
        let scene = scene.clone();
        thread::spawn(move || scene.release_by_another(first))
    });
    let mut got = u32::from(scene.place.is_of(first) && scene.place.take_back(first, KEEPER));
    got += scene.receive();
    let second = (got > 0).then(|| scene.give_out(2, KEEPER));
    let released = others.map(|other| other.join().expect("the others only release"));
    promise!(released.iter().flatten().count() <= 1, "two threads released one transfer");
    got += scene.receive();
    promise!(got == 1, "the keeper got the place {got} times");
    if let Some(second) = second {
        promise!(scene.place.is_of(second), "a transfer was released by the handle of the one before it");
        promise!(scene.place.take_back(second, KEEPER), "its keeper can't release it");
    }
}

fn released_by_the_keeper_and_another() {
    check(released_together::<1>);
}

/// In every order it would take too long.
fn released_by_the_keeper_and_two_others() {
    check_bounded(2, released_together::<2>);
}

/// The same in a place without a keeper: whoever releases the transfer has it.
fn released_together_without_a_keeper() {
    check(|| {
        let scene = Scene::new();
        let first = scene.give_out(1, NOBODY);
        let others = [(); 2].map(|()| {
            let scene = scene.clone();
            thread::spawn(move || scene.release_by_another(first))
        });
        let taken = scene.place.take_back(first, NOBODY);
        promise!(!taken, "a thread without a number took it for its own");
        let released = others.map(|other| other.join().expect("the others only release"));
        promise!(released.iter().flatten().count() == 1, "released by {released:?}");
        promise!(scene.place.next_handle() != first, "its handle comes again");
    });
}

/// Somebody guesses the handle of the transfer that comes.
fn guessed() {
    check(|| {
        let scene = Scene::new();
        let handle = scene.place.next_handle();
        let other = thread::spawn({
            let scene = scene.clone();
            move || scene.place.is_of(handle).then(|| scene.word.load(Ordering::Relaxed))
        });
        scene.give_out(1, KEEPER);
        let seen = other.join().expect("the other thread only looks");
        promise!(seen.is_none_or(|word| word == 1), "a handle was found before its words: {seen:?}");
    });
}

#[test]
fn what_another_thread_releases_comes_back_to_the_keeper() {
    handed_over();
}

#[test]
fn a_place_is_taken_back_once_whoever_releases_the_transfer() {
    released_by_the_keeper_and_another();
    released_by_the_keeper_and_two_others();
    released_together_without_a_keeper();
}

#[test]
fn whoever_finds_a_handle_finds_its_words() {
    guessed();
}

fn a_model_sees(fault: Fault, model: fn()) {
    must_fail_with(fault, || PLANTED.set(Some(fault)), model);
}

#[test]
fn a_relaxed_store_of_a_handle_is_seen() {
    a_model_sees(Fault::GiveOutRelaxed, guessed);
}

#[test]
fn a_relaxed_look_for_a_handle_is_seen() {
    a_model_sees(Fault::LookRelaxed, guessed);
}

#[test]
fn a_place_that_is_taken_back_twice_is_seen() {
    a_model_sees(Fault::ReceiveTwice, released_by_the_keeper_and_another);
}

#[test]
fn a_release_of_the_next_transfer_is_seen() {
    a_model_sees(Fault::ReleaseWithoutGeneration, released_by_the_keeper_and_another);
}
