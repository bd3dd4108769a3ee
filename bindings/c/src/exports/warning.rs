//! Warnings on their way to a function of the caller's.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_void};
use std::sync::{PoisonError, RwLock};

use telering::warn::Warning;

/// What a program hears warnings with.
pub type OnWarning = extern "C" fn(user: *mut c_void, kind: *const c_char, message: *const c_char);

/// Calls a function of the caller's until the agent is closed.
pub(crate) struct Hearer(RwLock<Option<Caller>>);

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
        Hearer(RwLock::new(Some(Caller { function, user })))
    }

    pub(crate) fn tell(&self, warning: &Warning) {
        let caller = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (Some(caller), Ok(message)) = (*caller, CString::new(warning.message.as_str())) else { return };
        let kind = CString::new(warning.kind.as_str()).unwrap_or_default();
        HEARING.set(true);
        (caller.function)(caller.user, kind.as_ptr(), message.as_ptr());
        HEARING.set(false);
    }

    /// Waits for a call that runs; no other comes then. The function itself can't wait for its own end.
    pub(crate) fn stop(&self) {
        if HEARING.get() {
            if let Ok(mut caller) = self.0.try_write() {
                *caller = None;
            }
            return;
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
