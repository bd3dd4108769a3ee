//! What a scrape of a directory costs: 1,000 live files against a loop that opens and reads the same bytes, 5,000 dead
//! ones, and memory over 10,000 scrapes with agents that come and go.
//!
//! ```text
//! cargo run --release -p telering-benches --example scrape [-- --quick]
//! ```
//!
//! Ends with 1 if a scrape costs more than five times the loop, or if memory grows.

mod heap;

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use telering::core::layout::image::extension_offset;
use telering::prometheus::{Directory, DirectoryOptions, LabelSet};
use telering::{Operation, Telemetry, TransferRecord};

/// A scrape may cost so many times the loop.
const BAR: f64 = 5.0;
/// The ring of each file; the scrape never looks at it.
const EVENTS: u64 = 64;
/// So many bytes more may be allocated at the end than after a third of the scrapes: a page whose numbers have grown.
/// A leak of two bytes for each agent that came and went in between would be more.
const GROWTH: usize = 1 << 10;

type Failure = Box<dyn Error>;

fn main() -> Result<ExitCode, Failure> {
    let quick = std::env::args().nth(1).is_some_and(|argument| argument == "--quick");
    // Memory first: what thousands of agents leave free in the allocator would hide that more is needed.
    let fine = [memory(if quick { 7000 } else { 10_000 })?, live(if quick { 5 } else { 31 })?, dead()?];
    Ok(ExitCode::from(u8::from(fine.contains(&false))))
}

/// Agents whose flush threads have nothing to do, so that the scrape is measured and not they.
fn agents(directory: &Path, numbers: Range<u32>) -> Result<Vec<impl Drop>, Failure> {
    struct Kept(Option<(Telemetry, telering::ByHand)>);
    impl Drop for Kept {
        fn drop(&mut self) {
            if let Some((agent, by_hand)) = self.0.take() {
                by_hand.finish();
                agent.close();
            }
        }
    }
    let mut agents = Vec::new();
    for number in numbers {
        let builder = Telemetry::builder(format!("agent-{number:05}")).ignore_environment(true).enable(true);
        let builder = builder.dir(directory).buffer_size(EVENTS).staging_records(64).rank((number % 8).to_string());
        let (agent, by_hand) = builder.build_by_hand()?;
        let mut by_hand = by_hand.ok_or("no file")?;
        for transfer in 1..=20 {
            agent.record_transfer(&TransferRecord {
                operation: Operation::Write,
                bytes: transfer * 1_000_003,
                descriptors: 1,
                post_duration: Duration::from_micros(7),
                xfer_duration: Duration::from_micros(40 * transfer),
            });
        }
        agent.event("cache_hit", 1);
        by_hand.flush();
        agents.push(Kept(Some((agent, by_hand))));
    }
    Ok(agents)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            files.push(entry.path());
        }
    }
    Ok(files)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn live(rounds: usize) -> Result<bool, Failure> {
    let scene = scene()?;
    let _agents = agents(scene.path(), 0..1000)?;
    let files = files(scene.path())?;
    let start = extension_offset(EVENTS).ok_or("no image has this capacity")?;
    let mut buffer = vec![0; 64 << 10];
    let mut read = || -> Result<u64, Failure> {
        let mut bytes = 0;
        for path in &files {
            bytes += File::open(path)?.read_at(&mut buffer, start)? as u64;
        }
        Ok(black_box(bytes))
    };
    let mut fine = true;
    for labels in [LabelSet::Full, LabelSet::Stable] {
        let mut options = DirectoryOptions::default();
        options.labels = labels;
        let mut directory = Directory::new(scene.path(), options);
        let mut page = String::new();
        directory.render(&mut page);
        let (mut loops, mut scrapes) = (Vec::new(), Vec::new());
        // By turns, so that both meet the same machine.
        for _ in 0..rounds {
            let begin = Instant::now();
            read()?;
            loops.push(begin.elapsed());
            page.clear();
            let begin = Instant::now();
            directory.render(&mut page);
            scrapes.push(begin.elapsed());
        }
        let (one_loop, scrape) = (median(&mut loops), median(&mut scrapes));
        let ratio = scrape.as_secs_f64() / one_loop.as_secs_f64();
        let passed = ratio <= BAR && page.contains("telering_processes{state=\"alive\"} 1\n");
        fine &= passed;
        println!(
            "{} live files, labels {labels:?}: open + pread of {} bytes each {one_loop:.2?}, scrape {scrape:.2?} ({} KiB of \
             text): {ratio:.2} times, bar {BAR} {}",
            files.len(),
            read()? / files.len() as u64,
            page.len() / 1024,
            verdict(passed)
        );
    }
    Ok(fine)
}

fn dead() -> Result<bool, Failure> {
    let scene = scene()?;
    drop(agents(scene.path(), 0..5000)?);
    let _living = agents(scene.path(), 0..1)?;
    std::thread::sleep(Duration::from_millis(50));
    let mut options = DirectoryOptions::default();
    options.ttl = Duration::from_millis(1);
    let mut directory = Directory::new(scene.path(), options);
    let mut page = String::new();
    let begin = Instant::now();
    directory.render(&mut page);
    let first = begin.elapsed();
    let mut again: Vec<Duration> = (0..9)
        .map(|_| {
            page.clear();
            let begin = Instant::now();
            directory.render(&mut page);
            begin.elapsed()
        })
        .collect();
    let again = median(&mut again);
    // agent-00000 lives again under its name.
    let passed = page.contains("telering_processes{state=\"expired\"} 4999\n") && again < Duration::from_secs(1);
    println!("5000 dead files: first scrape {first:.2?}, then {again:.2?} {}", verdict(passed));
    Ok(passed)
}

/// What this process holds; files that were mapped and not let go would not show in the heap.
#[derive(Clone, Copy)]
struct Held {
    heap: usize,
    mappings: usize,
    descriptors: usize,
}

impl Held {
    fn now() -> Result<Held, Failure> {
        let mappings = std::fs::read_to_string("/proc/self/maps")?;
        let mappings = mappings.lines().filter(|line| line.contains("/agent-")).count();
        let descriptors = std::fs::read_dir("/proc/self/fd")?.count();
        Ok(Held { heap: heap::held(), mappings, descriptors })
    }

    fn is_flat_since(self, before: Held) -> bool {
        self.heap <= before.heap + GROWTH && self.mappings <= before.mappings && self.descriptors <= before.descriptors
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, {} mapped files, {} descriptors", self.heap, self.mappings, self.descriptors)
    }
}

fn memory(scrapes: u32) -> Result<bool, Failure> {
    let scene = scene()?;
    let mut options = DirectoryOptions::default();
    options.labels = LabelSet::Stable;
    let mut directory = Directory::new(scene.path(), options);
    let mut page = String::new();
    let mut before = None;
    for number in 0..scrapes {
        // Agents of ever new names come and go, one in eight scrapes.
        if number % 8 == 0 {
            let agent = agents(scene.path(), number..number + 1)?;
            page.clear();
            directory.render(&mut page);
            drop(agent);
            for entry in std::fs::read_dir(scene.path())? {
                std::fs::remove_file(entry?.path())?;
            }
        }
        page.clear();
        directory.render(&mut page);
        // More agents have gone than a directory remembers.
        if number == scrapes / 3 {
            before = Some(Held::now()?);
        }
    }
    let before = before.ok_or("too few scrapes")?;
    let at_end = Held::now()?;
    let passed = at_end.is_flat_since(before);
    println!("{scrapes} scrapes: {before} after a third of them, {at_end} at the end {}", verdict(passed));
    Ok(passed)
}

fn scene() -> Result<tempfile::TempDir, Failure> {
    Ok(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?)
}

fn verdict(passed: bool) -> &'static str {
    if passed { "(good)" } else { "(TOO MUCH)" }
}
