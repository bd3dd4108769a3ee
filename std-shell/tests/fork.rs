//! A forked child records nothing with its parent's agents, and neither hangs.

#![cfg(unix)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::agent;
use telering::{Operation, Telemetry};

/// Forks, runs `child` there and ends it without a word to the parent's destructors.
/// Returns its exit status, or `None` if it had to be killed after 10 s.
fn in_child(child: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: the child runs code that takes locks, which a fork of a process with threads forbids in
    // general. That is what this test is about: it must not hang on *our* locks. The allocator's are
    // handled by the C library.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        let status = child();
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(status) };
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result; the pid is our own child's.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if ended == pid {
            return Some(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1000 + status });
        }
        if Instant::now() > deadline {
            // SAFETY: our own child, not yet waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            // SAFETY: as above.
            unsafe { libc::waitpid(pid, &raw mut status, 0) };
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn two_hundred_children_neither_hang_nor_write_into_the_parents_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let parent = agent("parent").dir(dir.path()).buffer_size(1 << 16).build();
    let path = parent.path().expect("a file");
    let stop = Arc::new(AtomicBool::new(false));
    let recorded = Arc::new(AtomicU64::new(0));
    let busy = {
        let (parent, stop, recorded) = (parent.clone(), Arc::clone(&stop), Arc::clone(&recorded));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                parent.begin_transfer(Operation::Write, 7, 1).finish();
                recorded.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_micros(20));
            }
        })
    };
    // This thread has a slot of its own, which the child finds in its memory.
    parent.event("parents_own", 1);
    let mut open = parent.begin_transfer(Operation::Write, 1, 1);
    let directory = dir.path().to_path_buf();
    for round in 0..200 {
        let status = in_child(|| {
            parent.event("childs", 1);
            open.finish();
            assert!(!parent.flush_now(Duration::from_secs(1)) || parent.counts().recorded == 0);
            drop(parent.backend());
            // Every twentieth child has an agent of its own, with totals from zero.
            if round % 20 == 0 {
                let own = agent("child").dir(&directory).build();
                own.event("childs_own", 1);
                let mut transfer = own.begin_transfer(Operation::Read, 5, 1);
                transfer.finish();
                if own.close().exported != 5 {
                    return 3;
                }
            }
            drop(parent.clone());
            0
        });
        assert_eq!(status, Some(0), "child {round}");
    }
    stop.store(true, Ordering::Relaxed);
    busy.join().expect("no panic");
    open.finish();
    let flow = parent.close();
    let transfers = recorded.load(Ordering::Relaxed) + 1;
    assert_eq!((flow.recorded, flow.exported), (transfers * 4 + 1, transfers * 4 + 1));
    let bytes = std::fs::read(&path).expect("the parent's file");
    let holds = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    assert!(holds(b"parents_own") && !holds(b"childs"));
}

#[test]
fn a_child_that_exits_properly_leaves_the_parents_agent_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let parent = agent("parent").dir(dir.path()).build();
    let path = parent.path().expect("a file");
    let copy: Telemetry = parent.clone();
    let status = in_child(move || {
        drop(copy);
        0
    });
    assert_eq!(status, Some(0));
    parent.event("after", 1);
    assert!(parent.flush_now(Duration::from_secs(10)));
    let bytes = std::fs::read(path).expect("still there");
    assert!(bytes.windows(5).any(|window| window == b"after"));
    assert_eq!(parent.close().exported, 1);
}
