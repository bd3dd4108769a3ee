//! Telemetry for firmware in C: `include/telering_firmware.h` says what each function does.

#![no_std]

use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::num::{NonZeroU32, NonZeroU64};
use core::slice;

use telering_core::device::{Clock, Recorder};
use telering_core::event::Template;
use telering_core::sync::AtomicU64;
use telering_core::{Category, Name};

const FORMATTED: i32 = 0;
const ATTACHED: i32 = 1;
const WRONG_MEMORY: i32 = -1;
const WRONG_CAPACITY: i32 = -2;
const WRONG_ARGUMENT: i32 = -3;

/// What the header calls `telering_recorder`. In C it begins as zeros, and an interrupt may record before the program
/// made it, or although making it was refused: without `ticks` there is no recorder.
pub struct CRecorder {
    recorder: MaybeUninit<Recorder<'static>>,
    ticks: Option<extern "C" fn() -> u64>,
}

impl CRecorder {
    fn made(&self) -> Option<&Recorder<'static>> {
        // SAFETY: there is a recorder wherever there are ticks.
        self.ticks.map(|_| unsafe { self.recorder.assume_init_ref() })
    }

    /// The recorder, and what its clock says.
    fn now(&mut self) -> Option<(&mut Recorder<'static>, u64)> {
        let ticks = self.ticks?;
        // SAFETY: there is a recorder wherever there are ticks.
        Some((unsafe { self.recorder.assume_init_mut() }, ticks()))
    }
}

/// Room that the header gives.
const RECORDER_ROOM: usize = 96;
const EVENT_ROOM: usize = 64;
const _: () = assert!(size_of::<CRecorder>() <= RECORDER_ROOM && align_of::<CRecorder>() <= 8);
const _: () = assert!(size_of::<Template>() <= EVENT_ROOM && align_of::<Template>() <= 8);

/// The words of memory that C gave, if they can hold an image.
///
/// # Safety
/// `memory` has `bytes` bytes that live and stay in use for this alone until the next reset.
unsafe fn words(memory: *mut c_void, bytes: usize) -> Option<&'static [AtomicU64]> {
    let memory = memory.cast::<AtomicU64>();
    if memory.is_null() || !memory.is_aligned() || !bytes.is_multiple_of(8) {
        return None;
    }
    // SAFETY: not null, aligned, and of this length, as the caller promises; any bits are a word.
    Some(unsafe { slice::from_raw_parts(memory, bytes / 8) })
}

fn no_ticks() -> u64 {
    0
}

/// What both ways to a recorder need, looked at before anything is touched.
struct Wanted {
    place: &'static mut MaybeUninit<CRecorder>,
    memory: &'static [AtomicU64],
    instance: NonZeroU64,
    clock: Clock,
    ticks: extern "C" fn() -> u64,
}

impl Wanted {
    /// # Safety
    /// As [`telering_init`].
    unsafe fn new(
        recorder: *mut MaybeUninit<CRecorder>,
        memory: *mut c_void,
        bytes: usize,
        instance: u64,
        ticks_per_second: u32,
        ticks: Option<extern "C" fn() -> u64>,
    ) -> Result<Wanted, i32> {
        let (Some(instance), Some(rate), Some(ticks)) =
            (NonZeroU64::new(instance), NonZeroU32::new(ticks_per_second), ticks)
        else {
            return Err(WRONG_ARGUMENT);
        };
        if !recorder.is_aligned() {
            return Err(WRONG_MEMORY);
        }
        // SAFETY: the caller keeps the promise of `words`, and `recorder` is null or has room.
        match unsafe { (words(memory, bytes), recorder.as_mut()) } {
            (Some(memory), Some(place)) => {
                Ok(Wanted { place, memory, instance, clock: Clock::new(rate, no_ticks), ticks })
            }
            _ => Err(WRONG_MEMORY),
        }
    }

    fn put(self, recorder: Recorder<'static>) {
        self.place.write(CRecorder { recorder: MaybeUninit::new(recorder), ticks: Some(self.ticks) });
    }

    fn format(self, capacity: u32) -> i32 {
        match Recorder::format(self.memory, capacity.into(), self.instance, self.clock) {
            Ok(recorder) => {
                self.put(recorder);
                FORMATTED
            }
            Err(telering_core::image::FormatError::Capacity { .. }) => WRONG_CAPACITY,
            Err(_) => WRONG_MEMORY,
        }
    }
}

/// Formats memory and puts a recorder for it into `recorder`.
///
/// # Safety
/// As the header says: the memory is for this alone, `recorder` has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_init(
    recorder: *mut MaybeUninit<CRecorder>,
    memory: *mut c_void,
    bytes: usize,
    capacity: u32,
    instance: u64,
    ticks_per_second: u32,
    ticks: Option<extern "C" fn() -> u64>,
) -> i32 {
    // SAFETY: the same promises.
    match unsafe { Wanted::new(recorder, memory, bytes, instance, ticks_per_second, ticks) } {
        Ok(wanted) => wanted.format(capacity),
        Err(refused) => refused,
    }
}

/// Goes on with an image that survived a reset, or formats the memory.
///
/// # Safety
/// As [`telering_init`]; `interrupted` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_attach(
    recorder: *mut MaybeUninit<CRecorder>,
    memory: *mut c_void,
    bytes: usize,
    capacity: u32,
    instance: u64,
    ticks_per_second: u32,
    ticks: Option<extern "C" fn() -> u64>,
    interrupted: *mut u32,
) -> i32 {
    // SAFETY: null, or room for a number, as the caller promises.
    let count = unsafe { interrupted.as_mut() };
    // SAFETY: the same promises.
    let wanted = match unsafe { Wanted::new(recorder, memory, bytes, instance, ticks_per_second, ticks) } {
        Ok(wanted) => wanted,
        Err(refused) => return refused,
    };
    let found = Recorder::attach(wanted.memory, capacity.into(), wanted.clock);
    if let Some(count) = count {
        *count = found.as_ref().map_or(0, |(_, open)| *open as u32);
    }
    match found {
        Ok((recorder, _)) => {
            wanted.put(recorder);
            ATTACHED
        }
        Err(_) => wanted.format(capacity),
    }
}

/// Makes what all events of one name share.
///
/// # Safety
/// `event` has room for one; `name` ends in a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_event_init(event: *mut MaybeUninit<Template>, category: i32, name: *const c_char) {
    // SAFETY: null, or room for an event.
    let Some(place) = (unsafe { event.as_mut() }) else { return };
    // SAFETY: a text that ends in a NUL.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    // Bytes of no UTF-8 end the name, as for any reader.
    let name = match name.to_str() {
        Ok(name) => name,
        Err(error) => {
            name.to_bytes().get(..error.valid_up_to()).map_or("", |whole| str::from_utf8(whole).unwrap_or(""))
        }
    };
    place.write(Template::new(Category(category), Name::new(name).0));
}

/// Records one event that happened now; nothing while there is no recorder.
///
/// # Safety
/// Both were made by the functions above, or are all zero, and no other call uses `recorder` now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_record(recorder: *mut CRecorder, event: *const Template, value: u64) {
    // SAFETY: null, zeros, or what the functions above made.
    if let (Some(recorder), Some(event)) = unsafe { (recorder.as_mut(), event.as_ref()) }
        && let Some((recorder, ticks)) = recorder.now()
    {
        recorder.record_at(event, ticks, value);
    }
}

/// Events recorded since the memory was formatted.
///
/// # Safety
/// As [`telering_record`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_written(recorder: *const CRecorder) -> u64 {
    // SAFETY: null, zeros, or what the functions above made.
    unsafe { recorder.as_ref() }.and_then(CRecorder::made).map_or(0, Recorder::written)
}

/// How often the image was attached.
///
/// # Safety
/// As [`telering_record`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_boots(recorder: *const CRecorder) -> u32 {
    // SAFETY: null, zeros, or what the functions above made.
    unsafe { recorder.as_ref() }.and_then(CRecorder::made).map_or(0, Recorder::boots)
}

/// Says that the device is at work.
///
/// # Safety
/// As [`telering_record`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telering_heartbeat(recorder: *mut CRecorder) {
    // SAFETY: null, zeros, or what the functions above made.
    if let Some((recorder, ticks)) = unsafe { recorder.as_mut() }.and_then(CRecorder::now) {
        recorder.heartbeat_at(ticks);
    }
}

/// There is no place that panics; a static library has to say what would happen.
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
