// Shared by the targets with `include!`: an allocator that ends the run at an allocation that no reader needs.

/// More than any reader needs: items of one call, their buffer, the parts.
const ENOUGH: usize = 4 << 20;

struct Watched;

fn check(size: usize) {
    // A panic in here would allocate, so that it ends at once and by name. One that is being told about already
    // reads the program's symbols, and those are large.
    if size > ENOUGH && !std::thread::panicking() {
        eprintln!("an allocation of {size} bytes: by a number of the file?");
        std::process::abort();
    }
}

// SAFETY: every call is handed on unchanged to the system's allocator.
unsafe impl std::alloc::GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { std::alloc::System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: std::alloc::Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { std::alloc::System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: std::alloc::Layout) {
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { std::alloc::System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: std::alloc::Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { std::alloc::System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static WATCHED: Watched = Watched;
