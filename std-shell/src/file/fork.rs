//! What a forked child must let go of.
//!
//! A child inherits the descriptors of its parent, and with them a share in the parent's locks: an image would
//! look alive as long as any child lives. So the child closes them, first thing. Mappings stay with the parent
//! (`MADV_DONTFORK`): the child's addresses may belong to something else soon, so the child must neither touch
//! nor unmap them. Everything that holds either asks [`generation`].
//!
//! The child of a process with threads may only do what a signal handler may. The handler reads atomics and
//! closes descriptors; it takes no lock and no memory.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd as _;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

static GENERATION: AtomicU64 = AtomicU64::new(0);
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Functions that a child calls, see [`on_child`].
static ON_CHILD: [AtomicPtr<()>; 8] = [const { AtomicPtr::new(ptr::null_mut()) }; 8];

/// The descriptors that a child closes: a list of chunks that only grows.
struct Chunk {
    places: [AtomicI32; 128],
    next: AtomicPtr<Chunk>,
}

const FREE: i32 = -1;

impl Chunk {
    const fn new() -> Chunk {
        Chunk { places: [const { AtomicI32::new(FREE) }; 128], next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Chunk> {
        // SAFETY: the pointer is null or comes from `Box::leak` below, so it stays valid and shared for ever.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn next_or_new(&self) -> &'static Chunk {
        if let Some(next) = self.next() {
            return next;
        }
        let new: *mut Chunk = Box::leak(Box::new(Chunk::new()));
        let set = self.next.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        let chunk = match set {
            Ok(_) => new,
            Err(there) => {
                // SAFETY: `new` was leaked above and lost the race: nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                there
            }
        };
        // SAFETY: both come from `Box::leak` and are never freed once they stand in the list.
        unsafe { &*chunk }
    }
}

static CHUNKS: Chunk = Chunk::new();

/// How many forks lie between the first process and this one. What was made under another number belongs to a
/// parent.
#[inline(always)]
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Marks a number as made by this process and none that it forked from.
pub(crate) fn own_id(counter: u64) -> u64 {
    generation() << 40 | counter
}

/// Whether [`own_id`] made this number in this process.
#[inline(always)]
pub(crate) fn is_own(id: u64) -> bool {
    id >> 40 == generation()
}

/// Registers the fork handlers once. No `Once`: a child forked in its midst would wait for it for ever.
pub(crate) fn install() {
    if !INSTALLED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handler is a function of this library with C's calling convention; it does only what a
        // child may do between fork and exec. It fails for want of memory only, and then children keep copies.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

/// Has `function` called in each forked child, before `fork` returns there. It may do only what a signal handler
/// may. Says whether there was room (eight functions).
pub(crate) fn on_child(function: fn()) -> bool {
    install();
    let wanted = function as *mut ();
    ON_CHILD.iter().any(|place| {
        match place.compare_exchange(ptr::null_mut(), wanted, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(there) => there == wanted,
        }
    })
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let mut chunk = Some(&CHUNKS);
    while let Some(here) = chunk {
        for place in &here.places {
            let descriptor = place.swap(FREE, Ordering::Relaxed);
            if descriptor != FREE {
                // SAFETY: the number stands in the table only while the parent holds it open for itself; its
                // owner in this process sees another generation and never uses or closes it.
                unsafe { libc::close(descriptor) };
            }
        }
        chunk = here.next();
    }
    for place in &ON_CHILD {
        let function = place.load(Ordering::Acquire);
        if !function.is_null() {
            // SAFETY: only `on_child` writes here, and it stores a `fn()`.
            let function = unsafe { std::mem::transmute::<*mut (), fn()>(function) };
            function();
        }
    }
}

/// An open file that doesn't live on in a forked child.
#[derive(Debug)]
pub(crate) struct Descriptor {
    file: ManuallyDrop<File>,
    place: &'static AtomicI32,
    generation: u64,
    process: u32,
}

impl Descriptor {
    pub(crate) fn new(file: File) -> Descriptor {
        install();
        let number = file.as_raw_fd();
        let mut chunk = &CHUNKS;
        let place = loop {
            let free =
                |place: &&AtomicI32| place.compare_exchange(FREE, number, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            match chunk.places.iter().find(free) {
                Some(place) => break place,
                None => chunk = chunk.next_or_new(),
            }
        };
        Descriptor { file: ManuallyDrop::new(file), place, generation: generation(), process: std::process::id() }
    }

    /// The file. Only while [`is_ours`](Self::is_ours).
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether this process opened it. The process id catches a fork that ran no handlers.
    pub(crate) fn is_ours(&self) -> bool {
        self.generation == generation() && self.process == std::process::id()
    }

    /// The same for the flush thread, which no fork without handlers can have copied: no system call.
    pub(crate) fn is_of_this_generation(&self) -> bool {
        self.generation == generation()
    }

    /// Gives the number up without closing it: the host closed it already, and it may be another file's now.
    pub(crate) fn disown(&mut self) {
        self.forget_place();
        // No process has this number.
        self.process = 0;
    }

    fn forget_place(&self) {
        if self.is_ours() {
            self.place.store(FREE, Ordering::Release);
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.is_ours() {
            // First out of the table, then closed: the other way a child could close a number that is used again.
            self.forget_place();
            // SAFETY: dropped once, here, and not used after.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}
