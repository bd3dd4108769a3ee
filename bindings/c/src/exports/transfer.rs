//! Transfers.

use std::time::{Duration, UNIX_EPOCH};

use telering::raw::{self, Words, is_own, resume, suspend};
use telering::{Operation, Status as Failure, TransferRecord};

use crate::pointer::put;
use crate::transfers::{self, OFF, find};
use crate::{Status, agents, guarded};

/// `telering_transfer_telemetry`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TransferTelemetry {
    /// When it began: Unix microseconds.
    pub start_us: u64,
    /// From the beginning until it was posted.
    pub post_duration_us: u64,
    /// From the beginning to completion.
    pub xfer_duration_us: u64,
    /// Bytes moved.
    pub total_bytes: u64,
    /// Descriptors of the request.
    pub descriptor_count: u64,
}

#[inline(always)]
fn operation_of(operation: u32) -> Result<Operation, Status> {
    match operation {
        0 => Ok(Operation::Write),
        1 => Ok(Operation::Read),
        _ => Err(Status::INVALID_PARAM),
    }
}

/// Begins a transfer. See the header.
///
/// # Safety
/// `transfer` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_transfer_begin(
    agent: u64,
    operation: u32,
    bytes: u64,
    descriptors: u32,
    transfer: *mut u64,
) -> Status {
    guarded(|| {
        // SAFETY: the caller keeps to the header.
        unsafe { put(transfer, 0) }?;
        let operation = operation_of(operation)?;
        let key = agents::key(agent)?;
        let handle = match key.begin(operation, bytes, descriptors) {
            Some(words) => transfers::take(words).ok_or(Status::LIMIT)?,
            None => OFF,
        };
        // SAFETY: the caller keeps to the header.
        unsafe { put(transfer, handle) }
    })
}

/// Changes a transfer.
#[inline(always)]
fn change(handle: u64, change: impl FnOnce(&Words)) -> Status {
    guarded(|| {
        if handle == OFF {
            return Ok(());
        }
        let words = &find(handle).ok_or(Status::INVALID_HANDLE)?.words;
        if !is_own(words) {
            return Err(Status::FORKED);
        }
        change(words);
        Ok(())
    })
}

/// The backend has the request. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_transfer_posted(transfer: u64) -> Status {
    change(transfer, raw::posted)
}

/// The transfer completed. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_transfer_finish(transfer: u64) -> Status {
    change(transfer, raw::finish)
}

/// The transfer failed. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_transfer_fail(transfer: u64, status: i32) -> Status {
    match Failure::from_code(status) {
        Some(failure) => change(transfer, |words| {
            let mut transfer = resume(words);
            transfer.fail(failure);
            suspend(transfer, words);
        }),
        None => Status::INVALID_PARAM,
    }
}

/// What the transfer did. See the header.
///
/// # Safety
/// `telemetry` is null or a place for the numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_transfer_get_telemetry(transfer: u64, telemetry: *mut TransferTelemetry) -> Status {
    guarded(|| {
        if telemetry.is_null() {
            return Err(Status::INVALID_PARAM);
        }
        if transfer == OFF {
            return Err(Status::NO_TELEMETRY);
        }
        let words = &find(transfer).ok_or(Status::INVALID_HANDLE)?.words;
        let runs = raw::is_running(words);
        // One that runs goes on where it is, so that no second one of it is ever dropped.
        let told = if runs { None } else { resume(words).telemetry() };
        let told = told.ok_or(if runs { Status::IN_PROGRESS } else { Status::NO_TELEMETRY })?;
        let us = |duration: Duration| duration.as_micros() as u64;
        let numbers = TransferTelemetry {
            start_us: told.start.duration_since(UNIX_EPOCH).map_or(0, us),
            post_duration_us: us(told.post_duration),
            xfer_duration_us: us(told.xfer_duration),
            total_bytes: told.total_bytes,
            descriptor_count: told.descriptor_count,
        };
        // SAFETY: the caller keeps to the header.
        unsafe { put(telemetry, numbers) }
    })
}

/// Lets go of a transfer. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_transfer_release(transfer: u64) -> Status {
    guarded(|| {
        if transfer == OFF {
            return Ok(());
        }
        let place = find(transfer).ok_or(Status::INVALID_HANDLE)?;
        // A copy, since the place is another's as soon as it is free.
        let running = raw::is_running(&place.words).then(|| resume(&place.words));
        if transfers::free(place, transfer).is_none() {
            // Somebody else let go of it at this moment, and records what is to be recorded.
            running.into_iter().for_each(std::mem::forget);
            return Err(Status::INVALID_HANDLE);
        }
        // One that is still under way records that it was cancelled.
        drop(running);
        Ok(())
    })
}

/// Records a transfer that the caller timed. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_record_transfer(
    agent: u64,
    operation: u32,
    bytes: u64,
    descriptors: u32,
    post_duration_us: u64,
    xfer_duration_us: u64,
) -> Status {
    guarded(|| {
        let record = TransferRecord {
            operation: operation_of(operation)?,
            bytes,
            descriptors,
            post_duration: Duration::from_micros(post_duration_us),
            xfer_duration: Duration::from_micros(xfer_duration_us),
        };
        agents::key(agent)?.record_transfer(&record);
        Ok(())
    })
}
