//! Others do to a live file what they like: random bytes, truncation, unlinking, replacing. The host lives, its
//! transfers go on, its file comes back, and readers end or go on, all without a signal.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod acceptance;

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use acceptance::{Dice, Heard, TRANSFERS_ONLY, Talking, agent, eventually, names_in, order, process, transfer};
use telering::core::layout::image::{control, extension_offset, u64_at};
use telering::core::names;
use telering::reader::{Follower, Item, Layout, Reader};
use telering::{Operation, Telemetry};

/// Not a test of its own: fills the file with random bytes, by every means, until it is killed.
#[test]
fn a_vandal() {
    let Some((_, path)) = order() else { return };
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let len = file.metadata().unwrap().len() as usize;
    // SAFETY: a fresh mapping of the whole file, whose size nobody changes in this test.
    let start = unsafe {
        libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(start, libc::MAP_FAILED);
    // SAFETY: the mapping lives as long as the process, and atomics are what others may change meanwhile.
    let words: &[AtomicU64] = unsafe { std::slice::from_raw_parts(start.cast(), len / 8) };
    let mut dice = Dice(0x1234_5678_9abc_def1);
    for round in 0_u64.. {
        let at = dice.below(words.len() as u64) as usize;
        // Numbers that look almost right do the most harm.
        let number = match dice.below(4) {
            0 => dice.roll(),
            1 => dice.below(1 << 20),
            2 => u64::MAX - dice.below(300),
            _ => words[at].load(Ordering::Relaxed).wrapping_add(dice.below(64)).wrapping_sub(32),
        };
        words[at].store(number, Ordering::Relaxed);
        // The positions, all the time.
        words[(round % 2) as usize].store(number, Ordering::Relaxed);
        if round % 1024 == 0 {
            let bytes: Vec<u8> = (0..len).map(|_| dice.roll() as u8).collect();
            file.write_all_at(&bytes, 0).unwrap();
        }
        if round == 4096 {
            println!("\nBUSY");
        }
    }
}

/// Events in the ring that the vandal is after.
const CAPACITY: u64 = 256;

fn random_bytes(transfers: u64) {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let agent = agent("victim")
        .dir(directory.path())
        .buffer_size(CAPACITY)
        .staging_records(1 << 14)
        .metrics(TRANSFERS_ONLY)
        .run_interval(Duration::from_millis(2))
        .close_patience(Duration::from_secs(60))
        .on_warning(heard.ear())
        .build();
    let path = agent.path().unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let mut vandal = Talking::start(process("a_vandal", "go", &path));
    vandal.hear("BUSY").unwrap();
    for number in 1..=transfers {
        if number % 100 == 0 {
            let mut live = agent.begin_transfer(Operation::Write, number, 1);
            live.posted();
            live.finish();
            assert_eq!(live.telemetry().unwrap().total_bytes, number);
        } else {
            agent.record_transfer(&transfer(number));
        }
        if number % 500 == 0 {
            assert!(agent.flush_now(Duration::from_secs(60)));
            // Whatever these give: no panic, no hang, no signal.
            let mut items = Vec::new();
            let _ = reader.read(&mut items);
            assert!(items.len() <= 4096);
            let _ = reader.info();
            let _ = Reader::open(&path).map(|mut fresh| fresh.read(&mut items));
            let _ = telering::source::scan(directory.path()).unwrap();
        }
    }
    assert!(vandal.child.try_wait().unwrap().is_none(), "the vandal was there to the end");
    vandal.kill();
    // What the producer writes again and again is right again: it knows its positions for itself.
    agent.record_transfer(&transfer(transfers + 1));
    let transfers = transfers + 1;
    let totals = agent.snapshot();
    let bytes = totals.entry(names::TX_BYTES).unwrap();
    assert_eq!((bytes.count, bytes.sum), (transfers, transfers * (transfers + 1) / 2));
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported), (transfers * 4, transfers * 4));
    assert_eq!(flow.lost.total(), 0);
    let mut words = [0; 16];
    let control = extension_offset(CAPACITY).unwrap() + control::START as u64;
    fs::File::open(&path).unwrap().read_exact_at(&mut words, control).unwrap();
    let positions = [0, 8].map(|at| u64_at(&words, at));
    assert_eq!(positions, [flow.exported; 2], "announced and finished");
    assert_eq!(heard.all(), [""; 0], "its own books are right, and it doesn't look at others'");
}

#[test]
fn random_bytes_in_a_live_file_change_nothing_for_its_producer() {
    random_bytes(10_000);
}

#[test]
#[ignore = "takes some seconds: half a million transfers under random bytes"]
fn random_bytes_for_long_change_nothing_for_the_producer() {
    random_bytes(500_000);
}

/// What is done to a file.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Empty,
    Shorten,
    CopyTruncate,
    Grow,
    Unlink,
    Replace,
    /// As a NIXL agent of the same name in the same directory does it: it takes the inode for its own ring.
    NixlAgent,
}

const DEEDS: [Deed; 11] = {
    use Deed::*;
    // Between two deeds to the name one to the inode: a name that is unlinked again and again is linked back ever
    // more slowly, which tests of the files' own show.
    [Empty, Unlink, Shorten, Replace, CopyTruncate, Unlink, Empty, Replace, Grow, NixlAgent, Unlink]
};

/// Bytes of NIXL's ring of 64 events, layout of version 4.
const RING_LEN: u64 = 40 + 64 * 16;

fn nixl_ring() -> Vec<u8> {
    let mut bytes = vec![0; RING_LEN as usize];
    bytes[16] = 4;
    bytes[20] = 4;
    bytes[24] = 64;
    bytes[32] = 63;
    bytes
}

impl Deed {
    fn is_done_to(self, path: &Path) {
        let file = || fs::File::options().write(true).open(path).unwrap();
        match self {
            Deed::Empty => file().set_len(0).unwrap(),
            Deed::Shorten => file().set_len(100).unwrap(),
            Deed::CopyTruncate => {
                fs::copy(path, path.with_extension("1")).unwrap();
                file().set_len(0).unwrap();
            }
            Deed::Grow => file().set_len(1 << 20).unwrap(),
            Deed::Unlink => fs::remove_file(path).unwrap(),
            Deed::NixlAgent => file().write_all_at(&nixl_ring(), 0).and_then(|()| file().set_len(RING_LEN)).unwrap(),
            Deed::Replace => {
                fs::write(path.with_extension("new"), "somebody's notes").unwrap();
                fs::rename(path.with_extension("new"), path).unwrap();
            }
        }
    }
}

/// One agent and what is done to its file, one deed after the other.
struct Victim {
    agent: Telemetry,
    heard: Heard,
    directory: PathBuf,
    recorded: AtomicU64,
    /// Looks that its readers took.
    looks: AtomicU64,
}

impl Victim {
    fn new(outer: &Path, place: usize) -> Victim {
        let (heard, directory) = (Heard::default(), outer.join(place.to_string()));
        // Flushed when told: a batch that is being written in the very microsecond of a truncation can't be
        // saved (README, Limits), and this test isn't about luck.
        let agent = agent("victim")
            .dir(&directory)
            .buffer_size(64)
            .metrics(TRANSFERS_ONLY)
            .run_interval(Duration::from_secs(3600))
            .close_patience(Duration::from_secs(60))
            .on_warning(heard.ear())
            .build();
        Victim { agent, heard, directory, recorded: AtomicU64::new(0), looks: AtomicU64::new(0) }
    }

    fn record(&self, count: u64) {
        for _ in 0..count {
            let number = self.recorded.fetch_add(1, Ordering::Relaxed) + 1;
            let mut transfer = self.agent.begin_transfer(Operation::Write, number, 1);
            transfer.finish();
            assert_eq!(transfer.telemetry().unwrap().total_bytes, number);
        }
        assert!(self.agent.flush_now(Duration::from_secs(60)));
    }

    /// The live file that a reader finds in the directory, by its name alone.
    fn live(&self) -> Option<PathBuf> {
        let found = telering::source::scan(&self.directory).unwrap().found;
        let mut live = found.into_iter().filter(|found| found.liveness.is_alive());
        let path = live.next()?.path;
        assert!(live.next().is_none(), "one file of this agent at a time");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name == "victim" || name.starts_with(&format!("victim@{}", std::process::id())), "{name}");
        Some(path)
    }

    /// Lets the readers look at what is there now.
    fn is_watched(&self) {
        let before = self.looks.load(Ordering::Relaxed);
        eventually("readers look", Duration::from_secs(60), || self.looks.load(Ordering::Relaxed) >= before + 4);
    }

    fn suffers(&self, deed: Deed) {
        let before = self.live().expect("a live file");
        deed.is_done_to(&before);
        let start = Instant::now();
        self.record(3);
        // The bound of the promise is 2 s; a machine that is busy with other things gets more.
        eventually(&format!("a file after {deed:?}"), Duration::from_secs(30), || {
            self.live().is_some_and(|path| Some(path) == self.agent.path())
        });
        let took = start.elapsed();
        if took > Duration::from_secs(2) {
            println!("{deed:?}: the file was back after {took:?}");
        }
        self.record(1);
        // What is recorded now stands in the file that is there now.
        let mut reader = Reader::open(self.live().unwrap()).unwrap();
        let mut items = Vec::new();
        while reader.read(&mut items).unwrap() > 0 {}
        let last = items.iter().rev().find_map(|item| match item {
            Item::Event(event) if event.name == "agent_tx_bytes" => Some(event.value),
            _ => None,
        });
        assert_eq!(last, Some(self.recorded.load(Ordering::Relaxed)), "after {deed:?}");
        let totals = reader.info().unwrap().metrics.expect("totals go on in a new file");
        assert_eq!(totals.entry(names::TX_BYTES).unwrap().count, last.unwrap(), "after {deed:?}");
        self.is_watched();
    }

    fn ends(&self) {
        let recorded = self.recorded.load(Ordering::Relaxed);
        let flow = self.agent.close();
        assert_eq!(flow.recorded, recorded * 4);
        assert_eq!((flow.exported, flow.lost.total()), (recorded * 4, 0));
        let heard = self.heard.all();
        for kind in ["changed its size", "unlinked it", "took its name"] {
            let said = heard.iter().filter(|message| message.contains(kind)).count();
            assert_eq!(said, 1, "{kind}: {heard:#?}");
        }
        assert_eq!(heard.len(), 3, "{heard:#?}");
        // Somebody's notes are as they were, and so is the ring of the NIXL agent.
        let mut rings = 0;
        for name in names_in(&self.directory) {
            let path = self.directory.join(&name);
            if Reader::open(&path).is_ok_and(|reader| matches!(reader.layout(), Layout::Nixl(_))) {
                rings += 1;
                assert_eq!(fs::read(&path).unwrap(), nixl_ring(), "{name}");
            } else if Reader::open(&path).is_err() && !name.ends_with(".1") {
                assert_eq!(fs::read_to_string(path).unwrap(), "somebody's notes", "{name}");
            }
        }
        assert_eq!(rings, 1);
    }
}

/// What a watcher saw.
#[derive(Debug, Default)]
struct Watched {
    events: u64,
    resets: u64,
    errors: u64,
}

/// Readers of a victim, at work while the deeds are done: each read gives items, nothing or an error.
fn watch(victim: &Victim, done: &AtomicBool) -> Watched {
    let mut watched = Watched::default();
    let name = victim.directory.join("victim");
    let mut follower = Follower::open(&name).ok();
    let mut readers: Vec<Reader> = Vec::new();
    let mut items = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let polled = follower.as_mut().map(|follower| follower.poll(&mut items));
        // The name belongs to somebody else for good: the end, said properly.
        if matches!(polled, Some(Err(_))) {
            follower = None;
        }
        for item in items.drain(..) {
            match item {
                Item::Event(_) => watched.events += 1,
                Item::Reset { .. } => watched.resets += 1,
                other => panic!("nothing is lost or false here: {other:?}"),
            }
        }
        readers.extend(Reader::open(&name));
        readers.retain_mut(|reader| {
            let sound = reader.read(&mut items).is_ok() && reader.info().is_ok();
            watched.errors += u64::from(!sound);
            sound
        });
        items.clear();
        if readers.len() > 8 {
            readers.drain(..4);
        }
        victim.looks.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
    }
    watched
}

/// What the follower of the plain name sees of [`DEEDS`]: the first file, the two that take its place when it is
/// emptied and shortened, and of the third what is recorded until it is truncated under its next name.
const FOLLOWED: (u64, u64) = (4 + 2 * 16 + 2 * 16, 2);

fn suffer(victims: usize) {
    let outer = tempfile::tempdir().unwrap();
    let done = AtomicBool::new(false);
    let victims: Vec<_> = (0..victims).map(|place| Victim::new(outer.path(), place)).collect();
    std::thread::scope(|scope| {
        let pairs = victims.iter().map(|victim| {
            victim.record(1);
            let watcher = scope.spawn(|| watch(victim, &done));
            let sufferer = scope.spawn(|| {
                victim.is_watched();
                DEEDS.iter().for_each(|&deed| victim.suffers(deed));
                victim.ends();
            });
            (sufferer, watcher)
        });
        let (sufferers, watchers): (Vec<_>, Vec<_>) = pairs.collect();
        let ended: Vec<_> = sufferers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|result| result.unwrap());
        for watcher in watchers {
            let watched = watcher.join().unwrap();
            assert!((watched.events, watched.resets) == FOLLOWED && watched.errors > 0, "{watched:?}");
        }
    });
}

#[test]
fn a_file_comes_back_after_whatever_is_done_to_it() {
    suffer(2);
}

#[test]
#[ignore = "takes half a minute: 220 deeds to twenty files"]
fn files_come_back_after_two_hundred_deeds() {
    suffer(20);
}
