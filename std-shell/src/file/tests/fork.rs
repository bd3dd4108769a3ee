//! What a forked child holds of its parent's files: nothing.

use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU64 as Counter, Ordering};

use super::*;
use crate::file::fork::{generation, on_child};
use crate::file::life::{Check, Loss};
use crate::file::lock::{LockState, lock_state};

static CALLED: Counter = Counter::new(0);

fn called() {
    CALLED.fetch_add(1, Ordering::Relaxed);
}

/// Forks; the child runs `check`, which may only do what a signal handler may, and ends with what it found.
fn child_finds(check: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child calls nothing but `check` and `_exit`.
    match unsafe { libc::fork() } {
        // SAFETY: ends the child without running the parent's destructors.
        0 => unsafe { libc::_exit(if check() { 0 } else { 1 }) },
        child => child,
    }
}

fn wait(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of this process; `status` lives through the call.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

#[test]
fn a_child_has_neither_descriptor_nor_mapping_200_times() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    assert!(on_child(called) && on_child(called));
    let mut files: Vec<_> = (0..200).map(|n| make(directory.path(), &format!("a{n}"), &heard).unwrap()).collect();
    for _ in 0..200 {
        let before = (generation(), CALLED.load(Ordering::Relaxed));
        let pages: Vec<_> = files.iter().map(|file| file.words().as_ptr().cast_mut().cast::<libc::c_void>()).collect();
        let numbers: Vec<_> = files.iter().map(|file| file.holding.as_ref().unwrap().file.file().as_raw_fd()).collect();
        let child = child_finds(|| {
            // SAFETY: asks whether a number is open.
            let closed = numbers.iter().all(|&number| unsafe { libc::fcntl(number, libc::F_GETFD) } == -1);
            // SAFETY: asks whether a page is mapped; the answer for one page is one byte.
            let unmapped = pages.iter().all(|&page| unsafe { libc::mincore(page, 1, &mut 0) } == -1);
            let forked =
                files.iter_mut().all(|file| file.words().is_empty() && file.check() == Check::Lost(Loss::Forked));
            closed
                && unmapped
                && forked
                && (generation(), CALLED.load(Ordering::Relaxed)) == (before.0 + 1, before.1 + 1)
        });
        assert_eq!(wait(child), 0);
        assert_eq!(generation(), before.0);
    }
    assert!(files.iter_mut().all(|file| file.check() == Check::Sound && !file.words().is_empty()));
}

#[test]
fn a_child_that_drops_a_file_harms_neither_parent_nor_itself() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let file = make(directory.path(), "agent", &heard).unwrap();
    let path = file.path().to_owned();
    let number = file.holding.as_ref().unwrap().file.file().as_raw_fd();
    let mut file = Some(file);
    let child = child_finds(|| {
        // The number is another file's by now.
        // SAFETY: plain system calls on descriptors of this child.
        unsafe { libc::dup2(0, number) };
        file = None;
        // SAFETY: asks whether a number is open.
        unsafe { libc::fcntl(number, libc::F_GETFD) != -1 }
    });
    assert_eq!(wait(child), 0);
    assert!(matches!(lock_state(&path).unwrap(), LockState::Held));
    assert!(path.exists() && file.is_some());
}

#[test]
fn a_child_that_lives_on_does_not_keep_a_dead_parents_file_alive() {
    let directory = tempfile::tempdir().unwrap();
    let file = make(directory.path(), "agent", &Heard::new()).unwrap();
    let path = file.path().to_owned();
    let child = child_finds(|| {
        // SAFETY: sleeps until a signal; the alarm ends the child if the test ends without.
        unsafe {
            libc::alarm(20);
            libc::pause();
        }
        true
    });
    // A process that is killed runs no destructor: only the kernel closes its descriptor.
    let mut file = file;
    if let Some(holding) = &mut file.holding {
        holding.locked = false;
    }
    drop(file);
    // The child's handler runs when the child is first scheduled.
    let free = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        matches!(lock_state(&path).unwrap(), LockState::Free)
    });
    // SAFETY: ends the child forked above.
    unsafe { libc::kill(child, libc::SIGKILL) };
    wait(child);
    assert!(free, "the child kept the lock");
}
