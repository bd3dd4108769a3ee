//! Reading a telemetry file in bulk, as fast as the reader goes: nobody writes meanwhile.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use telering::Telemetry;
use telering::reader::{Engine, ReadAt, ReadError, Reader, ReaderOptions};

use super::agent::transfer;
use super::flush::directory;
use crate::harness::{Body, Reference, Row, Slice};

/// Events of the file's ring: the default.
const CAPACITY: u64 = 4096;
/// Bytes of its records, and where they start.
const BYTES: usize = CAPACITY as usize * 56;
const RECORDS_AT: u64 = 40;
/// Bytes of a cache line.
const LINE: usize = 64;

/// A full ring that nobody writes any more.
struct Written {
    path: PathBuf,
    /// The file's directory lives as long as the rows.
    _dir: tempfile::TempDir,
}

impl Written {
    fn new(dir: tempfile::TempDir) -> Result<Written, Box<dyn std::error::Error>> {
        let agent = Telemetry::builder("read").ignore_environment(true).enable(true).dir(dir.path());
        let agent = agent.buffer_size(CAPACITY).strict(true).try_build()?;
        for bytes in 0..CAPACITY {
            transfer(&agent, bytes);
        }
        let path = agent.path().ok_or("the agent of a benchmark has no file")?;
        agent.close();
        Ok(Written { path, _dir: dir })
    }
}

/// Reads the whole file again and again, with a reader whose buffers were used before. `Err` where it can't.
fn read_all(
    file: Rc<Written>,
    mut read: impl FnMut(&mut Reader) -> Result<u64, ReadError> + 'static,
) -> Result<Body, Box<dyn std::error::Error>> {
    let mut reader = Reader::open(&file.path)?;
    Ok(Box::new(move |events| {
        let _ = &file;
        let (mut operations, start) = (0, Instant::now());
        while operations < events {
            let before = operations;
            reader.rewind();
            while let Ok(more @ 1..) = read(&mut reader) {
                operations += more;
            }
            if operations - before != CAPACITY {
                return Slice { operations: 0, elapsed: Duration::ZERO };
            }
        }
        Slice { operations, elapsed: start.elapsed() }
    }))
}

/// The file's bytes in this process's memory. A reader takes them by itself, so that no call to the kernel is in it.
struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.as_slice().read_at(offset, into)
    }

    fn byte_len(&self) -> std::io::Result<u64> {
        self.0.as_slice().byte_len()
    }
}

/// The same reader over an image in memory: a dump, or a copy that somebody else fetched.
fn read_memory(path: &Path) -> Result<Body, Box<dyn std::error::Error>> {
    let mut engine = Engine::open(Bytes(std::fs::read(path)?), path, &ReaderOptions::new())?;
    Ok(Box::new(move |events| {
        let (mut operations, start) = (0, Instant::now());
        while operations < events {
            let before = operations;
            engine.rewind();
            while let Ok(Some(block)) = engine.read_block() {
                operations += black_box(block.records()).len() as u64;
            }
            if operations - before != CAPACITY {
                return Slice { operations: 0, elapsed: Duration::ZERO };
            }
        }
        Slice { operations, elapsed: start.elapsed() }
    }))
}

/// What the kernel takes for the records alone, at the least: one system call into a buffer that was used before and
/// lies in its cache lines as the records do.
fn pread(path: &Path) -> std::io::Result<Body> {
    let file = File::open(path)?;
    let mut buffer = vec![0; LINE + RECORDS_AT as usize + BYTES];
    let begin = buffer.as_ptr().align_offset(LINE).min(LINE) + RECORDS_AT as usize;
    Ok(Box::new(move |events| {
        let buffer = &mut buffer[begin..begin + BYTES];
        let (mut operations, start) = (0, Instant::now());
        while operations < events && file.read_exact_at(black_box(&mut *buffer), RECORDS_AT).is_ok() {
            operations += CAPACITY;
        }
        Slice { operations, elapsed: start.elapsed() }
    }))
}

/// A directory on a file system with pages larger than those of memory, if there is one.
fn disk() -> std::io::Result<Option<tempfile::TempDir>> {
    let dir = tempfile::tempdir()?;
    let is_memory = rustix::fs::statfs(dir.path())?.f_type == rustix::fs::statfs("/dev/shm")?.f_type;
    Ok((!is_memory).then_some(dir))
}

fn as_blocks(reader: &mut Reader) -> Result<u64, ReadError> {
    let block = reader.read_block()?;
    Ok(block.map_or(0, |block| black_box(block.records()).len() as u64))
}

pub(super) fn rows() -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let file = Rc::new(Written::new(directory()?)?);
    let mut items = Vec::with_capacity(CAPACITY as usize);
    let as_items = move |reader: &mut Reader| {
        items.clear();
        reader.read(&mut items).map(|count| count as u64)
    };
    let row = |name, what, body| Row { name, what, reference: Reference::Copy56, body };
    let mut rows = vec![
        row("pread", "per event: the system call that copies the records of a file of 4096 events", pread(&file.path)?),
        row(
            "read-block",
            "per event: reading that file in blocks, the check verified, no writer",
            read_all(file.clone(), as_blocks)?,
        ),
        row("read-memory", "reading the same bytes in blocks where they lie in memory", read_memory(&file.path)?),
        row("read", "the same, an item made of each event", read_all(file, as_items)?),
    ];
    if let Some(dir) = disk()? {
        let file = Rc::new(Written::new(dir)?);
        rows.push(row("pread-disk", "pread from a disk's file system, out of its cache", pread(&file.path)?));
        rows.push(row("read-block-disk", "read-block from there", read_all(file, as_blocks)?));
    }
    Ok(rows)
}
