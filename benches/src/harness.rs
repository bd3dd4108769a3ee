//! How a number is made: short slices, each right after a slice of its reference, in a new order every round.
//!
//! Machines drift: the clock speed changes, neighbours come and go. A ratio of two slices that ran within a
//! millisecond of each other doesn't care, and the median over many rounds forgets the slices that were
//! interrupted.

use std::time::{Duration, Instant};

/// What one slice did.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Operations that were timed.
    pub operations: u64,
    /// How long they took.
    pub elapsed: Duration,
}

impl Slice {
    /// Nanoseconds of one operation.
    #[must_use]
    pub fn ns(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e9 / self.operations.max(1) as f64
    }
}

/// Does about so many operations and says what it timed.
pub type Body = Box<dyn FnMut(u64) -> Slice>;

/// A body whose operations are all timed together.
pub fn timed(mut run: impl FnMut(u64) + 'static) -> Body {
    Box::new(move |operations| {
        let start = Instant::now();
        run(operations);
        Slice { operations, elapsed: start.elapsed() }
    })
}

/// What a row is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// Eight relaxed stores of 64 bits into the next line of 256 KiB.
    Raw64,
    /// Three bare readings of the clock.
    ThreeReads,
    /// Two of them.
    TwoReads,
    /// Copying the records' bytes, per record of 56 bytes.
    Copy56,
}

impl Reference {
    /// All references.
    pub const ALL: [Reference; 4] = [Reference::Raw64, Reference::ThreeReads, Reference::TwoReads, Reference::Copy56];

    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reference::Raw64 => "raw64",
            Reference::ThreeReads => "3 clock reads",
            Reference::TwoReads => "2 clock reads",
            Reference::Copy56 => "memcpy",
        }
    }
}

/// One benchmark.
pub struct Row {
    /// Its name: short, stable, what `--filter` looks at.
    pub name: &'static str,
    /// What one operation is.
    pub what: &'static str,
    /// What it is measured against.
    pub reference: Reference,
    /// The operations.
    pub body: Body,
}

/// A slice beside its reference's, nanoseconds per operation.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Of the row.
    pub ns: f64,
    /// Of the reference, right before.
    pub reference_ns: f64,
}

impl Pair {
    /// How many times the reference.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.ns / self.reference_ns
    }
}

/// A row's slices, one a round.
pub struct Measured {
    /// As in [`Row`].
    pub name: &'static str,
    /// As in [`Row`].
    pub what: &'static str,
    /// As in [`Row`].
    pub reference: Reference,
    /// One pair a round.
    pub pairs: Vec<Pair>,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Slices of each row.
    pub rounds: usize,
    /// How long a slice should be. Short ones mostly escape preemption.
    pub slice: Duration,
}

/// Operations that take about `slice`: the least of three tries tells the speed.
fn calibrate(body: &mut Body, slice: Duration) -> u64 {
    let mut operations = 16;
    loop {
        let tries = [body(operations), body(operations), body(operations)];
        let fastest = tries.iter().map(Slice::ns).fold(f64::INFINITY, f64::min).max(0.01);
        let shortest = tries.iter().map(|slice| slice.elapsed).min().unwrap_or_default();
        // A body may do more than it is asked for; then there is nothing to tune.
        if shortest * 4 >= slice || tries[0].operations > operations || operations > 1 << 40 {
            return ((slice.as_secs_f64() * 1e9 / fastest) as u64).max(1);
        }
        operations *= 2;
    }
}

/// Numbers in no order that repeats: xorshift, seeded, so that a run can be repeated.
struct Shuffle(u64);

impl Shuffle {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn shuffle(&mut self, places: &mut [usize]) {
        for last in (1..places.len()).rev() {
            places.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
    }
}

/// Measures all rows. `reference` makes the body of a reference.
pub fn measure(mut rows: Vec<Row>, effort: Effort, reference: impl Fn(Reference) -> Body) -> Vec<Measured> {
    let mut references: Vec<(Reference, Body, u64)> = Vec::new();
    for kind in Reference::ALL {
        if rows.iter().any(|row| row.reference == kind) {
            let mut body = reference(kind);
            let operations = calibrate(&mut body, effort.slice);
            references.push((kind, body, operations));
        }
    }
    let operations: Vec<u64> = rows.iter_mut().map(|row| calibrate(&mut row.body, effort.slice)).collect();
    let mut measured: Vec<Measured> = rows
        .iter()
        .map(|row| Measured { name: row.name, what: row.what, reference: row.reference, pairs: Vec::new() })
        .collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let mut random = Shuffle(0x9e37_79b9_7f4a_7c15);
    for _ in 0..effort.rounds {
        random.shuffle(&mut order);
        for &place in &order {
            let row = &mut rows[place];
            let Some((_, beside, count)) = references.iter_mut().find(|(kind, ..)| *kind == row.reference) else {
                continue;
            };
            let reference_ns = beside(*count).ns();
            let ns = (row.body)(operations[place]).ns();
            measured[place].pairs.push(Pair { ns, reference_ns });
        }
    }
    measured
}

/// The value that `share` of all are not larger than; NaN of none.
#[must_use]
pub fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let place = (share * values.len().saturating_sub(1) as f64).round() as usize;
    values.get(place).copied().unwrap_or(f64::NAN)
}

/// The middle value; NaN of none.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_twice_the_work_is_twice_its_reference() {
        let spin = |turns: u64| {
            timed(move |operations| {
                for turn in 0..operations * turns {
                    std::hint::black_box(turn);
                }
            })
        };
        let row = Row { name: "double", what: "", reference: Reference::Raw64, body: spin(20) };
        let effort = Effort { rounds: 31, slice: Duration::from_micros(200) };
        let measured = measure(vec![row], effort, |_| spin(10));
        let ratio = median(measured[0].pairs.iter().map(Pair::ratio));
        assert!((1.5..2.7).contains(&ratio), "{ratio}");
    }

    #[test]
    fn each_round_has_another_order_with_every_row_in_it() {
        let mut random = Shuffle(1);
        let mut places: Vec<usize> = (0..10).collect();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..20 {
            random.shuffle(&mut places);
            let mut sorted = places.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
            seen.insert(places.clone());
        }
        assert!(seen.len() > 15);
    }

    #[test]
    fn quantiles_of_few_values() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(quantile([3.0, 1.0, 2.0], 1.0), 3.0);
        assert!(median([]).is_nan());
    }
}
