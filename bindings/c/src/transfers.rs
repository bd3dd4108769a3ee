//! The transfers of all agents: a slab of atomic words.
//!
//! A transfer is one thread's at a time, as the header says. Where two use one against that rule, its numbers may be
//! mixed up; nothing worse, since every word of them is a number and is looked at when it is used.
//!
//! Each thread keeps a few free places, so that beginning and releasing a transfer takes neither lock nor atomic
//! exchange. The list that the threads share is never waited for: a child forked while another thread of its parent
//! held it takes new places instead.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;

use telering::raw::WORDS;

use crate::handle::{self, INDEX_COUNT, Kind};

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
    /// The handle of the transfer that is here, or the one before it with the free mark.
    handle: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// Marks the handle of a free place: no handle has a kind with this bit.
const FREE: u64 = 1 << 63;

impl Place {
    #[inline(always)]
    pub(crate) fn words(&self) -> [u64; WORDS] {
        std::array::from_fn(|word| self.words[word].load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn set_words(&self, words: [u64; WORDS]) {
        for (place, word) in self.words.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
    }
}

static PLACES: [OnceLock<Box<[Place]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
static CHUNKS_MADE: AtomicUsize = AtomicUsize::new(0);
static SHARED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The free places of a thread.
struct Own {
    count: Cell<usize>,
    places: [Cell<u32>; KEPT],
    /// The thread ends: nothing is kept any more.
    over: Cell<bool>,
}

/// Hands a thread's free places on when it ends.
struct Heir;

thread_local! {
    static OWN: Own = const { Own { count: Cell::new(0), places: [const { Cell::new(0) }; KEPT], over: Cell::new(false) } };
    static HEIR: Heir = const { Heir };
}

impl Drop for Heir {
    fn drop(&mut self) {
        OWN.with(|own| {
            own.over.set(true);
            give(own, own.count.get());
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
    place(handle::index(handle)).filter(|place| place.handle.load(Ordering::Acquire) == handle)
}

/// A place for a new transfer and its handle; `None` when there are too many.
#[inline(always)]
pub(crate) fn take(words: [u64; WORDS]) -> Option<u64> {
    OWN.with(|own| {
        let mut count = own.count.get();
        if count == 0 {
            count = refill(own)?;
        }
        own.count.set(count - 1);
        let place = place(own.places[count - 1].get() as usize)?;
        let handle = handle::next(place.handle.load(Ordering::Relaxed) & !FREE);
        place.set_words(words);
        place.handle.store(handle, Ordering::Release);
        Some(handle)
    })
}

/// Frees a transfer's place; `None` if somebody did before.
#[inline(always)]
pub(crate) fn free(handle: u64) -> Option<()> {
    let place = find(handle)?;
    // Of two threads that free it against the rules one gets the place.
    if place.handle.compare_exchange(handle, handle | FREE, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return None;
    }
    let index = handle::index(handle) as u32;
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
        if count == 0 {
            // From here on the thread has something to leave behind.
            let _ = HEIR.try_with(|_| ());
        }
    });
    Some(())
}

fn shared() -> Option<MutexGuard<'static, Vec<u32>>> {
    for _ in 0..TRIES {
        match SHARED.try_lock() {
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
    let mut got = Vec::new();
    if let Some(mut shared) = shared() {
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
            handle: AtomicU64::new(handle::first(Kind::Transfer, index) | FREE),
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
    use super::*;

    #[test]
    fn places_are_used_again_under_new_handles_and_by_other_threads() {
        let first: Vec<u64> = (0..100).map(|number| take([number; WORDS]).expect("room")).collect();
        for (number, &handle) in (0..).zip(&first) {
            assert_eq!(find(handle).expect("there").words(), [number; WORDS]);
            assert_eq!(free(handle), Some(()));
            assert!(find(handle).is_none() && free(handle).is_none(), "freed once");
        }
        let before = CHUNKS_MADE.load(Ordering::Relaxed);
        for _ in 0..10 {
            // Each thread begins some, another ends them; both end.
            let handles: Vec<u64> =
                thread::spawn(|| (0..500).map(|_| take([0; WORDS]).expect("room")).collect()).join().expect("no panic");
            let distinct: std::collections::BTreeSet<_> = handles.iter().map(|&one| handle::index(one)).collect();
            assert_eq!(distinct.len(), 500, "no place is given twice");
            assert!(handles.iter().all(|handle| !first.contains(handle)), "old handles stay invalid");
            thread::spawn(move || handles.into_iter().for_each(|handle| assert!(free(handle).is_some())))
                .join()
                .expect("no panic");
        }
        for _ in 0..300 {
            thread::spawn(|| free(take([0; WORDS]).expect("room"))).join().expect("no panic");
        }
        assert!(CHUNKS_MADE.load(Ordering::Relaxed) <= before + 2, "threads that ended left their places behind");
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
