//! What this program holds, counted instead of estimated: the bytes that are allocated at this moment. Resident memory
//! would tell as much only to within half a MiB, since the allocator keeps pages that it may need again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counted;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTED: Counted = Counted;

/// Bytes allocated and not yet given back, by all threads.
pub(crate) fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

// SAFETY: every call is handed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Wraps around where memory shrinks, which is what a subtraction would do.
        HELD.fetch_add(size.wrapping_sub(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
