//! Warnings on their way to a function of the caller's.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use telering::warn::Warning;

/// What a program hears warnings with.
pub type OnWarning = extern "C" fn(user: *mut c_void, kind: *const c_char, message: *const c_char);

/// Calls a function of the caller's until the agent is closed.
pub(crate) struct Hearer {
    caller: Caller,
    /// No call begins any more.
    stopped: AtomicBool,
    /// Held for the time of a call.
    calls: RwLock<()>,
}

#[derive(Clone, Copy)]
struct Caller {
    function: OnWarning,
    user: *mut c_void,
}

// SAFETY: the header says that the function is called from any thread, and that `user` is for it alone.
unsafe impl Send for Caller {}
// SAFETY: as above.
unsafe impl Sync for Caller {}

thread_local! {
    /// Set while this thread is in a function of the caller's.
    static HEARING: Cell<bool> = const { Cell::new(false) };
}

impl Hearer {
    pub(crate) fn new(function: OnWarning, user: *mut c_void) -> Hearer {
        Hearer { caller: Caller { function, user }, stopped: AtomicBool::new(false), calls: RwLock::new(()) }
    }

    pub(crate) fn tell(&self, warning: &Warning) {
        let _call = self.calls.read().unwrap_or_else(PoisonError::into_inner);
        let Ok(message) = CString::new(warning.message.as_str()) else { return };
        if self.stopped.load(Ordering::Acquire) {
            return;
        }
        let kind = CString::new(warning.kind.as_str()).unwrap_or_default();
        HEARING.set(true);
        (self.caller.function)(self.caller.user, kind.as_ptr(), message.as_ptr());
        HEARING.set(false);
    }

    /// No call begins any more, and none that runs outlives this. But for one: within such a function nothing is
    /// waited for, since it may be its own end, or that of another one that waits for this one.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        if !HEARING.get() {
            drop(self.calls.write().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
