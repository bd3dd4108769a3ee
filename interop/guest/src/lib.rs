//! A telering agent behind a few C functions, for a process that real NIXL shares with it.
//!
//! One agent per process. Transfer number n, counted from 0, has values that n fixes, so that a check
//! can tell an event that was recorded from one that was not: see `interop/guest.py`, which computes
//! the same.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use telering::warn::Warning;
use telering::{Builder, Operation, Status, Telemetry, TransferRecord};

/// Records between two looks at the clock of a paced producer: what may come late together.
const PAUSE: Duration = Duration::from_millis(1);

struct Guest {
    telemetry: Telemetry,
    warnings: Arc<Mutex<Vec<String>>>,
}

static GUEST: Mutex<Option<Guest>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the agent `name` with its file in `dir`; everything else comes from the environment. 0 is success.
///
/// # Safety
/// Both are C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_guest_start(name: *const c_char, dir: *const c_char) -> c_int {
    // SAFETY: the caller passes C strings.
    let (name, dir) = unsafe { (CStr::from_ptr(name), CStr::from_ptr(dir)) };
    let (Ok(name), Ok(dir)) = (name.to_str(), dir.to_str()) else { return 1 };
    let guest = start(Telemetry::builder(name).dir(dir));
    if guest.telemetry.path().is_none() {
        eprintln!("interop guest: no telemetry file: {:?}", lock(&guest.warnings));
        return 2;
    }
    *lock(&GUEST) = Some(guest);
    0
}

/// Starts the agent `name`; everything else comes from the environment, and whatever it makes of it is right. 0 is
/// success.
///
/// # Safety
/// The name is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_guest_start_plain(name: *const c_char) -> c_int {
    // SAFETY: the caller passes a C string.
    let Ok(name) = unsafe { CStr::from_ptr(name) }.to_str() else { return 1 };
    *lock(&GUEST) = Some(start(Telemetry::builder(name)));
    0
}

fn start(builder: Builder) -> Guest {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&warnings);
    let hear = move |warning: &Warning| lock(&told).push(format!("{}: {}", warning.kind.as_str(), warning.message));
    Guest { telemetry: builder.on_warning(hear).build(), warnings }
}

fn telemetry() -> Option<Telemetry> {
    lock(&GUEST).as_ref().map(|guest| guest.telemetry.clone())
}

/// Records a transfer that somebody else made and timed.
#[unsafe(no_mangle)]
pub extern "C" fn telering_guest_moved(writes: c_int, bytes: u64, post_us: u64, xfer_us: u64) {
    let Some(telemetry) = telemetry() else { return };
    telemetry.record_transfer(&TransferRecord {
        operation: if writes != 0 { Operation::Write } else { Operation::Read },
        bytes,
        descriptors: 1,
        post_duration: Duration::from_micros(post_us),
        xfer_duration: Duration::from_micros(xfer_us),
    });
}

/// Records memory that somebody else registered or deregistered.
#[unsafe(no_mangle)]
pub extern "C" fn telering_guest_memory(registered: c_int, bytes: u64) {
    let Some(telemetry) = telemetry() else { return };
    if registered != 0 { telemetry.memory_registered(bytes) } else { telemetry.memory_deregistered(bytes) }
}

/// Records an error by NIXL's code. 0 is success.
#[unsafe(no_mangle)]
pub extern "C" fn telering_guest_error(code: c_int) -> c_int {
    match (telemetry(), Status::from_code(code)) {
        (Some(telemetry), Some(status)) => {
            telemetry.error(status);
            0
        }
        _ => 1,
    }
}

/// Records `count` transfers, `per_second` of them in a second or, with 0, without a pause. Returns how many.
#[unsafe(no_mangle)]
pub extern "C" fn telering_guest_record(count: u64, per_second: u64) -> u64 {
    // A handle of its own: the report can be asked for meanwhile.
    let Some(telemetry) = telemetry() else { return 0 };
    let start = Instant::now();
    let mut made = 0;
    while made < count {
        let due = match per_second {
            0 => count,
            rate => (start.elapsed().as_micros() as u64 * rate / 1_000_000).min(count),
        };
        while made < due {
            telemetry.record_transfer(&transfer(NEXT.fetch_add(1, Ordering::Relaxed)));
            made += 1;
        }
        if made < count {
            std::thread::sleep(PAUSE);
        }
    }
    made
}

/// The values of a transfer. `interop/guest.py` has the same sums.
fn transfer(number: u64) -> TransferRecord {
    let post = number % 97 + 1;
    TransferRecord {
        operation: if number % 3 == 2 { Operation::Read } else { Operation::Write },
        bytes: number * 3 + 1,
        descriptors: 1,
        post_duration: Duration::from_micros(post),
        xfer_duration: Duration::from_micros(post + number % 1009),
    }
}

/// Closes the agent: what it recorded is in its file afterwards. 0 is success.
#[unsafe(no_mangle)]
pub extern "C" fn telering_guest_stop() -> c_int {
    match lock(&GUEST).as_ref() {
        Some(guest) => {
            guest.telemetry.close();
            0
        }
        None => 1,
    }
}

/// Writes a JSON object into `buffer`, with a NUL at its end, and returns its length; 0 if it has no room.
///
/// # Safety
/// `buffer` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_guest_report(buffer: *mut c_char, size: usize) -> usize {
    let guest = lock(&GUEST);
    let Some(guest) = guest.as_ref() else { return 0 };
    let flow = guest.telemetry.counts();
    let mut page = String::new();
    // A String takes everything.
    let _ = guest.telemetry.render_prometheus(&mut page);
    let report = serde_json::json!({
        "path": guest.telemetry.path(),
        "mode": format!("{:?}", guest.telemetry.mode()),
        "address": guest.telemetry.prometheus_address().map(|address| address.to_string()),
        "metrics": page,
        "recorded": flow.recorded,
        "exported": flow.exported,
        "lost": flow.lost.total(),
        "warnings": *lock(&guest.warnings),
    })
    .to_string();
    if report.len() >= size {
        return 0;
    }
    // SAFETY: the buffer has room for the text and its NUL, and nobody else has it.
    unsafe {
        buffer.copy_from_nonoverlapping(report.as_ptr().cast(), report.len());
        *buffer.add(report.len()) = 0;
    }
    report.len()
}
