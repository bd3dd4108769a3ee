//! What others offer for the same or for a part of it. Rings keep a record of 64 bytes and no totals; the metrics
//! libraries keep totals and histograms and no history. A transfer of ours keeps both.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use metrics_util::registry::{AtomicStorage, Registry};
use ringbuf::HeapRb;
use telering::core::slot::Buckets;

use crate::harness::{Reference, Row, Slice, timed};
use crate::machine::{Partner, Work};
use crate::reference::LINES;

type Record = [u64; 8];

fn record(turn: u64) -> Record {
    std::array::from_fn(|word| turn + word as u64)
}

/// The bounds of NIXL's histograms, as the libraries want them.
fn bounds() -> Vec<f64> {
    Buckets::default().bounds().iter().map(|bound| *bound as f64).collect()
}

/// The four numbers of a transfer in a metrics library.
trait Metrics {
    fn count(&self, value: u64);
    fn observe(&self, us: u64);

    #[inline(always)]
    fn transfer(&self, others: &Self, bytes: u64, post_us: u64, xfer_us: u64) {
        self.count(bytes);
        others.count(1);
        self.observe(xfer_us);
        others.observe(post_us);
    }
}

struct Prometheus(prometheus::IntCounter, prometheus::Histogram);

impl Prometheus {
    fn new() -> Result<Prometheus, prometheus::Error> {
        let options = prometheus::HistogramOpts::new("us", "microseconds").buckets(bounds());
        Ok(Prometheus(prometheus::IntCounter::new("bytes", "bytes")?, prometheus::Histogram::with_opts(options)?))
    }
}

impl Metrics for Prometheus {
    #[inline(always)]
    fn count(&self, value: u64) {
        self.0.inc_by(value);
    }

    #[inline(always)]
    fn observe(&self, us: u64) {
        self.1.observe(us as f64);
    }
}

struct Client(prometheus_client::metrics::counter::Counter, prometheus_client::metrics::histogram::Histogram);

impl Client {
    fn new() -> Client {
        Client(Default::default(), prometheus_client::metrics::histogram::Histogram::new(bounds()))
    }
}

impl Metrics for Client {
    #[inline(always)]
    fn count(&self, value: u64) {
        self.0.inc_by(value);
    }

    #[inline(always)]
    fn observe(&self, us: u64) {
        self.1.observe(us as f64);
    }
}

/// `metrics` with the storage that its exporters use: a histogram keeps every value until somebody collects it.
struct Facade {
    counter: metrics::Counter,
    histogram: metrics::Histogram,
    registry: Registry<metrics::Key, AtomicStorage>,
}

impl Facade {
    fn new() -> Facade {
        let registry = Registry::new(AtomicStorage);
        let counter =
            registry.get_or_create_counter(&metrics::Key::from_name("bytes"), |counter| counter.clone().into());
        let histogram =
            registry.get_or_create_histogram(&metrics::Key::from_name("us"), |values| values.clone().into());
        Facade { counter, histogram, registry }
    }

    /// What an exporter does now and then. Not timed here.
    fn collect(&self) {
        self.registry.visit_histograms(|_, values| {
            values.clear_with(|some| {
                black_box(some.len());
            })
        });
    }
}

impl Metrics for Facade {
    #[inline(always)]
    fn count(&self, value: u64) {
        self.counter.increment(value);
    }

    #[inline(always)]
    fn observe(&self, us: u64) {
        self.histogram.record(us as f64);
    }
}

/// A row of one thread: `one` is timed, `after` runs untimed when `LINES` operations are done.
fn row(
    name: &'static str,
    what: &'static str,
    mut one: impl FnMut(u64) + 'static,
    mut after: impl FnMut() + 'static,
) -> Row {
    let body = move |operations: u64| {
        let (mut done, mut elapsed) = (0, Duration::ZERO);
        while done < operations {
            let until = operations.min(done + LINES as u64);
            let start = Instant::now();
            for turn in done..until {
                one(black_box(turn));
            }
            elapsed += start.elapsed();
            after();
            done = until;
        }
        Slice { operations, elapsed }
    };
    Row { name, what, reference: Reference::Raw64, body: Box::new(body) }
}

fn rings() -> Vec<Row> {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<Record>::new(LINES);
    let mut overwritten = HeapRb::<Record>::new(LINES);
    let queue = ArrayQueue::<Record>::new(LINES);
    let overwrite = timed(move |operations| {
        for turn in 0..operations {
            black_box(overwritten.push_overwrite(record(black_box(turn))));
        }
    });
    vec![
        row(
            "peer-rtrb",
            "rtrb: push of 64 bytes; refuses when full, so it is emptied in time, at no cost here",
            move |turn| {
                black_box(producer.push(record(turn)).is_ok());
            },
            move || {
                let all = consumer.slots();
                if let Ok(chunk) = consumer.read_chunk(all) {
                    chunk.commit_all();
                }
            },
        ),
        Row {
            name: "peer-ringbuf",
            what: "ringbuf: push_overwrite of 64 bytes; nobody can read beside it",
            reference: Reference::Raw64,
            body: overwrite,
        },
        row(
            "peer-crossbeam",
            "crossbeam ArrayQueue: force_push of 64 bytes into a full queue",
            move |turn| {
                black_box(queue.force_push(record(turn)));
            },
            || (),
        ),
    ]
}

/// A counter, a histogram, and a whole transfer of one library.
fn of<M: Metrics + 'static>(
    [counter, histogram, transfer]: [&'static str; 3],
    new: impl Fn() -> M,
    collect: fn(&M),
) -> Vec<Row> {
    let (bytes, us) = (new(), Rc::new(new()));
    let (first, second) = (Rc::new(new()), Rc::new(new()));
    let (us_after, first_after, second_after) = (Rc::clone(&us), Rc::clone(&first), Rc::clone(&second));
    vec![
        row(counter, "one counter, its handle at hand", move |turn| bytes.count(turn), || ()),
        row(
            histogram,
            "one histogram with NIXL's bounds, its handle at hand",
            move |_| us.observe(black_box(12)),
            move || collect(&us_after),
        ),
        row(
            transfer,
            "two counters and two histograms: a transfer's totals, no history",
            move |turn| first.transfer(&second, 4096 + turn, black_box(1), black_box(12)),
            move || {
                collect(&first_after);
                collect(&second_after);
            },
        ),
    ]
}

pub(super) fn rows() -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let mut rows = rings();
    // Made once before, so that a fault shows as one and not as a panic.
    Prometheus::new()?;
    let prometheus = || Prometheus::new().unwrap_or_else(|error| unreachable!("it worked before: {error}"));
    rows.extend(of(["peer-prometheus-counter", "peer-prometheus-histogram", "peer-prometheus"], prometheus, |_| ()));
    rows.extend(of(["peer-client-counter", "peer-client-histogram", "peer-client"], Client::new, |_| ()));
    rows.extend(of(["peer-metrics-counter", "peer-metrics-histogram", "peer-metrics"], Facade::new, Facade::collect));
    Ok(rows)
}

fn of_two(
    name: &'static str,
    what: &'static str,
    partner: &Rc<Partner>,
    one: impl Fn(u64) + Send + Sync + 'static,
) -> Row {
    let partner = Rc::clone(partner);
    let work: Work = Arc::new(move |operations| {
        for turn in 0..operations {
            one(black_box(turn));
        }
    });
    let body = Box::new(move |operations| Slice { operations, elapsed: partner.together(operations, &work) });
    Row { name, what, reference: Reference::Raw64, body }
}

pub(super) fn rows_of_two(partner: &Rc<Partner>) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let queue = ArrayQueue::<Record>::new(LINES);
    let (first, second) = (Prometheus::new()?, Prometheus::new()?);
    Ok(vec![
        of_two("peer-crossbeam-2", "two threads, force_push of 64 bytes into one full queue", partner, move |turn| {
            black_box(queue.force_push(record(turn)));
        }),
        of_two("peer-prometheus-2", "two threads, a transfer's totals in the same metrics", partner, move |turn| {
            first.transfer(&second, 4096 + turn, black_box(1), black_box(12));
        }),
    ])
}
