//! Agents and transfers as plain numbers, for bindings to other languages: those keep them where any thread may
//! write, and a mixed-up copy must do no harm. Not for programs; this may change with any version.

use std::sync::atomic::{AtomicU64, Ordering};

use telering_core::names;
use telering_core::slot::{Group, Operation, Transfer as Finished};

use super::builder::process_clock;
use super::local::{self, ById};
use super::transfer::{State, Wanted};
use super::{Mode, Status, Telemetry, Transfer, TransferRecord};
use crate::file::fork;

/// Words of a transfer.
pub const WORDS: usize = 6;

/// What recording needs to know of an agent with the clock of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Never reused within a process.
    pub id: u64,
    /// Bits 0 and 2: what is wanted of writes and reads; bit 4: the agent records; bits 8 and 16: groups; bits 32 to 63:
    /// enabled rows.
    pub shape: u64,
}

const WANTED: u64 = 3;
const RECORDS: u64 = 1 << 4;
const _: () = assert!(names::BUILT_IN.len() <= 32);

impl Key {
    /// The numbers of an agent.
    #[must_use]
    pub fn of(agent: &Telemetry) -> Key {
        let agent = &agent.0;
        let records = if agent.mode == Mode::Off { 0 } else { RECORDS };
        let [of_writes, of_reads] = agent.wanted.map(|wanted| wanted as u64);
        let shape = of_writes
            | of_reads << 2
            | records
            | u64::from(agent.hot.groups[0].bits()) << 8
            | u64::from(agent.hot.groups[1].bits()) << 16
            | agent.hot.mask << 32;
        Key { id: agent.hot.id, shape }
    }

    /// Whether this process made the agent, and none that it was forked from.
    #[inline(always)]
    #[must_use]
    pub fn is_own(&self) -> bool {
        fork::is_own(self.id)
    }

    /// Whether the agent records events of this type.
    fn records(&self, id: u32) -> bool {
        self.shape & RECORDS != 0 && names::index_of(id).is_some_and(|row| self.shape >> 32 >> row & 1 == 1)
    }

    #[inline(always)]
    fn group(&self, operation: Operation) -> Group {
        Group::from_bits((self.shape >> (8 + 8 * operation as u32)) as u8)
    }

    /// As [`Telemetry::begin_transfer`]; `None` for a transfer of which nothing is wanted.
    #[inline(always)]
    #[must_use]
    pub fn begin(&self, operation: Operation, bytes: u64, descriptors: u32) -> Option<[u64; WORDS]> {
        let (id, clock) = (self.id, process_clock());
        let wanted = self.shape >> (2 * operation as u32) & WANTED;
        if wanted == Wanted::Times as u64 {
            let group = self.group(operation);
            return Some(Transfer::begin(id, clock, group, operation, bytes, descriptors).into_words());
        }
        let watched = || Transfer::untimed(id, clock, operation, Wanted::Failures).into_words();
        (wanted == Wanted::Failures as u64).then(watched)
    }

    /// As [`Telemetry::record_transfer`].
    #[inline]
    pub fn record_transfer(&self, record: &TransferRecord) {
        let group = self.group(record.operation);
        if self.shape & RECORDS == 0 || group.events() == 0 {
            return;
        }
        let us = |duration: std::time::Duration| duration.as_micros().min(u128::from(u64::MAX)) as u64;
        let post_us = us(record.post_duration);
        let finished = Finished {
            ticks: process_clock().ticks(),
            operation: record.operation,
            group,
            bytes: record.bytes,
            post_us,
            xfer_us: us(record.xfer_duration).max(post_us),
            descriptors: record.descriptors,
        };
        local::record(ById(self.id), local::Record(&finished));
    }

    /// As [`Telemetry::error`].
    pub fn error(&self, status: Status) {
        if self.records(names::error_id(status)) {
            super::record_error(ById(self.id), status);
        }
    }

    /// One built-in event that is no error and no transfer's, such as [`names::MEMORY_REGISTERED`].
    pub fn single(&self, id: u32, value: u64) {
        if self.records(id) {
            let ticks = process_clock().ticks();
            local::record_by(ById(self.id), |_, owned| owned.slot.single(owned.ring(), ticks, id, value));
        }
    }
}

/// The words of a transfer, where any thread may write.
pub type Words = [AtomicU64; WORDS];

const AGENT: usize = 0;
const START: usize = 1;
const POST_US: usize = 2;
const XFER_US: usize = 3;
const BYTES: usize = 4;
const SHAPE: usize = 5;

#[inline(always)]
fn get(words: &Words, word: usize) -> u64 {
    words[word].load(Ordering::Relaxed)
}

#[inline(always)]
fn set(words: &Words, word: usize, value: u64) {
    words[word].store(value, Ordering::Relaxed);
}

/// Whether this process began the transfer, and none that it was forked from.
#[inline(always)]
#[must_use]
pub fn is_own(words: &Words) -> bool {
    fork::is_own(get(words, AGENT))
}

/// As [`Transfer::posted`], where the words stand. A transfer of another language is changed by one call for each step,
/// and taking it apart and putting it together again would cost more than the step.
#[inline(always)]
pub fn posted(words: &Words) {
    let shape = get(words, SHAPE);
    if State::is_of(shape, State::Begun) {
        let clock = process_clock();
        set(words, POST_US, clock.us_between(get(words, START), clock.ticks()));
        set(words, SHAPE, State::Posted.put_into(shape));
    }
}

/// As [`Transfer::finish`], where the words stand.
#[inline(always)]
pub fn finish(words: &Words) {
    let shape = get(words, SHAPE);
    let is_posted = State::is_of(shape, State::Posted);
    if !is_posted && !State::is_of(shape, State::Begun) {
        if State::is_of(shape, State::Watched) {
            set(words, SHAPE, State::Done.put_into(shape));
        }
        return;
    }
    let clock = process_clock();
    let ticks = clock.ticks();
    let xfer_us = clock.us_between(get(words, START), ticks);
    let post_us = if is_posted { get(words, POST_US) } else { xfer_us };
    let xfer_us = xfer_us.max(post_us);
    set(words, POST_US, post_us);
    set(words, XFER_US, xfer_us);
    set(words, SHAPE, State::Finished.put_into(shape));
    super::transfer::record_finished(get(words, AGENT), ticks, get(words, BYTES), post_us, xfer_us, shape);
}

/// Whether the transfer was begun and is neither finished nor failed.
#[inline(always)]
#[must_use]
pub fn is_running(words: &Words) -> bool {
    let shape = get(words, SHAPE);
    [State::Watched, State::Begun, State::Posted].into_iter().any(|state| State::is_of(shape, state))
}

/// A transfer out of its words, for the time of a call: it is put back with [`suspend`], or it counts as cancelled.
pub fn resume(words: &Words) -> Transfer {
    Transfer::from_words(std::array::from_fn(|word| get(words, word)), process_clock())
}

/// The words of a transfer that goes on later.
pub fn suspend(transfer: Transfer, words: &Words) {
    transfer.into_words().into_iter().enumerate().for_each(|(word, value)| set(words, word, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    type OfTransfer = fn(&mut Transfer);
    type OfWords = fn(&Words);

    /// Steps that a transfer may take, in any order.
    const STEPS: [(OfTransfer, OfWords); 3] = [
        (Transfer::posted, posted),
        (Transfer::finish, finish),
        (
            |transfer| transfer.fail(Status::Backend),
            |words| {
                let mut transfer = resume(words);
                transfer.fail(Status::Backend);
                suspend(transfer, words);
            },
        ),
    ];

    /// What does not depend on the time: all but the durations, and these as "none" or "some".
    fn shown([agent, _, post_us, xfer_us, bytes, shape]: [u64; WORDS]) -> [u64; 4] {
        [agent, u64::from(post_us > 0) << 1 | u64::from(xfer_us > 0), bytes, shape]
    }

    #[test]
    fn a_transfer_takes_the_same_steps_where_its_words_stand() {
        for metrics in ["*", "agent_err_*", "agent_tx_bytes", "agent_memory_*"] {
            let builder = Telemetry::builder("raw").ignore_environment(true).capture_telemetry(metrics == "*");
            let directory = tempfile::tempdir().unwrap();
            let agent = builder.enable(true).dir(directory.path()).metrics(metrics).build();
            for operation in [Operation::Write, Operation::Read] {
                for order in 0..27 {
                    let pause = || std::thread::sleep(std::time::Duration::from_micros(2));
                    let mut transfer = agent.begin_transfer(operation, 4711, 3);
                    let Some(begun) = Key::of(&agent).begin(operation, 4711, 3) else {
                        assert!(!transfer.is_running() && transfer.telemetry().is_none());
                        continue;
                    };
                    let words: Words = begun.map(AtomicU64::new);
                    for step in [order % 3, order / 3 % 3, order / 9] {
                        assert_eq!(transfer.is_running(), is_running(&words));
                        pause();
                        STEPS[step].0(&mut transfer);
                        STEPS[step].1(&words);
                        let now = std::array::from_fn(|word| get(&words, word));
                        assert_eq!(shown(transfer.words()), shown(now), "{metrics} {operation:?} {order}");
                    }
                    assert!(is_own(&words) && !is_running(&words) || transfer.is_running());
                }
            }
            let flow = agent.close();
            assert_eq!(flow.recorded, flow.exported + flow.lost.total());
        }
    }
}
