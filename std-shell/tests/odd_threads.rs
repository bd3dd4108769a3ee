//! Threads that record where few programs do: while they end, hundreds at once, through agents that come and go. Each
//! record is counted, as made or as refused.

mod common;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use common::{Collector, agent};
use telering::core::names;
use telering::{Operation, Telemetry, Transfer};

/// Finished writes and their bytes.
fn written(agent: &Telemetry) -> (u64, u64) {
    agent.snapshot().entry(names::TX_BYTES).map_or((0, 0), |total| (total.count, total.sum))
}

/// Records when its thread ends.
struct Late {
    agent: Telemetry,
    begun: Option<Transfer>,
    calls: &'static AtomicU64,
}

impl Drop for Late {
    fn drop(&mut self) {
        self.agent.begin_transfer(Operation::Write, 7, 1).finish();
        self.begun.take().into_iter().for_each(|mut transfer| transfer.finish());
        self.agent.memory_registered(1);
        self.calls.fetch_add(3, Ordering::SeqCst);
    }
}

thread_local! {
    static FIRST: RefCell<Option<Late>> = const { RefCell::new(None) };
    static SECOND: RefCell<Option<Late>> = const { RefCell::new(None) };
    /// Touches nothing of ours; destroyed between the others.
    static BETWEEN: Cell<u64> = const { Cell::new(0) };
}

#[test]
fn what_is_recorded_while_a_thread_ends_is_counted_as_made_or_as_refused() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let (collector, _seen) = Collector::new(false);
    let agent = agent("late").exporter(collector).staging_records(1024).build();
    // `first`: the destructor is known before the thread has a slot; `second`: after it; neither: it takes the slot.
    let threads = 40;
    for number in 0..threads {
        let agent = agent.clone();
        let (first, records, second) = (number % 2 == 0, number % 3 != 0, number % 5 < 3);
        let run = move || {
            let late = || {
                Some(Late {
                    begun: Some(agent.begin_transfer(Operation::Write, 7, 1)),
                    agent: agent.clone(),
                    calls: &CALLS,
                })
            };
            if first {
                FIRST.with(|slot| *slot.borrow_mut() = late());
            }
            BETWEEN.set(number);
            if records {
                agent.begin_transfer(Operation::Write, 7, 1).finish();
                CALLS.fetch_add(1, Ordering::SeqCst);
            }
            if second {
                SECOND.with(|slot| *slot.borrow_mut() = late());
            }
        };
        thread::spawn(run).join().expect("no panic");
    }
    let flow = agent.close();
    let (made, bytes) = written(&agent);
    let registered = agent.snapshot().entry(names::MEMORY_REGISTERED).map_or(0, |total| total.count);
    assert_eq!(bytes, 7 * made);
    assert_eq!(made + registered + agent.notices().refused, CALLS.load(Ordering::SeqCst));
    assert_eq!((flow.recorded, flow.lost.total()), (4 * made + registered, 0));
    assert!(made > 0 && registered > 0, "{made} made, {registered} registered");
}

#[test]
fn four_hundred_threads_at_once_are_counted_to_the_last_transfer() {
    let (threads, each) = (400, 2_000);
    let (collector, _seen) = Collector::new(false);
    let agent = agent("many").exporter(collector).staging_records(256).build();
    let both = Arc::new(Barrier::new(threads));
    let running: Vec<_> = (0..threads)
        .map(|_| {
            let (agent, both) = (agent.clone(), Arc::clone(&both));
            thread::spawn(move || {
                both.wait();
                for _ in 0..each {
                    let mut transfer = agent.begin_transfer(Operation::Write, 3, 1);
                    transfer.posted();
                    transfer.finish();
                }
            })
        })
        .collect();
    running.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let flow = agent.close();
    let made = threads as u64 * each;
    assert_eq!(written(&agent), (made, 3 * made));
    assert_eq!(flow.recorded, 4 * made);
    assert_eq!(flow.recorded, flow.exported + flow.lost.total());
    assert_eq!(agent.notices().refused, 0);
}

#[test]
fn agents_that_come_and_go_in_many_threads_count_what_was_theirs_and_nothing_else() {
    let stays = agent("stays").nop().staging_records(64).build();
    let (threads, agents) = (8, 40);
    thread::scope(|scope| {
        for number in 0..threads {
            let stays = &stays;
            scope.spawn(move || {
                let mut left: Option<Transfer> = None;
                for turn in 0..agents {
                    let own = agent("goes").nop().staging_records(64).build();
                    for _ in 0..100 {
                        own.begin_transfer(Operation::Write, number + 1, 1).finish();
                        stays.begin_transfer(Operation::Write, 1, 1).finish();
                    }
                    // One whose agent is gone goes nowhere, and not into that of another agent.
                    left.take().into_iter().for_each(|mut transfer| transfer.finish());
                    let after = own.begin_transfer(Operation::Write, 1000, 1);
                    assert_eq!(written(&own), (100, 100 * (number + 1)), "agent {turn} of thread {number}");
                    assert_eq!(own.close().recorded, 400);
                    left = Some(after);
                }
            });
        }
    });
    let made = threads * agents * 100;
    assert_eq!(written(&stays), (made, made));
    assert_eq!(stays.close().recorded, 4 * made);
}

#[test]
fn an_agent_that_its_only_thread_drops_while_it_ends_closes_with_all_it_recorded() {
    thread_local! {
        static LAST: RefCell<Option<Telemetry>> = const { RefCell::new(None) };
    }
    let (collector, seen) = Collector::new(false);
    let run = || {
        let agent = agent("last").exporter(collector).close_patience(Duration::from_secs(30)).build();
        agent.begin_transfer(Operation::Write, 1, 1).finish();
        LAST.with(|last| *last.borrow_mut() = Some(agent));
    };
    thread::spawn(run).join().expect("no panic");
    assert!(seen.closed.load(Ordering::SeqCst));
    // Four of the transfer, two of our own.
    assert_eq!(seen.count.load(Ordering::SeqCst), 6);
}
