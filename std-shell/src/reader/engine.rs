//! A reader over any bytes. [`Reader`](super::Reader) puts it on a file.

use std::path::{Path, PathBuf};

use telering_core::event::RECORD_SIZE;
use telering_core::layout::image::TimeBase;
use telering_core::layout::nixl::{self, Header};

use super::block::Block;
use super::error::{OpenError, ReadError};
use super::image::{self, ImageRing};
use super::info::{FileInfo, Identity, Positions};
use super::item::{Counts, Item, Layout};
use super::life::{Liveness, now_us};
use super::nixl::NixlRing;
use super::parts::Parts;
use super::read_at::{ReadAt, read_whole};
use super::trouble::{Refused, Trouble, io_at};
use super::{From, ReaderOptions};

/// A reader over bytes that may change at any moment.
#[doc(hidden)]
pub struct Engine<S: ReadAt> {
    source: S,
    path: PathBuf,
    ring: Ring,
    counts: Counts,
}

enum Ring {
    Image(Box<ImageRing>),
    Nixl(Box<NixlRing>),
}

impl<S: ReadAt> Engine<S> {
    /// Opens bytes. `path` is for messages alone.
    ///
    /// # Errors
    /// [`OpenError`] says what the bytes are instead of telemetry.
    pub fn open(source: S, path: &Path, options: &ReaderOptions) -> Result<Engine<S>, OpenError> {
        match open_ring(&source, options) {
            Ok(ring) => Ok(Engine { source, path: path.to_path_buf(), ring, counts: Counts::default() }),
            Err(refused) => Err(refused.at(path)),
        }
    }

    /// See [`Reader::read`](super::Reader::read).
    ///
    /// # Errors
    /// [`ReadError`]; what was read before stands in `out`.
    pub fn read(&mut self, out: &mut Vec<Item>) -> Result<usize, ReadError> {
        let before = out.len();
        let result = match &mut self.ring {
            Ring::Image(ring) => {
                let result = ring.read(&self.source, out);
                ring.block().iter().for_each(|block| self.counts.add_all(&block.counts()));
                result
            }
            Ring::Nixl(ring) => {
                let result = ring.read(&self.source, out);
                out[before..].iter().for_each(|item| self.counts.add(item));
                result
            }
        };
        match result {
            Ok(()) => Ok(out.len() - before),
            // What came before the trouble is handed over first; the next call meets the trouble again.
            Err(_) if out.len() > before => Ok(out.len() - before),
            Err(trouble) => Err(trouble.at(&self.path)),
        }
    }

    /// See [`Reader::read_block`](super::Reader::read_block).
    ///
    /// # Errors
    /// [`ReadError`]; a block that was begun before the trouble is returned first.
    pub fn read_block(&mut self) -> Result<Option<Block<'_>>, ReadError> {
        let Ring::Image(ring) = &mut self.ring else {
            let reason = "NIXL's own rings store other records";
            return Err(ReadError::NotInBlocks { path: self.path.clone(), reason });
        };
        let result = ring.fill(&self.source);
        match (ring.block(), result) {
            (None, Err(trouble)) => Err(trouble.at(&self.path)),
            (None, Ok(())) => Ok(None),
            (Some(block), _) => {
                self.counts.add_all(&block.counts());
                Ok(Some(block))
            }
        }
    }

    /// Begins an image again at its oldest event; what was counted stays counted.
    pub fn rewind(&mut self) {
        if let Ring::Image(ring) = &mut self.ring {
            ring.rewind();
        }
    }

    /// What was returned so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// First position of an image that is counted since the last reset.
    #[must_use]
    pub fn start(&self) -> u64 {
        match &self.ring {
            Ring::Image(ring) => ring.start(),
            Ring::Nixl(_) => 0,
        }
    }

    /// How the bytes are laid out.
    #[must_use]
    pub fn layout(&self) -> Layout {
        match &self.ring {
            Ring::Image(ring) => Layout::Image { major: ring.head().major, minor: ring.head().minor },
            Ring::Nixl(ring) => Layout::Nixl(ring.geometry().layout),
        }
    }

    /// Instance of an image.
    #[must_use]
    pub fn instance(&self) -> Option<u64> {
        match &self.ring {
            Ring::Image(ring) => Some(ring.head().instance),
            Ring::Nixl(_) => None,
        }
    }

    /// Stores a consuming reader's read index.
    pub(crate) fn save(&mut self) -> Result<(), ReadError> {
        match &mut self.ring {
            Ring::Image(_) => Ok(()),
            Ring::Nixl(ring) => ring.save(&self.source).map_err(|trouble| trouble.at(&self.path)),
        }
    }

    /// The writer's name and life, without the rest.
    pub(crate) fn brief(&self) -> Result<(Option<Identity>, Liveness), ReadError> {
        let Ring::Image(ring) = &self.ring else { return Ok((None, Liveness::Unknown)) };
        let looks = || {
            let control = ring.control(&self.source)?;
            let parts = Parts::read(&self.source, ring.head()).map_err(io_at("read the table of parts"))?;
            let identity = parts.identity().map_err(io_at("read the identity"))?;
            Ok((identity, Liveness::of_image(self.source.lock_state(), &control, now_us())))
        };
        looks().map_err(|trouble: Trouble| trouble.at(&self.path))
    }

    /// A fresh look at all that the file says about itself.
    ///
    /// # Errors
    /// [`ReadError`] if the file can't be read or was resized.
    pub fn info(&self) -> Result<FileInfo, ReadError> {
        match &self.ring {
            Ring::Image(ring) => self.image_info(ring),
            Ring::Nixl(ring) => self.nixl_info(ring),
        }
        .map_err(|trouble| trouble.at(&self.path))
    }

    fn image_info(&self, ring: &ImageRing) -> Result<FileInfo, Trouble> {
        let source = &self.source;
        let head = ring.head();
        let len = source.byte_len().map_err(io_at("ask for its length"))?;
        if len != head.image_len {
            return Err(Trouble::Resized { len, needed: head.image_len });
        }
        let positions = ring.positions(source)?;
        let control = ring.control(source)?;
        let parts = Parts::read(source, head).map_err(io_at("read the table of parts"))?;
        let identity = parts.identity().map_err(io_at("read the identity"))?;
        let metrics = parts.metrics().map_err(io_at("read the metrics"))?;
        Ok(FileInfo {
            path: self.path.clone(),
            layout: self.layout(),
            len,
            capacity: head.capacity,
            record_size: RECORD_SIZE,
            positions: Positions::Image { committed: positions.committed, intent: positions.intent },
            liveness: Liveness::of_image(source.lock_state(), &control, now_us()),
            writer: identity.as_ref().and_then(|identity| identity.writer.clone()),
            identity,
            flow: parts.flow().map_err(io_at("read the losses"))?,
            notices: parts.notices().map_err(io_at("read the notices"))?,
            dynamic: parts.dynamic(metrics.as_ref()).map_err(io_at("read the metrics"))?,
            metrics,
            metrics_time: Some(control.metrics_time).filter(|&time| time != 0),
            clock: parts.clock().map_err(io_at("read the clock"))?,
            time_base: control.time_base,
            instance: Some(head.instance),
            created_us: Some(head.created_us).filter(|&time| time != 0),
            heartbeat: Some(control.heartbeat).filter(|&time| time != 0),
            state: Some(control.state),
            boots: Some(control.boots),
            checks: head.checks,
            parts: parts.rows().to_vec(),
        })
    }

    fn nixl_info(&self, ring: &NixlRing) -> Result<FileInfo, Trouble> {
        let geometry = ring.geometry();
        let len = self.source.byte_len().map_err(io_at("ask for its length"))?;
        let needed = geometry.layout.file_len(geometry.capacity).unwrap_or(u64::MAX);
        let header = NixlRing::header(&self.source).map_err(io_at("read the header"))?;
        let Some(header) = header.filter(|_| len == needed) else {
            return Err(Trouble::Resized { len, needed });
        };
        let Header { write_pos, read_pos, .. } = header;
        Ok(FileInfo {
            path: self.path.clone(),
            layout: self.layout(),
            len,
            capacity: geometry.capacity,
            record_size: geometry.layout.record_size(),
            positions: Positions::Nixl { write_pos, read_pos, waiting: geometry.waiting(read_pos, write_pos) },
            liveness: Liveness::Unknown,
            writer: None,
            identity: None,
            flow: None,
            notices: None,
            metrics: None,
            metrics_time: None,
            dynamic: None,
            clock: None,
            time_base: TimeBase::Unix,
            instance: None,
            created_us: None,
            heartbeat: None,
            state: None,
            boots: None,
            checks: false,
            parts: Vec::new(),
        })
    }
}

fn open_ring(source: &impl ReadAt, options: &ReaderOptions) -> Result<Ring, Refused> {
    let len = source.byte_len().map_err(io_at("ask for its length"))?;
    let mut bytes = [0; nixl::HEADER_SIZE];
    let header =
        if read_whole(source, 0, &mut bytes).map_err(io_at("read the header"))? { Header::read(&bytes) } else { None };
    if let Some(header) = header
        && let Some(head) = image::probe(source, &header, len)?
    {
        if options.consume {
            return Err(Refused::NothingToConsume);
        }
        return Ok(Ring::Image(Box::new(ImageRing::open(source, head, options.from, options.verify))));
    }
    Ok(Ring::Nixl(Box::new(NixlRing::open(source, options.from, options.consume)?)))
}

/// Opens bytes and reads all of them, for fuzzing: whatever they are, nothing may panic, hang, or allocate
/// by a number in them.
#[doc(hidden)]
pub fn fuzz_open(bytes: &[u8]) -> Option<(Counts, u64)> {
    let path = Path::new("fuzz");
    for from in [From::Newest, From::Oldest] {
        let options = ReaderOptions::new().from(from);
        let Ok(mut engine) = Engine::open(bytes, path, &options) else { return None };
        let _ = engine.info();
        let _ = engine.brief();
        let mut items = Vec::new();
        // Three laps of the ring at the most, in pieces that give at least one item each.
        for _ in 0..bytes.len() / 8 + 3 {
            items.clear();
            match engine.read(&mut items) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        if from == From::Oldest {
            return Some((engine.counts(), engine.start()));
        }
    }
    None
}
