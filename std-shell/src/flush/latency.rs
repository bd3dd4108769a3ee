//! Asking the scheduler to run the flush thread soon after it wakes.
//!
//! It works for microseconds and then sleeps. On a machine whose processors are all busy it would
//! still wait its turn behind threads that run for milliseconds, while rings fill. Linux 6.12 and later
//! let a thread without any privilege ask for short slices, which brings its turn forward and takes
//! nothing from others. Where that is refused nothing is lost but punctuality.

/// The shortest slice that Linux grants.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 100_000;

/// The kernel's `struct sched_attr`, first version.
#[cfg(target_os = "linux")]
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for short slices for the calling thread.
#[cfg(target_os = "linux")]
pub(super) fn ask_for_short_slices() {
    const SIZE: u32 = size_of::<Attributes>() as u32;
    let mut attributes = Attributes::default();
    // SAFETY: the kernel writes at most SIZE bytes into a structure of that size.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
    // Only an ordinary thread: a host that gave its threads another policy knows why.
    if got != 0 || attributes.policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.size = SIZE;
    attributes.runtime = SLICE_NS;
    // SAFETY: the kernel reads SIZE bytes of a structure of that size.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Other systems have no such wish.
#[cfg(not(target_os = "linux"))]
pub(super) fn ask_for_short_slices() {}
