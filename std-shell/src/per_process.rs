//! Statics that a forked child makes anew: another thread of the parent may have held their lock for ever.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::file::fork;

/// A value of one process: made at its first use there, and never freed.
pub(crate) struct PerProcess<T> {
    value: AtomicPtr<Made<T>>,
}

struct Made<T> {
    generation: u64,
    value: T,
}

impl<T: Default + Send + Sync + 'static> PerProcess<T> {
    pub(crate) const fn new() -> PerProcess<T> {
        PerProcess { value: AtomicPtr::new(ptr::null_mut()) }
    }

    /// This process's value.
    pub(crate) fn get(&self) -> &'static T {
        let there = self.value.load(Ordering::Acquire);
        // SAFETY: the pointer is null or came from `Box::into_raw` below, and what it points to is never freed.
        match unsafe { there.as_ref() } {
            Some(made) if made.generation == fork::generation() => &made.value,
            _ => self.make(there),
        }
    }

    #[cold]
    fn make(&self, before: *mut Made<T>) -> &'static T {
        fork::install();
        let new = Box::into_raw(Box::new(Made { generation: fork::generation(), value: T::default() }));
        let made = match self.value.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: `new` came from `Box::into_raw` above and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
        // SAFETY: the pointer came from `Box::into_raw` and what it points to is never freed.
        unsafe { &(*made).value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn all_threads_get_the_same_value() {
        static VALUE: PerProcess<Mutex<u32>> = PerProcess::new();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| *VALUE.get().lock().unwrap() += 1);
            }
        });
        assert_eq!(*VALUE.get().lock().unwrap(), 8);
    }
}
