//! The ring against another crate's overwrite buffer: the same records survive, and a reader's losses are
//! exactly the ones that the buffer no longer has.

use heapless::HistoryBuf;
use proptest::prelude::*;
use telering_core::ring::{Cursor, Look, Producer, Ring, RingError};
use telering_core::sync::{AtomicU64, Ordering};

const WORDS: usize = 3;
type Words = [u64; WORDS];

fn record(position: u64) -> Words {
    [position, position.wrapping_mul(0x9e37_79b9_7f4a_7c15), !position]
}

/// One step of a test. Readers are named by number, modulo how many there are.
#[derive(Clone, Debug)]
enum Step {
    Push,
    Batch(u64),
    Look(usize),
    Drain(usize, usize),
    ReadFromOldest,
    ReadFromNewest,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Push),
        2 => (0_u64..=16).prop_map(Step::Batch),
        4 => any::<usize>().prop_map(Step::Look),
        2 => (any::<usize>(), 1_usize..40).prop_map(|(reader, size)| Step::Drain(reader, size)),
        1 => Just(Step::ReadFromOldest),
        1 => Just(Step::ReadFromNewest),
    ];
    prop::collection::vec(step, 0..300)
}

/// What the buffer says about a reader that wants `next`: how much is gone, and what is still there from there on.
fn expected<const CAPACITY: usize>(
    oracle: &HistoryBuf<Words, CAPACITY>,
    written: u64,
    next: u64,
) -> (u64, u64, Vec<Words>) {
    let oldest = written - oracle.len() as u64;
    let lost = oldest.saturating_sub(next);
    let first = next.max(oldest);
    (lost, first, oracle.oldest_ordered().skip((first - oldest) as usize).copied().collect())
}

fn compare<const CAPACITY: usize>(steps: &[Step]) -> Result<(), TestCaseError> {
    let (intent, committed) = (AtomicU64::new(0), AtomicU64::new(0));
    let records: [[AtomicU64; WORDS]; CAPACITY] = std::array::from_fn(|_| Default::default());
    let ring = Ring::new(&intent, &committed, &records).expect("a power of two");
    let mut producer = Producer::resume(ring, 0);
    let mut oracle = HistoryBuf::<Words, CAPACITY>::new();
    let mut readers = vec![Cursor::at(&ring, 0)];
    for step in steps {
        let written = producer.position();
        match *step {
            Step::Push => {
                producer.push(record(written));
                oracle.write(record(written));
            }
            Step::Batch(count) => {
                let count = count.min(ring.max_batch());
                producer.push_batch(count, record);
                (written..written + count).for_each(|position| oracle.write(record(position)));
            }
            Step::Look(reader) => {
                let place = reader % readers.len();
                let reader = &mut readers[place];
                let (lost, first, left) = expected(&oracle, written, reader.position());
                let right = match left.first() {
                    _ if lost > 0 => Look::Lost(lost),
                    Some(words) => Look::Record(first, *words),
                    None => Look::Empty,
                };
                prop_assert_eq!(reader.look(&ring), right);
            }
            Step::Drain(reader, size) => {
                let place = reader % readers.len();
                let reader = &mut readers[place];
                let (lost, first, mut left) = expected(&oracle, written, reader.position());
                left.truncate(size);
                let mut buffer = vec![[0; WORDS]; size];
                let Some(drained) = reader.drain(&ring, Cursor::committed(&ring), &mut buffer) else {
                    prop_assert!(left.is_empty());
                    continue;
                };
                prop_assert_eq!((drained.lost, drained.first), (lost, first));
                prop_assert_eq!(&buffer[drained.start..drained.start + drained.count], &left);
                prop_assert_eq!(reader.position(), first + left.len() as u64);
            }
            Step::ReadFromOldest => {
                let reader = Cursor::oldest(&ring);
                prop_assert_eq!(reader.position(), written - oracle.len() as u64);
                readers.push(reader);
            }
            Step::ReadFromNewest => readers.push(Cursor::at(&ring, Cursor::committed(&ring))),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_ring_keeps_what_the_oracle_keeps_and_loses_what_it_loses(steps in steps()) {
        compare::<2>(&steps)?;
        compare::<4>(&steps)?;
        compare::<32>(&steps)?;
        compare::<256>(&steps)?;
    }
}

proptest! {
    /// Whoever writes into shared memory can write positions too.
    #[test]
    fn no_position_makes_a_reader_panic_or_read_outside(
        looks in prop::collection::vec((any_position(), any_position(), 1_usize..10), 1..20),
        start in any_position(),
    ) {
        let (intent, committed) = (AtomicU64::new(0), AtomicU64::new(0));
        let records: [[AtomicU64; WORDS]; 4] = std::array::from_fn(|_| Default::default());
        let ring = Ring::new(&intent, &committed, &records).expect("a power of two");
        let mut readers = [Cursor::at(&ring, start), Cursor::at(&ring, start)];
        for (announced, finished, size) in looks {
            intent.store(announced.to_le(), Ordering::Relaxed);
            committed.store(finished.to_le(), Ordering::Relaxed);
            readers[0].look(&ring);
            let mut buffer = vec![[0; WORDS]; size];
            if let Some(drained) = readers[1].drain(&ring, Cursor::committed(&ring), &mut buffer) {
                prop_assert!(drained.start + drained.count <= size);
            }
            Cursor::oldest(&ring).look(&ring);
        }
    }
}

fn any_position() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..20, any::<u64>(), u64::MAX - 20..=u64::MAX]
}

#[test]
fn a_lapped_reader_is_told_its_loss_once_and_goes_on_at_the_oldest() {
    const CAPACITY: u64 = 4;
    for overrun in [1, CAPACITY, 1_000_000] {
        let (intent, committed) = (AtomicU64::new(0), AtomicU64::new(0));
        let records: [[AtomicU64; WORDS]; CAPACITY as usize] = std::array::from_fn(|_| Default::default());
        let ring = Ring::new(&intent, &committed, &records).expect("a power of two");
        let mut producer = Producer::resume(ring, 0);
        let mut reader = Cursor::at(&ring, 0);
        for position in 0..CAPACITY + overrun {
            producer.push(record(position));
        }
        assert_eq!(reader.look(&ring), Look::Lost(overrun));
        for position in overrun..overrun + CAPACITY {
            assert_eq!(reader.look(&ring), Look::Record(position, record(position)));
        }
        assert_eq!(reader.look(&ring), Look::Empty);
    }
}

#[test]
fn memory_of_a_wrong_size_is_no_ring() {
    let (intent, committed) = (AtomicU64::new(0), AtomicU64::new(0));
    let records: Vec<[AtomicU64; WORDS]> = (0..1001).map(|_| Default::default()).collect();
    for size in [0, 1, 3, 5, 1000, 1001] {
        let error = Ring::new(&intent, &committed, &records[..size]).err();
        assert_eq!(error, Some(RingError::Capacity { records: size }));
        assert!(RingError::Capacity { records: size }.to_string().contains(&format!("{size} records")));
    }
    assert!(Ring::new(&intent, &committed, &records[..2]).is_ok());
}

#[test]
#[should_panic(expected = "a batch of 3 records is too large")]
fn a_batch_over_the_largest_one_is_refused_before_it_touches_the_ring() {
    let (intent, committed) = (AtomicU64::new(0), AtomicU64::new(0));
    let records: [[AtomicU64; WORDS]; 32] = std::array::from_fn(|_| Default::default());
    let ring = Ring::new(&intent, &committed, &records).expect("a power of two");
    Producer::resume(ring, 0).push_batch(3, record);
}
