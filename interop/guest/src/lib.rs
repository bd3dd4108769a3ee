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
use telering::{Operation, Telemetry, TransferRecord};

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
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&warnings);
    let telemetry = Telemetry::builder(name)
        .dir(dir)
        .on_warning(move |warning: &Warning| {
            lock(&told).push(format!("{}: {}", warning.kind.as_str(), warning.message))
        })
        .build();
    if telemetry.path().is_none() {
        eprintln!("interop guest: no telemetry file: {:?}", lock(&warnings));
        return 2;
    }
    *lock(&GUEST) = Some(Guest { telemetry, warnings });
    0
}

/// Records `count` transfers, `per_second` of them in a second or, with 0, without a pause. Returns how many.
#[unsafe(no_mangle)]
pub extern "C" fn telering_guest_record(count: u64, per_second: u64) -> u64 {
    // A handle of its own: the report can be asked for meanwhile.
    let Some(telemetry) = lock(&GUEST).as_ref().map(|guest| guest.telemetry.clone()) else { return 0 };
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
    let report = serde_json::json!({
        "path": guest.telemetry.path(),
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
