//! Agents and transfers as plain numbers, for bindings to other languages: those keep them where any thread may
//! write, and a mixed-up copy must do no harm. Not for programs; this may change with any version.

use telering_core::names;
use telering_core::slot::{Group, Operation, Transfer as Finished};

use super::builder::process_clock;
use super::local::{self, ById};
use super::{Mode, Status, Telemetry, Transfer, TransferRecord};
use crate::file::fork;

/// Words of a transfer.
pub const WORDS: usize = 6;

/// What recording needs to know of an agent with the clock of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Never reused within a process.
    pub id: u64,
    /// Bit 0: transfers are timed; bit 1: the agent records; bits 8 and 16: groups; bits 32 to 63: enabled rows.
    pub shape: u64,
}

const TIMED: u64 = 1;
const RECORDS: u64 = 2;
const _: () = assert!(names::BUILT_IN.len() <= 32);

impl Key {
    /// The numbers of an agent.
    #[must_use]
    pub fn of(agent: &Telemetry) -> Key {
        let agent = &agent.0;
        let flag = |is: bool, flag: u64| if is { flag } else { 0 };
        let shape = flag(agent.timed, TIMED)
            | flag(agent.mode != Mode::Off, RECORDS)
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

    /// Whether the agent does anything for transfers.
    #[inline(always)]
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.shape & TIMED != 0
    }

    #[inline(always)]
    fn group(&self, operation: Operation) -> Group {
        Group::from_bits((self.shape >> (8 + 8 * operation as u32)) as u8)
    }

    /// As [`Telemetry::begin_transfer`], for an agent whose transfers are timed.
    #[inline(always)]
    #[must_use]
    pub fn begin(&self, operation: Operation, bytes: u64, descriptors: u32) -> [u64; WORDS] {
        let group = self.group(operation);
        Transfer::begin(self.id, process_clock(), group, operation, bytes, descriptors).into_words()
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
        if self.shape & RECORDS != 0 {
            super::record_error(ById(self.id), process_clock().ticks(), status);
        }
    }

    /// One built-in event that is no error and no transfer's, such as [`names::MEMORY_REGISTERED`].
    pub fn single(&self, id: u32, value: u64) {
        let wanted = names::index_of(id).is_some_and(|row| self.shape >> 32 >> row & 1 == 1);
        if self.shape & RECORDS != 0 && wanted {
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
