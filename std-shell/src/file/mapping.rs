//! The only `mmap` of the project.
//!
//! The whole image is mapped shared and handed out as atomic words. Other processes may write into it at any
//! time, so there is never a reference to plain memory in it.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::slice;

use memmap2::{MmapOptions, MmapRaw};
use telering_core::sync::AtomicU64;

use super::fork;

// An atomic with a lock of this process would be no atomic for the others.
const _: () = assert!(AtomicU64::is_always_lock_free());
const _: () = assert!(size_of::<AtomicU64>() == 8 && align_of::<AtomicU64>() == 8);

/// An image in memory, shared with its file.
pub(crate) struct Mapping {
    memory: ManuallyDrop<MmapRaw>,
    words: usize,
    generation: u64,
}

impl Mapping {
    /// Maps the first `len` bytes of a file that is at least as long. `len` is a multiple of 8.
    pub(crate) fn new(file: &File, len: u64) -> io::Result<Mapping> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let memory = MmapOptions::new().len(len).map_raw(file)?;
        // A child must not hold the pages of its parent's image: a mapping keeps the file open, and with it the
        // lock, so the parent would look alive as long as the child lives. Where the kernel can't keep the child
        // from inheriting it, the child still never touches it: see `words` and `drop`.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::DontFork);
        Ok(Mapping { memory: ManuallyDrop::new(memory), words: len / 8, generation: fork::generation() })
    }

    /// The image. In a forked child, where it isn't mapped, no words at all.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        if self.generation != fork::generation() {
            return &[];
        }
        // SAFETY: the mapping holds `words * 8` bytes from a page boundary on, readable and writable, and lives as
        // long as `self`. AtomicU64 has size and alignment 8, takes any bits, and is lock-free, so other processes
        // may change the memory under a shared reference. A file truncated by others turns an access into SIGBUS,
        // which is no undefined behaviour; `ImageFile::check` keeps that window as small as it can be.
        unsafe { slice::from_raw_parts(self.memory.as_mut_ptr().cast::<AtomicU64>(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // In a forked child the addresses aren't ours.
        if self.generation == fork::generation() {
            // SAFETY: dropped once, here, and not used after.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
