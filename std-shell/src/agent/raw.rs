//! Agents and transfers as plain numbers, for bindings to other languages: those keep them where any thread may
//! write, and a mixed-up copy must do no harm. Not for programs; this may change with any version.

use telering_core::names;
use telering_core::slot::{Group, Operation, Transfer as Finished};

use super::builder::process_clock;
use super::local::{self, ById};
use super::transfer::Wanted;
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

/// A transfer out of its words, for the time of a call: it is put back with [`suspend`], or it counts as cancelled.
#[inline(always)]
pub fn resume(words: [u64; WORDS]) -> Transfer {
    Transfer::from_words(words, process_clock())
}

/// Whether this process began the transfer, and none that it was forked from.
#[inline(always)]
#[must_use]
pub fn is_own(words: &[u64; WORDS]) -> bool {
    fork::is_own(words[0])
}

/// The words of a transfer that goes on later.
#[inline(always)]
#[must_use]
pub fn suspend(transfer: Transfer) -> [u64; WORDS] {
    transfer.into_words()
}
