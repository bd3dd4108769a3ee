//! Numbers of an agent, and texts.

use std::ffi::{CStr, c_char};

use telering::Status as Failure;
use telering::core::snapshot::Flow;

use crate::pointer::{copy_text, put};
use crate::{Status, agents, guarded};

/// `telering_counts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Application events recorded.
    pub recorded: u64,
    /// Of those, taken by the exporter.
    pub exported: u64,
    /// Lost, by cause.
    pub lost_staging: u64,
    /// See above.
    pub lost_exporter: u64,
    /// See above.
    pub lost_interrupted: u64,
    /// See above.
    pub lost_backend: u64,
    /// See above.
    pub lost_closing: u64,
}

pub(super) fn counts_of(flow: &Flow) -> Counts {
    Counts {
        recorded: flow.recorded,
        exported: flow.exported,
        lost_staging: flow.lost.staging,
        lost_exporter: flow.lost.exporter,
        lost_interrupted: flow.lost.interrupted,
        lost_backend: flow.lost.backend,
        lost_closing: flow.lost.closing,
    }
}

/// `telering_total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Total {
    /// Sum of all values.
    pub sum: u64,
    /// Number of events.
    pub count: u64,
    /// Value of the last event.
    pub last: u64,
    /// When it completed: Unix microseconds, 0 before the first.
    pub last_us: u64,
}

/// Events recorded, exported and lost. See the header.
///
/// # Safety
/// `counts` is null or a place for the numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_agent_counts(agent: u64, counts: *mut Counts) -> Status {
    // SAFETY: the caller keeps to the header.
    guarded(|| unsafe { put(counts, counts_of(&agents::get(agent)?.counts())) })
}

/// Running totals of one kind of event. See the header.
///
/// # Safety
/// `total` is null or a place for the numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_agent_total(agent: u64, event_type: u32, total: *mut Total) -> Status {
    guarded(|| {
        let snapshot = agents::get(agent)?.snapshot();
        let entry = snapshot.entry(event_type).ok_or(Status::NOT_FOUND)?;
        let numbers = Total { sum: entry.sum, count: entry.count, last: entry.last, last_us: entry.last_us };
        // SAFETY: the caller keeps to the header.
        unsafe { put(total, numbers) }
    })
}

/// Errors of one status. See the header.
///
/// # Safety
/// `count` is null or a place for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_agent_errors(agent: u64, status: i32, count: *mut u64) -> Status {
    guarded(|| {
        let failure = Failure::from_code(status).ok_or(Status::INVALID_PARAM)?;
        let errors = agents::get(agent)?.snapshot().errors;
        // SAFETY: the caller keeps to the header.
        unsafe { put(count, errors[failure.index()]) }
    })
}

/// An agent's numbers for Prometheus. See the header.
///
/// # Safety
/// `buffer` is null or has `capacity` bytes; `length` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_agent_render_prometheus(
    agent: u64,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    guarded(|| {
        let mut page = String::new();
        agents::get(agent)?.render_prometheus(&mut page).map_err(|_| Status::INTERNAL)?;
        // SAFETY: the caller keeps to the header.
        unsafe { copy_text(page.as_bytes(), buffer, capacity, length) }
    })
}

/// The numbers of all agents of the process for Prometheus. See the header.
///
/// # Safety
/// As [`telering_agent_render_prometheus`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_render_prometheus(
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    guarded(|| {
        let mut page = String::new();
        telering::prometheus::render(&mut page).map_err(|_| Status::INTERNAL)?;
        // SAFETY: the caller keeps to the header.
        unsafe { copy_text(page.as_bytes(), buffer, capacity, length) }
    })
}

/// A sentence about a status. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_status_text(status: i32) -> *const c_char {
    Status(status).text().as_ptr()
}

/// The version of this library. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => unreachable!(),
    };
    VERSION.as_ptr()
}
