//! The transfers of all agents: a slab of atomic words.
//!
//! A transfer is one thread's at a time, as the header says. Where two use one against that rule, its numbers may be
//! mixed up; nothing worse, since every word of them is a number and is looked at when it is used.
//!
//! Each thread keeps a few free places, so that beginning a transfer and releasing it on the same thread takes neither
//! lock nor atomic exchange: a place is given out, and taken back, by its keeper alone. Another thread that releases
//! a transfer marks it, and leaves its place in the keeper's inbox. The lists that threads share are never waited
//! for: a child forked while another thread of its parent held one takes new places instead.

mod keepers;
mod ownership;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;

use telering::raw::{WORDS, Words};

use crate::handle::{self, INDEX_COUNT, Kind};
use ownership::{NOBODY, Ownership};

/// What the models of a place's protocol exchange for loom's.
mod sync {
    pub(super) use std::sync::atomic::{AtomicU64, Ordering};

    pub(super) use super::ownership::Fault;

    #[inline(always)]
    pub(super) const fn faulty(_: Fault) -> bool {
        false
    }
}

/// The handle of every transfer of which nothing is wanted.
pub(crate) const OFF: u64 = handle::first(Kind::Transfer, INDEX_COUNT - 1);

/// Places that a thread keeps.
const KEPT: usize = 32;
/// Places that are made at once.
const CHUNK: usize = 1024;
const CHUNKS: usize = INDEX_COUNT / CHUNK - 1;
/// How often the shared list is tried before it is left alone.
const TRIES: usize = 100;

/// One place, of a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Place {
    ownership: Ownership,
    pub(crate) words: Words,
}

static PLACES: [OnceLock<Box<[Place]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
static CHUNKS_MADE: AtomicUsize = AtomicUsize::new(0);
static SHARED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The free places of a thread.
struct Own {
    /// Its number as a keeper: from 1 on; 0 as long as it has none.
    keeper: Cell<u64>,
    count: Cell<usize>,
    places: [Cell<u32>; KEPT],
    /// The thread ends: nothing is kept any more.
    over: Cell<bool>,
}

/// Hands a thread's free places on when it ends.
struct Heir;

thread_local! {
    static OWN: Own = const {
        Own {
            keeper: Cell::new(0),
            count: Cell::new(0),
            places: [const { Cell::new(0) }; KEPT],
            over: Cell::new(false),
        }
    };
    static HEIR: Heir = const { Heir };
}

impl Drop for Heir {
    fn drop(&mut self) {
        OWN.with(|own| {
            own.over.set(true);
            give(own, own.count.get());
            keepers::leave(own);
        });
    }
}

#[inline(always)]
fn place(index: usize) -> Option<&'static Place> {
    PLACES.get(index / CHUNK)?.get()?.get(index % CHUNK)
}

/// The transfer of a handle.
#[inline(always)]
pub(crate) fn find(handle: u64) -> Option<&'static Place> {
    place(handle::index(handle)).filter(|place| place.ownership.is_of(handle))
}

/// A place for a new transfer and its handle; `None` when there are too many.
#[inline(always)]
pub(crate) fn take(words: [u64; WORDS]) -> Option<u64> {
    let (index, keeper) = pop()?;
    let place = place(index as usize)?;
    let handle = place.ownership.next_handle();
    for (word, value) in place.words.iter().zip(words) {
        word.store(value, Ordering::Relaxed);
    }
    place.ownership.give_out(handle, keeper);
    Some(handle)
}

/// Frees the place of a transfer that was [found](find); `None` if somebody did before.
#[inline(always)]
pub(crate) fn free(place: &Place, handle: u64) -> Option<()> {
    let is_done = OWN.with(|own| {
        let (keeper, count) = (own.keeper.get(), own.count.get());
        let Some(room) = own.places.get(count).filter(|_| count > 0) else { return false };
        if !place.ownership.take_back(handle, keeper) {
            return false;
        }
        room.set(handle::index(handle) as u32);
        own.count.set(count + 1);
        true
    });
    if is_done { Some(()) } else { free_otherwise(place, handle) }
}

/// The same where this thread has no places or no room, or is not the keeper.
#[inline(never)]
fn free_otherwise(place: &Place, handle: u64) -> Option<()> {
    let index = handle::index(handle) as u32;
    if place.ownership.take_back(handle, OWN.with(|own| own.keeper.get())) {
        push(index);
        return Some(());
    }
    match place.ownership.release(handle)? {
        NOBODY => push(index),
        keeper => keepers::send(keeper, index),
    }
    Some(())
}

/// One of this thread's free places, and its number as a keeper.
#[inline(always)]
fn pop() -> Option<(u32, u64)> {
    OWN.with(|own| {
        let rest = match own.count.get() {
            0 => refill(own)?,
            count => count,
        } - 1;
        own.count.set(rest);
        Some((own.places.get(rest)?.get(), own.keeper.get()))
    })
}

/// Adds a free place to this thread's.
fn push(index: u32) {
    OWN.with(|own| {
        if own.over.get() {
            if let Some(mut shared) = shared() {
                shared.push(index);
            }
            return;
        }
        if own.count.get() == KEPT {
            give(own, KEPT / 2);
        }
        let count = own.count.get();
        own.places[count].set(index);
        own.count.set(count + 1);
        // From here on the thread has something to leave behind.
        let _ = HEIR.try_with(|_| ());
    });
}

fn shared() -> Option<MutexGuard<'static, Vec<u32>>> {
    try_hard(&SHARED)
}

fn try_hard<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..TRIES {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(std::sync::TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => thread::yield_now(),
        }
    }
    None
}

/// Gives some of a thread's free places to all. If the list can't be had, they are lost for good.
#[cold]
fn give(own: &Own, count: usize) {
    let rest = own.count.get() - count;
    if let Some(mut shared) = shared() {
        shared.extend(own.places[rest..rest + count].iter().map(Cell::get));
    }
    own.count.set(rest);
}

/// Gets a thread some free places; their number.
#[cold]
fn refill(own: &Own) -> Option<usize> {
    // From here on the thread has something to leave behind.
    let lives = HEIR.try_with(|_| ()).is_ok();
    let wanted = if lives { KEPT / 2 } else { 1 };
    if lives && own.keeper.get() == 0 {
        keepers::join(own);
    }
    let mut got = keepers::receive(own);
    let surplus = got.len().saturating_sub(KEPT);
    if let Some(mut shared) = shared() {
        shared.extend(got.drain(..surplus));
    }
    if got.is_empty()
        && let Some(mut shared) = shared()
    {
        let rest = shared.len().saturating_sub(wanted);
        got = shared.split_off(rest);
    }
    if got.is_empty() {
        let chunk = CHUNKS_MADE.fetch_add(1, Ordering::Relaxed);
        let Some(places) = PLACES.get(chunk) else {
            // The counter must not wrap around.
            CHUNKS_MADE.store(CHUNKS, Ordering::Relaxed);
            return None;
        };
        let first = chunk * CHUNK;
        let new = |index| Place {
            ownership: Ownership::free(handle::first(Kind::Transfer, index)),
            words: Default::default(),
        };
        // Nobody else sets this chunk.
        let _ = places.set((first..first + CHUNK).map(new).collect());
        got.extend((first..first + wanted).map(|index| index as u32));
        if let Some(mut shared) = shared() {
            shared.extend((first + wanted..first + CHUNK).rev().map(|index| index as u32));
        }
    }
    for (place, index) in own.places.iter().zip(&got) {
        place.set(*index);
    }
    own.count.set(got.len());
    Some(got.len())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::ownership::FREE;
    use super::*;

    /// The places are all threads', so the tests that count them take turns.
    fn turn() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn words_of(handle: u64) -> [u64; WORDS] {
        find(handle).expect("there").words.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    fn free_found(handle: u64) -> Option<()> {
        free(find(handle)?, handle)
    }

    #[test]
    fn places_are_used_again_under_new_handles_and_by_other_threads() {
        let _turn = turn();
        let first: Vec<u64> = (0..100).map(|number| take([number; WORDS]).expect("room")).collect();
        for (number, &handle) in (0..).zip(&first) {
            assert_eq!(words_of(handle), [number; WORDS]);
            assert_eq!(free_found(handle), Some(()));
            assert!(free_found(handle).is_none(), "freed once");
        }
        let before = CHUNKS_MADE.load(Ordering::Relaxed);
        for _ in 0..10 {
            // Each thread begins some, another ends them; both end.
            let handles: Vec<u64> =
                thread::spawn(|| (0..500).map(|_| take([0; WORDS]).expect("room")).collect()).join().expect("no panic");
            let distinct: std::collections::BTreeSet<_> = handles.iter().map(|&one| handle::index(one)).collect();
            assert_eq!(distinct.len(), 500, "no place is given twice");
            assert!(handles.iter().all(|handle| !first.contains(handle)), "old handles stay invalid");
            thread::spawn(move || handles.into_iter().for_each(|handle| assert!(free_found(handle).is_some())))
                .join()
                .expect("no panic");
        }
        for _ in 0..300 {
            thread::spawn(|| free_found(take([0; WORDS]).expect("room"))).join().expect("no panic");
        }
        assert!(CHUNKS_MADE.load(Ordering::Relaxed) <= before + 2, "threads that ended left their places behind");
    }

    #[test]
    fn a_place_is_given_out_once_whoever_released_it() {
        let _turn = turn();
        // Threads that begin; others release the same transfers at the same time, against the rules.
        const ROUNDS: u64 = 300;
        const EACH: usize = 64;
        let (began, released) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let handles: Vec<u64> = (0..EACH).map(|_| take([7; WORDS]).expect("room")).collect();
                        began.fetch_add(handles.len() as u64, Ordering::Relaxed);
                        let release = || {
                            for &handle in &handles {
                                released.fetch_add(u64::from(free_found(handle).is_some()), Ordering::Relaxed);
                            }
                        };
                        thread::scope(|others| {
                            others.spawn(release);
                            others.spawn(release);
                            release();
                        });
                        assert!(handles.iter().all(|&handle| find(handle).is_none()), "one that was released is gone");
                        // Each place that comes next is one transfer's: its words stay what this thread wrote.
                        let next: Vec<u64> =
                            (0..EACH as u64).map(|number| take([number; WORDS]).expect("room")).collect();
                        let distinct: std::collections::BTreeSet<_> =
                            next.iter().map(|&handle| handle::index(handle)).collect();
                        assert_eq!(distinct.len(), EACH, "no place is given out twice");
                        for (number, &handle) in (0..).zip(&next) {
                            assert_eq!(words_of(handle), [number; WORDS]);
                            assert_eq!(free_found(handle), Some(()));
                        }
                    }
                });
            }
        });
        let (began, released) = (began.into_inner(), released.into_inner());
        assert!(released >= began && released <= 2 * began, "{began} begun, {released} released");
    }

    #[test]
    fn a_thread_that_only_begins_gets_its_places_back() {
        let _turn = turn();
        let before = CHUNKS_MADE.load(Ordering::Relaxed);
        let (sender, receiver) = std::sync::mpsc::sync_channel::<u64>(256);
        thread::scope(|scope| {
            scope.spawn(move || (0..100_000).for_each(|_| sender.send(take([1; WORDS]).expect("room")).expect("sent")));
            scope.spawn(move || receiver.into_iter().for_each(|handle| assert_eq!(free_found(handle), Some(()))));
        });
        assert!(CHUNKS_MADE.load(Ordering::Relaxed) <= before + 2, "places that others released did not come back");
        // As many threads as there are, one after the other: each gets the number of one before it.
        (0..200).for_each(|_| {
            thread::spawn(|| free_found(take([0; WORDS]).expect("room"))).join().expect("no panic");
        });
        assert!(keepers::given() < 200, "threads that ended left their numbers behind");
    }

    #[test]
    fn no_number_is_taken_for_a_transfer() {
        for number in
            [0, 1, FREE, u64::MAX, OFF, handle::first(Kind::Agent, 0), handle::first(Kind::Transfer, 5) | FREE]
        {
            assert!(find(number).is_none(), "{number:x}");
        }
    }
}
