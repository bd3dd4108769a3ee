//! One image of a directory: its numbers, and how long they are published.

use std::fs::File;
use std::time::Instant;

use telering_core::layout::image::{Control, Head, State, TimeBase};

use super::Times;
use super::list::Stamp;
use crate::file::lock::{self, LockState};
use crate::prometheus::{Labels, Sample};
use crate::reader::tail::{self, Numbers};
use crate::reader::{Identity, Liveness};

/// A heartbeat may be this much ahead of this clock: another processor wrote it.
const AHEAD_US: u64 = 1_000_000;

/// What tells an agent from all others, whatever file it writes into.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Agent {
    /// Boot, process id, start of the process; the number of the agent there, and its name.
    OfProcess([u8; 16], u64, u64, u64, String),
    /// One that doesn't say of which process it is, by its image.
    OfFile(u64),
}

impl Agent {
    pub(super) fn of_file(instance: u64) -> Agent {
        Agent::OfFile(instance)
    }

    fn of(who: &Identity, instance: u64) -> Agent {
        if who.process_start == 0 || who.boot_id == [0; 16] {
            return Agent::OfFile(instance);
        }
        Agent::OfProcess(who.boot_id, who.pid, who.process_start, who.agent_instance, who.agent.clone())
    }
}

/// What is known of an image between two scrapes.
pub(super) struct Image {
    pub(super) stamp: Stamp,
    head: Head,
    pub(super) agent: Agent,
    pub(super) identity: Identity,
    /// The last numbers that were whole.
    pub(super) sample: Sample,
    /// What was added to the sums before.
    pub(super) added: Option<Sample>,
    pub(super) liveness: Liveness,
    /// Whether the writer was alive at any look, or was so after the look before this one.
    lived: bool,
    /// When the writer was first found gone, and whether the numbers were published since.
    gone_since: Option<Instant>,
    published_gone: bool,
    /// Nothing is published any more: the writer is gone, and its time is over.
    pub(super) expired: bool,
    /// Apart from those of another image with the same labels.
    pub(super) apart: bool,
}

/// What a look at an image found.
pub(super) enum Look {
    /// Its numbers are up to date, or as whole as they could be had.
    Same,
    /// Another file, or none of ours any more.
    Other,
}

impl Image {
    /// An image that was not seen before. Its numbers come with the first [`look`](Self::look).
    pub(super) fn new(stamp: Stamp, head: Head) -> Image {
        Image {
            stamp,
            agent: Agent::of_file(head.instance),
            head,
            identity: Identity::default(),
            sample: Sample::default(),
            added: None,
            liveness: Liveness::Unknown,
            lived: false,
            gone_since: None,
            published_gone: false,
            expired: false,
            apart: false,
        }
    }

    pub(super) fn instance(&self) -> u64 {
        self.head.instance
    }

    /// Of two copies that nobody writes, the one with more of this counts.
    pub(super) fn progress(&self) -> u64 {
        self.sample.metrics.generation
    }

    /// Reads the numbers. `file` was opened a moment ago and is closed soon: the lock that is asked for on it goes
    /// with it.
    pub(super) fn look(&mut self, file: &File, stamp: Stamp, buffer: &mut Vec<u8>, times: &Times) -> Look {
        if stamp.inode != self.stamp.inode || stamp.len != self.stamp.len {
            return Look::Other;
        }
        self.stamp = stamp;
        // First the lock, then the numbers: of a writer that dies in between the last numbers are read.
        let lock = lock::lock_state_of(file);
        let first = self.sample.writer.is_none() && self.sample.labels.is_empty();
        let Ok(Some(tail)) = tail::read(file, stamp.len, &self.head, buffer) else { return Look::Other };
        if first {
            self.identity = tail.identity().ok().flatten().unwrap_or_default();
            self.agent = Agent::of(&self.identity, self.head.instance);
            self.sample.start_us = Some(self.head.created_us).filter(|&us| us > 0);
            self.sample.writer.clone_from(&self.identity.writer);
        }
        if let Ok(numbers) = tail.numbers() {
            self.take(numbers);
        }
        self.judge(lock, tail.control(), times);
        Look::Same
    }

    /// Takes over what is whole; what isn't stays as it was.
    fn take(&mut self, numbers: Numbers) {
        let Numbers { metrics, dynamic, flow, notices } = numbers;
        if let Some(metrics) = metrics.filter(|new| new.generation >= self.sample.metrics.generation) {
            self.sample.metrics = metrics;
            if let Some(dynamic) = dynamic {
                self.sample.dynamic = dynamic;
            }
        }
        self.sample.flow = flow.or(self.sample.flow);
        self.sample.notices = notices.or(self.sample.notices);
    }

    fn judge(&mut self, lock: LockState, control: &Control, times: &Times) {
        let lock = match lock {
            LockState::Held => crate::reader::LockState::Held,
            LockState::Free => crate::reader::LockState::Free,
            LockState::Unsupported => crate::reader::LockState::Unknown,
        };
        self.liveness = Liveness::of_image(lock, control, times.now_us);
        if self.liveness.is_alive() {
            (self.lived, self.gone_since, self.published_gone) = (true, None, false);
            return;
        }
        let since = *self.gone_since.get_or_insert(times.now);
        let age_us = self.age_us(control, times).unwrap_or_else(|| {
            u64::try_from(times.now.saturating_duration_since(since).as_micros()).unwrap_or(u64::MAX)
        });
        // Lived and died between two scrapes: its numbers were never seen.
        self.lived |= control.time_base == TimeBase::Unix
            && (times.before_us..=times.now_us).contains(&control.heartbeat)
            && control.state != State::Formatting;
        let owed = self.lived && !self.published_gone;
        self.expired = age_us > times.ttl_us && !owed;
    }

    /// Microseconds since the writer was last seen; `None` where the image's clock is another machine's. A time to
    /// come is no time to rely on: then the writer is gone for ever.
    fn age_us(&self, control: &Control, times: &Times) -> Option<u64> {
        let now_us = match control.time_base {
            TimeBase::Unix => times.now_us,
            TimeBase::Boot if self.identity.boot_id != [0; 16] && self.identity.boot_id == times.boot_id => boot_us()?,
            _ => return None,
        };
        match now_us.checked_sub(control.heartbeat) {
            Some(age) => Some(age),
            None if control.heartbeat - now_us <= AHEAD_US => Some(0),
            None => Some(u64::MAX),
        }
    }

    /// Nobody writes it any more, and nobody wants to hear of it. Without locks that can't be known for sure.
    pub(super) fn is_settled(&self) -> bool {
        self.expired && matches!(self.liveness, Liveness::Dead | Liveness::Closed)
    }

    /// The numbers are on a page by now.
    pub(super) fn was_published(&mut self) {
        self.published_gone = self.gone_since.is_some();
    }

    /// The labels of upstream, in its order.
    pub(super) fn labels(&self) -> Labels {
        let who = &self.identity;
        let labels = Labels::new()
            .with("hostname", who.hostname.as_str())
            .with("agent_name", who.agent.as_str())
            .with("pid", who.pid.to_string())
            .with("agent_instance", who.agent_instance.to_string());
        with_rank(labels, who.rank.as_deref())
    }

    /// Those of them that stay the same when a job starts again.
    pub(super) fn stable_labels(&self) -> Labels {
        with_rank(Labels::new().with("hostname", self.identity.hostname.as_str()), self.identity.rank.as_deref())
    }
}

/// Microseconds since this machine booted, sleep included.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_us() -> Option<u64> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).ok()?.checked_mul(1_000_000)?.checked_add(now.tv_nsec as u64 / 1000)
}

/// Other systems don't say which boot this is, so no image's clock is known to be theirs.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot_us() -> Option<u64> {
    None
}

fn with_rank(labels: Labels, rank: Option<&str>) -> Labels {
    match rank {
        Some(rank) => labels.with("local_rank", rank),
        None => labels,
    }
}
