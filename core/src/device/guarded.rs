//! A recorder that interrupts and the main loop share.

use core::cell::RefCell;

use critical_section::{Mutex, with};

use super::Recorder;
use crate::event::Template;

/// A recorder in a `static`, used inside a critical section: from interrupts of any priority and from the main loop.
///
/// ```
/// use telering_core::device::Guarded;
///
/// static RECORDER: Guarded = Guarded::new();
/// ```
#[derive(Debug)]
pub struct Guarded {
    recorder: Mutex<RefCell<Option<Recorder<'static>>>>,
}

impl Guarded {
    /// No recorder yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is for a static, which `default` can't make")]
    pub const fn new() -> Guarded {
        Guarded { recorder: Mutex::new(RefCell::new(None)) }
    }

    /// Puts the recorder there, at start-up. Returns the one that was there before.
    pub fn put(&self, recorder: Recorder<'static>) -> Option<Recorder<'static>> {
        with(|section| match self.recorder.borrow(section).try_borrow_mut() {
            Ok(mut place) => place.replace(recorder),
            Err(_) => Some(recorder),
        })
    }

    /// Records one event that happened now. `false` if there is no recorder yet, or if this interrupt came in the
    /// middle of another record call, which only one that no critical section keeps out can do.
    pub fn record(&self, event: &Template, value: u64) -> bool {
        self.with(|recorder| recorder.record(event, value)).is_some()
    }

    /// Runs `f` on the recorder inside the critical section; `None` where [`Guarded::record`] says `false`.
    pub fn with<T>(&self, f: impl FnOnce(&mut Recorder<'static>) -> T) -> Option<T> {
        with(|section| self.recorder.borrow(section).try_borrow_mut().ok()?.as_mut().map(f))
    }
}
