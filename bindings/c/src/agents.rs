//! The agents and backends that have handles.
//!
//! What recording needs of an agent stands beside its handle as plain numbers. The agent itself is behind a lock that
//! is held for the time of a copy of its pointer. In a forked child no lock of the parent's agents is ever touched.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use telering::raw::Key;
use telering::{Backend, Telemetry};

use crate::Status;
use crate::exports::warning::Hearer;
use crate::handle::{self, Kind};

/// Agents that can be open at once.
const AGENTS: usize = 1024;
/// Backends that can be open at once.
const BACKENDS: usize = 4096;

/// An agent with what belongs to its handle.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) telemetry: Telemetry,
    pub(crate) hearer: Option<Arc<Hearer>>,
}

/// One place.
struct Place<T> {
    taken: AtomicBool,
    /// The object's handle; that of the last one with the free mark while there is none.
    handle: AtomicU64,
    id: AtomicU64,
    shape: AtomicU64,
    object: Mutex<Option<T>>,
}

const FREE: u64 = 1 << 63;

impl<T: Clone> Place<T> {
    const fn new() -> Place<T> {
        Place {
            taken: AtomicBool::new(false),
            handle: AtomicU64::new(0),
            id: AtomicU64::new(0),
            shape: AtomicU64::new(0),
            object: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.object.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<T>>> {
        match self.object.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline(always)]
    fn has(&self, handle: u64) -> bool {
        self.handle.load(Ordering::Acquire) == handle
    }

    /// Two numbers that may belong to two agents, if the handle is closed at this very moment: harmless.
    #[inline(always)]
    fn key(&self) -> Key {
        Key { id: self.id.load(Ordering::Relaxed), shape: self.shape.load(Ordering::Relaxed) }
    }
}

struct Table<T: 'static> {
    kind: Kind,
    places: &'static [Place<T>],
}

impl<T: Clone> Table<T> {
    #[inline(always)]
    fn place(&self, handle: u64) -> Result<&'static Place<T>, Status> {
        let place = self.places.get(handle::index(handle)).filter(|place| place.has(handle));
        // A place that was never used has the number 0.
        place.filter(|_| handle::is(handle, self.kind)).ok_or(Status::INVALID_HANDLE)
    }

    /// The same, for an object that belongs to this process.
    #[inline(always)]
    fn own_place(&self, handle: u64) -> Result<(&'static Place<T>, Key), Status> {
        let place = self.place(handle)?;
        let key = place.key();
        if key.is_own() { Ok((place, key)) } else { Err(Status::FORKED) }
    }

    fn add(&self, object: T, key: Key) -> Result<u64, Status> {
        for (index, place) in self.places.iter().enumerate() {
            if place.taken.load(Ordering::Relaxed) || place.taken.swap(true, Ordering::AcqRel) {
                continue;
            }
            // Somebody may still look for the last object here. In a forked child that may be a thread of the parent,
            // which is not there to let go: never waited for.
            let Some(mut empty) = place.try_lock() else {
                place.taken.store(false, Ordering::Release);
                continue;
            };
            *empty = Some(object);
            drop(empty);
            place.id.store(key.id, Ordering::Relaxed);
            place.shape.store(key.shape, Ordering::Relaxed);
            let handle = match place.handle.load(Ordering::Relaxed) {
                0 => handle::first(self.kind, index),
                last => handle::next(last & !FREE),
            };
            place.handle.store(handle, Ordering::Release);
            return Ok(handle);
        }
        Err(Status::LIMIT)
    }

    fn get(&self, handle: u64) -> Result<T, Status> {
        let (place, _) = self.own_place(handle)?;
        let object = place.lock();
        // Looked at again: it may have been closed, and its place used again, before the lock was there.
        object.clone().filter(|_| place.has(handle)).ok_or(Status::INVALID_HANDLE)
    }

    fn remove(&self, handle: u64) -> Result<T, Status> {
        let (place, _) = self.own_place(handle)?;
        let removed = place.handle.compare_exchange(handle, handle | FREE, Ordering::AcqRel, Ordering::Relaxed);
        if removed.is_err() {
            return Err(Status::INVALID_HANDLE);
        }
        let object = place.lock().take().ok_or(Status::INVALID_HANDLE);
        place.taken.store(false, Ordering::Release);
        object
    }
}

static AGENT_PLACES: [Place<Open>; AGENTS] = [const { Place::new() }; AGENTS];
static BACKEND_PLACES: [Place<Backend>; BACKENDS] = [const { Place::new() }; BACKENDS];
static AGENT_TABLE: Table<Open> = Table { kind: Kind::Agent, places: &AGENT_PLACES };
static BACKEND_TABLE: Table<Backend> = Table { kind: Kind::Backend, places: &BACKEND_PLACES };

pub(crate) fn add(agent: Open) -> Result<u64, Status> {
    let key = Key::of(&agent.telemetry);
    AGENT_TABLE.add(agent, key)
}

/// What recording needs of an agent.
#[inline(always)]
pub(crate) fn key(handle: u64) -> Result<Key, Status> {
    AGENT_TABLE.own_place(handle).map(|(_, key)| key)
}

pub(crate) fn get(handle: u64) -> Result<Telemetry, Status> {
    AGENT_TABLE.get(handle).map(|open| open.telemetry)
}

/// Takes an agent out: nobody finds it any more.
pub(crate) fn remove(handle: u64) -> Result<Open, Status> {
    AGENT_TABLE.remove(handle)
}

pub(crate) fn add_backend(agent: u64) -> Result<u64, Status> {
    let telemetry = get(agent)?;
    BACKEND_TABLE.add(telemetry.backend(), Key::of(&telemetry))
}

pub(crate) fn backend(handle: u64) -> Result<Backend, Status> {
    BACKEND_TABLE.get(handle)
}

pub(crate) fn remove_backend(handle: u64) -> Result<(), Status> {
    BACKEND_TABLE.remove(handle).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_nobody_opens_takes_one_place_and_no_more() {
        static PLACES: [Place<u8>; 3] = [const { Place::new() }; 3];
        let table = Table { kind: Kind::Agent, places: &PLACES };
        let key = || Key { id: 0, shape: 0 };
        // As in a child that was forked while another thread of its parent was here.
        let held = PLACES[0].lock();
        let handles = [table.add(1, key()), table.add(2, key())].map(|added| added.expect("room"));
        assert_eq!(handles.map(handle::index), [1, 2]);
        assert_eq!(table.add(3, key()), Err(Status::LIMIT));
        drop(held);
        assert_eq!(table.add(3, key()).map(handle::index), Ok(0), "free as before");
    }
}
