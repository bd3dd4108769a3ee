//! The machine under the benchmarks: which thread runs where, and the thread that is always there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// Keeps the calling thread on one processor. `false` where the system refuses; the numbers are noisier then.
pub fn pin(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    if cpu >= CpuSet::MAX_CPU {
        return false;
    }
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}

/// Threads that wanted a processor in the last minute, where the system tells.
#[must_use]
pub fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// Whether threads can be kept on a processor here.
#[must_use]
pub fn can_pin() -> bool {
    std::thread::spawn(|| pin(0)).join().unwrap_or(false)
}

/// Processors that this process may use.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What both threads do in a row of two threads: so many operations.
pub type Work = Arc<dyn Fn(u64) + Send + Sync>;

struct Order {
    work: Work,
    operations: u64,
    line: Arc<StartLine>,
}

/// Where two threads wait for each other, and when each was done.
#[derive(Default)]
struct StartLine {
    arrived: AtomicU64,
    done: Mutex<Option<Instant>>,
    finished: AtomicU64,
}

impl StartLine {
    fn wait(&self) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        wait_for(&self.arrived, 2);
    }
}

/// Spins, and lets others run now and then: the other thread may be waiting for this very processor.
fn wait_for(number: &AtomicU64, value: u64) {
    let mut turns = 0_u32;
    while number.load(Ordering::Acquire) < value {
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(100_000) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// A second thread, on the second processor. It sleeps unless a row of two threads needs it. That it is there at
/// all matters: with a single thread the C library takes short cuts in its locks that no real program sees.
pub struct Partner {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Partner {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start() -> std::io::Result<Partner> {
        let (orders, inbox): (Sender<Order>, Receiver<Order>) = channel();
        let thread = std::thread::Builder::new().name("partner".into()).spawn(move || {
            pin(1);
            for order in inbox {
                order.line.wait();
                (order.work)(order.operations);
                if let Ok(mut done) = order.line.done.lock() {
                    *done = Some(Instant::now());
                }
                order.line.finished.store(1, Ordering::Release);
            }
        })?;
        Ok(Partner { orders: Some(orders), thread: Some(thread) })
    }

    /// Has both threads do `operations` each; the time from the common start to the later end.
    pub fn together(&self, operations: u64, work: &Work) -> Duration {
        let line = Arc::new(StartLine::default());
        let order = Order { work: Arc::clone(work), operations, line: Arc::clone(&line) };
        if self.orders.as_ref().is_none_or(|orders| orders.send(order).is_err()) {
            return Duration::ZERO;
        }
        line.wait();
        let start = Instant::now();
        work(operations);
        let mine = Instant::now();
        wait_for(&line.finished, 1);
        let theirs = line.done.lock().ok().and_then(|done| *done).unwrap_or(mine);
        mine.max(theirs).duration_since(start)
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
