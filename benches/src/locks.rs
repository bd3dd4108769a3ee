//! The two locks that a mutex design can have here: Rust's, and the one that C++ programs have.
//!
//! Alone they cost the same. Where two threads meet, Rust's tries for a while before it asks the kernel to wait and
//! C++'s asks at once, which shows in the tail.

use std::cell::UnsafeCell;
use std::sync::{Mutex, PoisonError};

/// Something behind a lock.
pub trait Lock<T>: Send + Sync {
    /// Not locked.
    fn new(inner: T) -> Self;

    /// Does something while nobody else can.
    fn hold<R>(&self, work: impl FnOnce(&mut T) -> R) -> R;
}

impl<T: Send> Lock<T> for Mutex<T> {
    fn new(inner: T) -> Self {
        Mutex::new(inner)
    }

    #[inline(always)]
    fn hold<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Cells<T> {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    inner: UnsafeCell<T>,
}

/// The C library's mutex, as `std::mutex` of C++ has it on Linux. In a box: once used it may not move.
pub struct CMutex<T>(Box<Cells<T>>);

// SAFETY: whatever thread holds it, `inner` is reached by one at a time, and the lock is made for several.
unsafe impl<T: Send> Send for CMutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for CMutex<T> {}

/// Gives the lock back, after a panic too.
struct Held<'a>(&'a UnsafeCell<libc::pthread_mutex_t>);

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl<T: Send> Lock<T> for CMutex<T> {
    fn new(inner: T) -> Self {
        let lock = UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER);
        CMutex(Box::new(Cells { lock, inner: UnsafeCell::new(inner) }))
    }

    #[inline(always)]
    fn hold<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: initialised, and at this place for good.
        let status = unsafe { libc::pthread_mutex_lock(self.0.lock.get()) };
        assert!(status == 0, "the lock of a benchmark returned {status}");
        let held = Held(&self.0.lock);
        // SAFETY: the lock is held until `held` is dropped, behind the last use.
        let result = work(unsafe { &mut *self.0.inner.get() });
        drop(held);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts<L: Lock<u64>>() -> u64 {
        let lock = L::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| lock.hold(|count| *count += 1)));
            }
        });
        lock.hold(|count| *count)
    }

    #[test]
    fn nothing_is_lost_behind_either_lock() {
        assert_eq!((counts::<Mutex<u64>>(), counts::<CMutex<u64>>()), (40_000, 40_000));
    }
}
