//! Agents: opened with options, closed with their final counts.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use telering::core::names;
use telering::{Mode, Status as Failure, Telemetry};

use super::numbers::{Counts, counts_of};
use super::warning::{Hearer, OnWarning};
use crate::agents::{self, Open};
use crate::pointer::{copy_text, optional, optional_path, put, text};
use crate::{Status, guarded};

/// A day is as good as for ever, and no time that can't be waited for.
const LONGEST_MS: u64 = 86_400_000;

/// `telering_options`. Zeros are the defaults.
#[derive(Debug)]
#[repr(C)]
pub struct Options {
    /// Bytes of the caller's structure.
    pub size: usize,
    /// 0 not said, 1 on, 2 off.
    pub enable: u32,
    /// Other than 0: time transfers in any case.
    pub capture_telemetry: u32,
    /// Other than 0: the environment counts for nothing.
    pub ignore_environment: u32,
    /// Other than 0: a warning at the start is an error.
    pub strict: u32,
    /// Directory of the telemetry file, or null.
    pub dir: *const c_char,
    /// Name of the exporter, or null.
    pub exporter: *const c_char,
    /// Directory of exporters that are libraries, or null.
    pub plugin_dir: *const c_char,
    /// Patterns of event names, or null.
    pub metrics: *const c_char,
    /// Rank of the process, or null.
    pub rank: *const c_char,
    /// Events in the file, 0 for the default.
    pub buffer_size: u64,
    /// Milliseconds, 0 for the default.
    pub run_interval_ms: u64,
    /// Records of each thread, 0 for the default.
    pub staging_records: u64,
    /// Milliseconds, 0 for the default, the largest number for none.
    pub close_patience_ms: u64,
    /// Permission bits, 0 for the default.
    pub file_mode: u32,
    /// 0.
    pub reserved: u32,
    /// Hears of warnings, or null.
    pub on_warning: Option<OnWarning>,
    /// First argument of `on_warning`.
    pub on_warning_user: *mut c_void,
}

/// Reads the caller's options, which may be those of another version.
///
/// # Safety
/// `options` is null or points to a structure as long as its first field says.
unsafe fn read(options: *const Options) -> Result<Options, Status> {
    const OURS: usize = size_of::<Options>();
    let mut known = MaybeUninit::<Options>::zeroed();
    if !options.is_null() {
        // SAFETY: not null, and the first field is there.
        let size = unsafe { (&raw const (*options).size).read() };
        if size < size_of::<usize>() || size > 4096 {
            return Err(Status::INVALID_PARAM);
        }
        // SAFETY: the caller says that `size` bytes are there, and there is room for as many as we know.
        let later = unsafe {
            known.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(options.cast(), size.min(OURS));
            std::slice::from_raw_parts(options.cast::<u8>().add(size.min(OURS)), size.saturating_sub(OURS))
        };
        if later.iter().any(|&byte| byte != 0) {
            // A wish of a later version that this library can't meet.
            return Err(Status::NOT_SUPPORTED);
        }
    }
    // SAFETY: every field may be zero, and the rest is the caller's own structure.
    Ok(unsafe { known.assume_init() })
}

/// Opens an agent. See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_agent_open(
    name: *const c_char,
    options: *const Options,
    agent: *mut u64,
    message: *mut c_char,
    message_capacity: usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller keeps to the header.
        unsafe {
            put(agent, 0)?;
            if !message.is_null() && message_capacity > 0 {
                message.write(0);
            }
            let (name, options) = (text(name)?, read(options)?);
            let hearer = options.on_warning.map(|hear| Arc::new(Hearer::new(hear, options.on_warning_user)));
            let mut builder = Telemetry::builder(name)
                .capture_telemetry(options.capture_telemetry != 0)
                .ignore_environment(options.ignore_environment != 0)
                .strict(options.strict != 0);
            builder = match options.enable {
                0 => builder,
                1 => builder.enable(true),
                2 => builder.enable(false),
                _ => return Err(Status::INVALID_PARAM),
            };
            if let Some(dir) = optional_path(options.dir) {
                builder = builder.dir(dir);
            }
            if let Some(exporter) = optional(options.exporter)? {
                builder = builder.exporter_name(exporter);
            }
            if let Some(dir) = optional_path(options.plugin_dir) {
                builder = builder.plugin_dir(dir);
            }
            if let Some(metrics) = optional(options.metrics)? {
                builder = builder.metrics(metrics);
            }
            if let Some(rank) = optional(options.rank)? {
                builder = builder.rank(rank);
            }
            if options.buffer_size != 0 {
                builder = builder.buffer_size(options.buffer_size);
            }
            if options.run_interval_ms != 0 {
                builder = builder.run_interval(Duration::from_millis(options.run_interval_ms));
            }
            if options.staging_records != 0 {
                builder = builder.staging_records(options.staging_records as usize);
            }
            match options.close_patience_ms {
                0 => {}
                u64::MAX => builder = builder.close_patience(Duration::ZERO),
                patience => builder = builder.close_patience(Duration::from_millis(patience.min(LONGEST_MS))),
            }
            if options.file_mode != 0 {
                builder = builder.file_mode(options.file_mode);
            }
            if let Some(hearer) = &hearer {
                let hearer = Arc::clone(hearer);
                builder = builder.on_warning(move |warning| hearer.tell(warning));
            }
            let telemetry = match builder.try_build() {
                Ok(telemetry) => telemetry,
                Err(error) => {
                    if !message.is_null() {
                        let _ = copy_text(error.to_string().as_bytes(), message, message_capacity, &mut 0);
                    }
                    hearer.iter().for_each(|hearer| hearer.stop());
                    return Err(Status::NOT_STARTED);
                }
            };
            let opened = agents::add(Open { telemetry, hearer: hearer.clone() });
            if opened.is_err() {
                hearer.iter().for_each(|hearer| hearer.stop());
            }
            put(agent, opened?)
        }
    })
}

/// Closes an agent. See the header.
///
/// # Safety
/// As [`telering_agent_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_agent_close(agent: u64, counts: *mut Counts) -> Status {
    guarded(|| {
        let open = agents::remove(agent)?;
        let flow = open.telemetry.close();
        open.hearer.iter().for_each(|hearer| hearer.stop());
        if !counts.is_null() {
            // SAFETY: the caller keeps to the header.
            unsafe { put(counts, counts_of(&flow)) }?;
        }
        Ok(())
    })
}

/// Exports what was recorded so far. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_agent_flush(agent: u64, patience_ms: u64) -> Status {
    guarded(|| {
        let patience = Duration::from_millis(patience_ms.min(LONGEST_MS));
        if agents::get(agent)?.flush_now(patience) { Ok(()) } else { Err(Status::TIMEOUT) }
    })
}

/// How much the agent does. See the header.
///
/// # Safety
/// As [`telering_agent_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_agent_mode(agent: u64, mode: *mut u32) -> Status {
    guarded(|| {
        let number = match agents::get(agent)?.mode() {
            Mode::Off => 0,
            Mode::Captured => 1,
            _ => 2,
        };
        // SAFETY: the caller keeps to the header.
        unsafe { put(mode, number) }
    })
}

/// The telemetry file. See the header.
///
/// # Safety
/// As [`telering_agent_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_agent_path(
    agent: u64,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    guarded(|| {
        let path = agents::get(agent)?.path().ok_or(Status::NOT_FOUND)?;
        // SAFETY: the caller keeps to the header.
        unsafe { copy_text(path.as_os_str().as_encoded_bytes(), buffer, capacity, length) }
    })
}

fn single(agent: u64, id: u32, value: u64) -> Status {
    guarded(|| {
        agents::key(agent)?.single(id, value);
        Ok(())
    })
}

/// Memory was registered. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_memory_registered(agent: u64, bytes: u64) -> Status {
    single(agent, names::MEMORY_REGISTERED, bytes)
}

/// Memory was deregistered. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_memory_deregistered(agent: u64, bytes: u64) -> Status {
    single(agent, names::MEMORY_DEREGISTERED, bytes)
}

/// Metadata went out. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_metadata_sent(agent: u64, bytes: u64) -> Status {
    single(agent, names::METADATA_SENT, bytes)
}

/// Metadata came in. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_metadata_received(agent: u64, bytes: u64) -> Status {
    single(agent, names::METADATA_RECEIVED, bytes)
}

/// A connection came up. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_connected(agent: u64) -> Status {
    single(agent, names::CONNECTED, 1)
}

/// A connection went away. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_disconnected(agent: u64) -> Status {
    single(agent, names::DISCONNECTED, 1)
}

/// An operation failed. See the header.
#[unsafe(no_mangle)]
pub extern "C" fn telering_error(agent: u64, status: i32) -> Status {
    guarded(|| {
        let failure = Failure::from_code(status).ok_or(Status::INVALID_PARAM)?;
        agents::key(agent)?.error(failure);
        Ok(())
    })
}

/// An event of the application. See the header.
///
/// # Safety
/// As [`telering_agent_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_event(agent: u64, name: *const c_char, value: u64) -> Status {
    guarded(|| {
        // SAFETY: the caller keeps to the header.
        let name = unsafe { text(name) }?;
        agents::get(agent)?.event(name, value);
        Ok(())
    })
}
