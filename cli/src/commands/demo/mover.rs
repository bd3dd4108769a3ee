//! One thread that moves data for an agent, tells the agent, and keeps its own account.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use hdrhistogram::Histogram;
use telering::{Operation, Status, Telemetry, Transfer};

use super::peer::Link;

/// Every so many transfers the program records an event of its own.
const BATCH: u64 = 100;
/// One of so many transfers goes through the socket, one of so many fails.
const SOCKET_EVERY: u64 = 8;
const FAIL_EVERY: u64 = 250;
/// A thread that was held up catches up on this much, not on more.
const CATCH_UP: Duration = Duration::from_millis(100);

/// What a thread did, counted without telemetry.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) tx_bytes: u64,
    pub(super) rx_bytes: u64,
    pub(super) tx_requests: u64,
    pub(super) rx_requests: u64,
    pub(super) errors: u64,
    pub(super) memory_registered: u64,
    /// Events that telemetry should have recorded.
    pub(super) events: u64,
    /// Microseconds of each transfer, by [`Way`].
    pub(super) latencies: [Histogram<u64>; 4],
}

/// How data went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    MemoryWrite,
    MemoryRead,
    SocketWrite,
    SocketRead,
}

impl Way {
    pub(super) const ALL: [Way; 4] = [Way::MemoryWrite, Way::MemoryRead, Way::SocketWrite, Way::SocketRead];

    pub(super) fn name(self) -> &'static str {
        match self {
            Way::MemoryWrite => "write, memory copy",
            Way::MemoryRead => "read, memory copy",
            Way::SocketWrite => "write, loopback socket",
            Way::SocketRead => "read, loopback socket",
        }
    }

    fn operation(self) -> Operation {
        match self {
            Way::MemoryWrite | Way::SocketWrite => Operation::Write,
            Way::MemoryRead | Way::SocketRead => Operation::Read,
        }
    }
}

impl Account {
    pub(super) fn new() -> anyhow::Result<Account> {
        let histogram = || Histogram::new(3).context("cannot make a histogram");
        Ok(Account {
            tx_bytes: 0,
            rx_bytes: 0,
            tx_requests: 0,
            rx_requests: 0,
            errors: 0,
            memory_registered: 0,
            events: 0,
            latencies: [histogram()?, histogram()?, histogram()?, histogram()?],
        })
    }

    pub(super) fn add(&mut self, other: &Account) -> anyhow::Result<()> {
        self.tx_bytes += other.tx_bytes;
        self.rx_bytes += other.rx_bytes;
        self.tx_requests += other.tx_requests;
        self.rx_requests += other.rx_requests;
        self.errors += other.errors;
        self.memory_registered += other.memory_registered;
        self.events += other.events;
        for (sum, latencies) in self.latencies.iter_mut().zip(&other.latencies) {
            sum.add(latencies).context("cannot add histograms")?;
        }
        Ok(())
    }
}

/// What a thread is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// Bytes of one transfer at the most.
    pub(super) size: usize,
    /// Transfers per second, 0 for as many as it can.
    pub(super) rate: u64,
    pub(super) end: Instant,
    pub(super) seed: u64,
}

/// Moves data until the time is over or `stop` is set.
pub(super) fn run(agent: &Telemetry, order: Order, stop: &AtomicBool) -> anyhow::Result<Account> {
    let mut mover = Mover::start(agent, order)?;
    let began = Instant::now();
    let interval =
        if order.rate == 0 { Duration::ZERO } else { Duration::from_secs(1) / order.rate.min(1_000_000) as u32 };
    let mut due = began;
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        if now >= order.end {
            break;
        }
        if order.rate > 0 {
            if due > now {
                thread::sleep((due - now).min(order.end - now));
            }
            due = (due + interval).max(now.checked_sub(CATCH_UP).unwrap_or(now));
        }
        mover.step()?;
    }
    mover.finish()
}

struct Mover<'a> {
    agent: &'a Telemetry,
    link: Link,
    near: Vec<u8>,
    far: Vec<u8>,
    account: Account,
    random: u64,
    steps: u64,
    socket_bytes: (u64, u64),
    batch_bytes: u64,
}

impl<'a> Mover<'a> {
    fn start(agent: &'a Telemetry, order: Order) -> anyhow::Result<Mover<'a>> {
        let mut account = Account::new()?;
        let (near, far) = (vec![0x55; order.size], vec![0xaa; order.size]);
        for region in [&near, &far] {
            agent.memory_registered(region.len() as u64);
            account.memory_registered += region.len() as u64;
            account.events += 1;
        }
        let mut link = Link::connect().map_err(socket_failed)?;
        agent.connected();
        let name = agent.name().as_bytes();
        link.exchange(name).map_err(socket_failed)?;
        agent.metadata_sent(name.len() as u64);
        agent.metadata_received(name.len() as u64);
        account.events += 3;
        let random = order.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Ok(Mover { agent, link, near, far, account, random, steps: 0, socket_bytes: (0, 0), batch_bytes: 0 })
    }

    /// A number that looks random (xorshift).
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn step(&mut self) -> anyhow::Result<()> {
        self.steps += 1;
        let (dice, size) = (self.random(), self.near.len());
        let len = size - (self.random() as usize % size) / 2;
        if dice.is_multiple_of(FAIL_EVERY) {
            self.fail_one(dice / FAIL_EVERY % 3).map_err(socket_failed)?;
        } else {
            let read = dice & (1 << 32) != 0;
            let socket = (dice >> 33).is_multiple_of(SOCKET_EVERY);
            let way = match (socket, read) {
                (false, false) => Way::MemoryWrite,
                (false, true) => Way::MemoryRead,
                (true, false) => Way::SocketWrite,
                (true, true) => Way::SocketRead,
            };
            self.transfer(way, len)?;
        }
        if self.steps.is_multiple_of(BATCH) {
            self.agent.event("demo_batch_bytes", std::mem::take(&mut self.batch_bytes));
            self.account.events += 1;
        }
        Ok(())
    }

    fn transfer(&mut self, way: Way, len: usize) -> anyhow::Result<()> {
        let stamp = self.steps as u8;
        let mut transfer = self.agent.begin_transfer(way.operation(), len as u64, 1);
        match way {
            Way::MemoryWrite => copy_checked(&mut self.near[..len], &mut self.far[..len], stamp)?,
            Way::MemoryRead => copy_checked(&mut self.far[..len], &mut self.near[..len], stamp)?,
            Way::SocketWrite => self.write_socket(&mut transfer, len).map_err(socket_failed)?,
            Way::SocketRead => self.read_socket(&mut transfer, len).map_err(socket_failed)?,
        }
        transfer.finish();
        let account = &mut self.account;
        match way.operation() {
            Operation::Write => {
                account.tx_bytes += len as u64;
                account.tx_requests += 1;
            }
            Operation::Read => {
                account.rx_bytes += len as u64;
                account.rx_requests += 1;
            }
        }
        account.events += 4;
        self.batch_bytes += len as u64;
        let telemetry = transfer.telemetry().context("a finished transfer has no telemetry")?;
        let us = u64::try_from(telemetry.xfer_duration.as_micros()).unwrap_or(u64::MAX);
        account.latencies[way as usize].saturating_record(us);
        Ok(())
    }

    fn write_socket(&mut self, transfer: &mut Transfer, len: usize) -> io::Result<()> {
        self.link.send(&self.near[..len])?;
        transfer.posted();
        let arrived = self.link.arrived()?;
        self.socket_bytes.0 += arrived;
        if arrived == len as u64 { Ok(()) } else { Err(io::Error::other("bytes are missing at the far end")) }
    }

    fn read_socket(&mut self, transfer: &mut Transfer, len: usize) -> io::Result<()> {
        self.link.request(len as u64)?;
        transfer.posted();
        if !self.link.receive(&mut self.near[..len])? {
            return Err(io::Error::other("the far end refused"));
        }
        self.socket_bytes.1 += len as u64;
        Ok(())
    }

    /// A transfer that fails: beyond its region, refused by the far end, or given up.
    fn fail_one(&mut self, how: u64) -> io::Result<()> {
        let mut transfer = self.agent.begin_transfer(Operation::Read, self.near.len() as u64, 1);
        match how {
            0 => {
                let beyond = self.near.len() + 1;
                if self.near.get(..beyond).is_none() {
                    transfer.fail(Status::InvalidParam);
                }
            }
            1 => {
                self.link.request_unknown()?;
                transfer.posted();
                if !self.link.receive(&mut [])? {
                    transfer.fail(Status::NotFound);
                }
            }
            // Given up: the agent records that it was cancelled.
            _ => drop(transfer),
        }
        self.account.errors += 1;
        self.account.events += 1;
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<Account> {
        let seen = self.link.close().map_err(socket_failed)?;
        self.agent.disconnected();
        self.account.events += 1;
        for region in [&self.near, &self.far] {
            self.agent.memory_deregistered(region.len() as u64);
            self.account.events += 1;
        }
        ensure!(
            self.socket_bytes == (seen.taken, seen.given),
            "the two ends of the loopback socket disagree on what was moved"
        );
        Ok(self.account)
    }
}

/// Told as text alone: that the demo's own socket broke must not look like an output that nobody reads.
fn socket_failed(error: io::Error) -> anyhow::Error {
    anyhow!("the loopback socket failed: {error}")
}

/// Copies, and looks whether the first and the last byte arrived.
fn copy_checked(from: &mut [u8], to: &mut [u8], stamp: u8) -> anyhow::Result<()> {
    let last = from.len() - 1;
    from[0] = stamp;
    from[last] = stamp;
    to.copy_from_slice(from);
    ensure!(to[0] == stamp && to[last] == stamp, "a memory copy did not arrive");
    Ok(())
}
