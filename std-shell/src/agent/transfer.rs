//! One transfer: begun, posted, finished or failed; its own telemetry afterwards.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use telering_core::Status;
use telering_core::slot::{Group, Operation, Transfer as Finished};

use super::hot::Hot;
use super::local::{self, ById};
use crate::clock::Clock;

/// What one finished transfer did: NIXL's per-transfer telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferTelemetry {
    /// When it began, in wall-clock time.
    pub start: SystemTime,
    /// From the beginning until the backend had the request. Whole microseconds.
    pub post_duration: Duration,
    /// From the beginning to completion; includes the post. Whole microseconds.
    pub xfer_duration: Duration,
    /// Bytes moved.
    pub total_bytes: u64,
    /// Descriptors of the request.
    pub descriptor_count: u64,
}

/// A transfer that an engine timed itself, for `Telemetry::record_transfer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferRecord {
    /// Which way the bytes went.
    pub operation: Operation,
    /// Bytes moved.
    pub bytes: u64,
    /// Descriptors of the request.
    pub descriptors: u32,
    /// From the beginning until the backend had the request.
    pub post_duration: Duration,
    /// From the beginning to completion.
    pub xfer_duration: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is wanted of it.
    Off = 0,
    /// Begun, and only its failure is wanted: nothing is timed.
    Watched = 1,
    Begun = 2,
    Posted = 3,
    Finished = 4,
    /// Finished, and never timed.
    Done = 5,
    Failed = 6,
}

impl State {
    const SHIFT: u32 = 48;

    /// Whether the word of [`Transfer::words`] that holds what is small has this state.
    #[inline(always)]
    pub(super) fn is_of(shape: u64, state: State) -> bool {
        (shape >> State::SHIFT) as u8 == state as u8
    }

    /// The same word with this state.
    #[inline(always)]
    pub(super) fn put_into(self, shape: u64) -> u64 {
        shape & !(0xff << State::SHIFT) | (self as u64) << State::SHIFT
    }
}

/// What an agent wants of its transfers of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Nothing: all their metrics are off.
    Nothing = 0,
    /// Their failures alone: no clock is read before one.
    Failures = 1,
    /// All of it: they are timed.
    Times = 2,
}

impl Wanted {
    /// Of a write and of a read.
    pub(super) fn of(hot: &Hot, captured: bool) -> [Wanted; 2] {
        let rest = if hot.wants_errors() { Wanted::Failures } else { Wanted::Nothing };
        hot.groups.map(|group| if captured || group != Group::NONE { Wanted::Times } else { rest })
    }
}

/// A transfer under way. It may begin on one thread and finish on another. Dropped unfinished it records
/// one `NIXL_ERR_CANCELED`.
///
/// ```
/// use telering::Operation;
/// # let agent = telering::Telemetry::builder("doc").ignore_environment(true).capture_telemetry(true).build();
/// let mut transfer = agent.begin_transfer(Operation::Write, 4096, 1);
/// // ... hand it to the backend ...
/// transfer.posted();
/// // ... until it is done ...
/// transfer.finish();
/// let telemetry = transfer.telemetry().expect("finished, and telemetry is on");
/// assert_eq!(telemetry.total_bytes, 4096);
/// ```
#[derive(Debug)]
#[must_use = "a transfer that is dropped at once counts as cancelled"]
pub struct Transfer {
    agent: u64,
    clock: &'static Clock,
    start: u64,
    post_us: u64,
    xfer_us: u64,
    bytes: u64,
    descriptors: u32,
    operation: Operation,
    group: Group,
    state: State,
}

impl Transfer {
    #[inline(always)]
    pub(super) fn begin(
        agent: u64,
        clock: &'static Clock,
        group: Group,
        operation: Operation,
        bytes: u64,
        descriptors: u32,
    ) -> Transfer {
        let state = State::Begun;
        Transfer {
            agent,
            clock,
            start: clock.ticks(),
            post_us: 0,
            xfer_us: 0,
            bytes,
            descriptors,
            operation,
            group,
            state,
        }
    }

    /// A transfer that is not timed.
    #[inline(always)]
    pub(super) fn untimed(agent: u64, clock: &'static Clock, operation: Operation, wanted: Wanted) -> Transfer {
        Transfer {
            agent,
            clock,
            start: 0,
            post_us: 0,
            xfer_us: 0,
            bytes: 0,
            descriptors: 0,
            operation,
            group: Group::NONE,
            state: if wanted == Wanted::Failures { State::Watched } else { State::Off },
        }
    }

    /// The transfer as plain numbers, see [`super::raw`]. Nothing is recorded for it any more.
    #[inline(always)]
    pub(super) fn into_words(self) -> [u64; 6] {
        let words = self.words();
        std::mem::forget(self);
        words
    }

    #[inline(always)]
    pub(super) fn words(&self) -> [u64; 6] {
        let shape = u64::from(self.descriptors)
            | (self.operation as u64) << 32
            | u64::from(self.group.bits()) << 40
            | (self.state as u64) << State::SHIFT;
        [self.agent, self.start, self.post_us, self.xfer_us, self.bytes, shape]
    }

    /// A transfer out of its numbers. Numbers that none ever had make one that has failed.
    #[inline(always)]
    pub(super) fn from_words(words: [u64; 6], clock: &'static Clock) -> Transfer {
        let [agent, start, post_us, xfer_us, bytes, shape] = words;
        let state = match (shape >> State::SHIFT) as u8 {
            0 => State::Off,
            1 => State::Watched,
            2 => State::Begun,
            3 => State::Posted,
            4 => State::Finished,
            5 => State::Done,
            _ => State::Failed,
        };
        let Shape { descriptors, operation, group } = Shape::of_word(shape);
        Transfer { agent, clock, start, post_us, xfer_us, bytes, descriptors, operation, group, state }
    }

    /// The backend has the request. A transfer that completes inside the post needs no call: finish it.
    #[inline(always)]
    pub fn posted(&mut self) {
        if self.state == State::Begun {
            self.post_us = self.clock.us_between(self.start, self.clock.ticks());
            self.state = State::Posted;
        }
    }

    /// The transfer completed. A second call, or one after [`Transfer::fail`], does nothing.
    #[inline(always)]
    pub fn finish(&mut self) {
        if !matches!(self.state, State::Begun | State::Posted) {
            if self.state == State::Watched {
                self.state = State::Done;
            }
            return;
        }
        let ticks = self.clock.ticks();
        let xfer_us = self.clock.us_between(self.start, ticks);
        if self.state == State::Begun {
            self.post_us = xfer_us;
        }
        self.xfer_us = xfer_us.max(self.post_us);
        self.state = State::Finished;
        if self.group != Group::NONE {
            let shape = Shape { descriptors: self.descriptors, operation: self.operation, group: self.group };
            finished(self.agent, ticks, self.bytes, self.post_us, self.xfer_us, shape);
        }
    }

    /// The transfer failed: one error event. A second call, or one after [`Transfer::finish`], does nothing.
    #[inline]
    pub fn fail(&mut self, status: Status) {
        if self.is_running() {
            self.state = State::Failed;
            failed(self.agent, status);
        }
    }

    /// Whether the transfer has finished. Always `false` while telemetry is off.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished | State::Done)
    }

    /// Whether the transfer was begun and is neither finished nor failed. Always `false` while telemetry is off.
    #[inline(always)]
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Watched | State::Begun | State::Posted)
    }

    /// What the transfer did: `None` while it is under way, when it failed, and when telemetry is off.
    #[must_use]
    pub fn telemetry(&self) -> Option<TransferTelemetry> {
        (self.state == State::Finished).then(|| TransferTelemetry {
            start: UNIX_EPOCH + Duration::from_micros(self.clock.anchor().unix_us(self.start)),
            post_duration: Duration::from_micros(self.post_us),
            xfer_duration: Duration::from_micros(self.xfer_us),
            total_bytes: self.bytes,
            descriptor_count: self.descriptors.into(),
        })
    }

    /// Its post duration and its transfer duration in microseconds, for those who know the rest: the same as in
    /// [`Transfer::telemetry`], without the readings of the clock that tell when it began.
    #[must_use]
    pub fn durations_us(&self) -> Option<(u64, u64)> {
        (self.state == State::Finished).then_some((self.post_us, self.xfer_us))
    }
}

/// What is small in a transfer: together as large as a register.
#[derive(Clone, Copy)]
struct Shape {
    descriptors: u32,
    operation: Operation,
    group: Group,
}

impl Shape {
    /// Out of a word of [`Transfer::words`].
    #[inline(always)]
    fn of_word(word: u64) -> Shape {
        let operation = if word >> 32 & 1 == 0 { Operation::Write } else { Operation::Read };
        Shape { descriptors: word as u32, operation, group: Group::from_bits((word >> 40) as u8) }
    }
}

/// Records a finished transfer whose small parts are in a word of [`Transfer::words`].
#[inline(always)]
pub(super) fn record_finished(agent: u64, ticks: u64, bytes: u64, post_us: u64, xfer_us: u64, shape: u64) {
    let Shape { descriptors, operation, group } = Shape::of_word(shape);
    if group != Group::NONE {
        let finished = Finished { ticks, operation, group, bytes, post_us, xfer_us, descriptors };
        local::record(ById(agent), local::Record(&finished));
    }
}

/// Out of line and all in registers: the code that a program has at each of its `finish` calls stays small.
#[inline(never)]
fn finished(agent: u64, ticks: u64, bytes: u64, post_us: u64, xfer_us: u64, shape: Shape) {
    let Shape { descriptors, operation, group } = shape;
    let finished = Finished { ticks, operation, group, bytes, post_us, xfer_us, descriptors };
    local::record(ById(agent), local::Record(&finished));
}

/// Takes parts and not the transfer: as long as nothing out of line is handed its address, a transfer that lives in
/// one function stays in registers.
#[cold]
#[inline(never)]
fn failed(agent: u64, status: Status) {
    super::record_error(ById(agent), status);
}

impl Drop for Transfer {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_running() {
            failed(self.agent, Status::Canceled);
        }
    }
}
