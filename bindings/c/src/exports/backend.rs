//! Backends' own events.

use std::ffi::c_char;

use telering::BACKEND_EVENTS_MAX;

use crate::pointer::{put, text};
use crate::{Status, agents, guarded};

/// `telering_backend_event`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BackendEvent {
    /// When it was added: Unix microseconds.
    pub timestamp_us: u64,
    /// Its value.
    pub value: u64,
    /// Its name, with a NUL behind it.
    pub name: [u8; 32],
}

/// Opens a backend of an agent. See the header.
///
/// # Safety
/// `backend` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_backend_open(agent: u64, backend: *mut u64) -> Status {
    guarded(|| {
        // SAFETY: the caller keeps to the header.
        unsafe {
            put(backend, 0)?;
            put(backend, agents::add_backend(agent)?)
        }
    })
}

/// Adds an event. See the header.
///
/// # Safety
/// `name` is null or a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_backend_add_event(backend: u64, name: *const c_char, value: u64) -> Status {
    guarded(|| {
        // SAFETY: the caller keeps to the header.
        let name = unsafe { text(name) }?;
        agents::backend(backend)?.add_event(name, value);
        Ok(())
    })
}

/// Takes events back. See the header.
///
/// # Safety
/// `events` is null or has room for `capacity` events; `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_backend_take_events(
    backend: u64,
    events: *mut BackendEvent,
    capacity: usize,
    count: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller keeps to the header.
        unsafe { put(count, 0) }?;
        if events.is_null() && capacity > 0 {
            return Err(Status::INVALID_PARAM);
        }
        let taken = agents::backend(backend)?.take_events(capacity.min(BACKEND_EVENTS_MAX));
        for (place, event) in taken.iter().enumerate() {
            let event =
                BackendEvent { timestamp_us: event.timestamp_us, value: event.value, name: *event.name.as_bytes() };
            // SAFETY: no more events were taken than there is room for.
            unsafe { events.add(place).write(event) };
        }
        // SAFETY: the caller keeps to the header.
        unsafe { put(count, taken.len()) }
    })
}

/// Closes a backend. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_backend_close(backend: u64) -> Status {
    guarded(|| agents::remove_backend(backend))
}
