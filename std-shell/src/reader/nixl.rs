//! Reading NIXL's own rings: peeking, which changes nothing, and consuming, which moves `read_pos`.
//!
//! NIXL remakes a ring in the same file when its agent starts again: it resizes the file and sets both
//! indices back. So every look begins with the header, and what was read last is compared with what
//! stands there now.

use std::io;
use std::thread;
use std::time::Duration;

use telering_core::layout::nixl::{self, Geometry, Header, Kind, ProbeError};

use super::item::{Event, EventName, Item, NameCache};
use super::read_at::{ReadAt, read_whole};
use super::trouble::{Refused, Trouble, io_at};
use super::{From, MOST_RECORDS, life};

/// Looks at a header that doesn't fit its file before that is an error: a producer that starts anew
/// resizes the file a moment before it writes the header.
const LOOKS: u32 = 20;
/// Records before the cursor that must still be what they were.
const REMEMBERED: usize = 16;

pub(crate) struct NixlRing {
    geometry: Geometry,
    seen: Header,
    /// Index of the next record for this reader.
    next: u64,
    /// What this reader last knew to stand in the file's `read_pos`.
    stored: u64,
    consume: bool,
    /// `next` is still to be written into the file.
    unsaved: bool,
    /// The producer was seen making the ring anew.
    remade: bool,
    /// Times that a consuming reader found the read index moved by another consumer.
    rivals: u64,
    returned: u64,
    /// The last records before `next`, as they stood in the file.
    tail: Vec<u8>,
    buffer: Vec<u8>,
    names: NameCache,
}

enum Look {
    Ring(Geometry, Header),
    BeingMade,
}

impl NixlRing {
    pub(crate) fn open(source: &impl ReadAt, from: From, consume: bool) -> Result<NixlRing, Refused> {
        let (header, geometry) = match look_once(source).map_err(io_at("read the header"))? {
            (Ok(geometry), Some(header)) => (header, geometry),
            (Ok(_), None) => return Err(Refused::NotTelemetry("the file is too short".into())),
            (Err(error), _) => return Err(error.into()),
        };
        let mut ring = NixlRing {
            geometry,
            seen: header,
            next: header.read_pos,
            stored: header.read_pos,
            consume,
            unsaved: false,
            remade: false,
            rivals: 0,
            returned: 0,
            tail: Vec::new(),
            buffer: Vec::new(),
            names: NameCache::new(),
        };
        if from == From::Newest {
            ring.next = header.write_pos;
            ring.unsaved = consume;
        }
        Ok(ring)
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// How often another consumer of the same ring was noticed.
    pub(crate) fn rivals(&self) -> u64 {
        self.rivals
    }

    /// Events that nobody consumed, as of the last look.
    pub(crate) fn waited(&self) -> u64 {
        self.geometry.waiting(self.seen.read_pos, self.seen.write_pos)
    }

    /// The next events, at most [`MOST_RECORDS`].
    pub(crate) fn read(&mut self, source: &impl ReadAt, out: &mut Vec<Item>) -> Result<(), Trouble> {
        self.save(source)?;
        let header = match self.look(source)? {
            Look::BeingMade => {
                self.remade = true;
                return Ok(());
            }
            Look::Ring(geometry, header) => {
                if self.remade || geometry != self.geometry || self.started_over(source, &header)? {
                    out.push(Item::Reset { instance: None });
                    self.remade = false;
                    self.geometry = geometry;
                    self.next = header.read_pos;
                    self.tail.clear();
                } else if self.consume && header.read_pos != self.stored {
                    self.rivals += 1;
                }
                header
            }
        };
        self.seen = header;
        self.stored = header.read_pos;
        let geometry = self.geometry;
        let mut lost = 0;
        if self.is_outside(&header) {
            // Another consumer was faster. By how many rounds of the ring can't be known.
            lost = geometry.waiting(self.next, header.read_pos);
            self.jump(header.read_pos);
        }
        let count = geometry.waiting(self.next, header.write_pos).min(MOST_RECORDS);
        let skip = if count == 0 { Some(0) } else { self.copy(source, &header, count)? };
        lost += skip.unwrap_or(0);
        if lost > 0 {
            out.push(Item::Lost(lost));
        }
        let Some(skip) = skip else {
            return Ok(());
        };
        self.hand_over(skip as usize, out);
        self.next = geometry.advance(self.next, count);
        self.unsaved |= self.consume && count > 0;
        Ok(())
    }

    /// Copies `count` records into the buffer. Returns how many at its start may have been overwritten by
    /// now, `None` if the ring itself changed and the copy is worth nothing.
    fn copy(&mut self, source: &impl ReadAt, header: &Header, count: u64) -> Result<Option<u64>, Trouble> {
        let geometry = self.geometry;
        let size = geometry.layout.record_size();
        self.buffer.resize(count as usize * size, 0);
        if !read_records(source, &geometry, self.next, &mut self.buffer).map_err(io_at("read records"))? {
            return Ok(None);
        }
        let (Ok(after_geometry), Some(after)) = look_once(source).map_err(io_at("read the header"))? else {
            return Ok(None);
        };
        if after_geometry != geometry {
            return Ok(None);
        }
        // The producer never overwrites what nobody consumed. Whatever another consumer took meanwhile
        // may be overwritten.
        let ahead = geometry.waiting(header.read_pos, self.next);
        let taken = geometry.waiting(header.read_pos, after.read_pos);
        Ok(Some(taken.saturating_sub(ahead).min(count)))
    }

    fn hand_over(&mut self, skip: usize, out: &mut Vec<Item>) {
        let layout = self.geometry.layout;
        let size = layout.record_size();
        let observed_us = (!layout.has_time()).then(life::now_us);
        for record in self.buffer.chunks_exact(size).skip(skip) {
            let Some(stored) = layout.decode(record) else { continue };
            let (name, id) = match &stored.kind {
                Kind::Name(name) => self.names.look_up(name),
                Kind::Type(id) => (EventName::of_type(*id), Some(*id)),
            };
            out.push(Item::Event(Event {
                seq: self.returned,
                instance: 0,
                timestamp_us: stored.timestamp_us,
                observed_us,
                category: stored.category,
                id,
                name,
                value: stored.value,
            }));
            self.returned += 1;
        }
        self.tail.extend_from_slice(&self.buffer);
        self.tail.drain(..self.tail.len().saturating_sub(REMEMBERED * size));
        self.buffer.clear();
    }

    /// Whether the cursor is not among the records that wait in the ring.
    fn is_outside(&self, header: &Header) -> bool {
        let geometry = &self.geometry;
        geometry.waiting(header.read_pos, self.next) > geometry.waiting(header.read_pos, header.write_pos)
    }

    fn jump(&mut self, to: u64) {
        self.next = to;
        self.tail.clear();
    }

    /// Whether a ring of the same size was begun anew. What the positions and the last records can't tell
    /// goes unnoticed: a new run that reached the same place with the same events.
    fn started_over(&self, source: &impl ReadAt, header: &Header) -> Result<bool, Trouble> {
        let geometry = &self.geometry;
        let waited = geometry.waiting(self.seen.read_pos, self.seen.write_pos);
        if header.read_pos == self.seen.read_pos && geometry.waiting(header.read_pos, header.write_pos) < waited {
            return Ok(true);
        }
        if header.read_pos == 0 && (self.is_outside(header) || self.consume && self.stored != 0) {
            return Ok(true);
        }
        let size = geometry.layout.record_size();
        let still_there = geometry.waiting(header.read_pos, self.next).min((self.tail.len() / size) as u64);
        if still_there == 0 || self.is_outside(header) {
            return Ok(false);
        }
        let mut now = [0; REMEMBERED * nixl::LONGEST_RECORD];
        let now = &mut now[..still_there as usize * size];
        let first = geometry.advance(self.next, still_there.wrapping_neg());
        let whole = read_records(source, geometry, first, now).map_err(io_at("read records"))?;
        Ok(whole && !self.tail.ends_with(now))
    }

    /// Writes the read index of a consuming reader: everything before it was handed over.
    pub(crate) fn save(&mut self, source: &impl ReadAt) -> Result<(), Trouble> {
        if !self.unsaved {
            return Ok(());
        }
        self.unsaved = false;
        if let (Ok(geometry), Some(header)) = look_once(source).map_err(io_at("read the header"))?
            && geometry == self.geometry
            && header.read_pos == self.stored
        {
            source
                .write_at(nixl::READ_POS_AT as u64, &self.next.to_le_bytes())
                .map_err(io_at("write the read index"))?;
            self.stored = self.next;
            self.seen.read_pos = self.next;
        }
        // Otherwise the ring was made anew or has another consumer: the next look finds out.
        Ok(())
    }

    fn look(&self, source: &impl ReadAt) -> Result<Look, Trouble> {
        let mut looks = 0;
        loop {
            looks += 1;
            match look_once(source).map_err(io_at("read the header"))? {
                (Ok(geometry), Some(header)) => return Ok(Look::Ring(geometry, header)),
                (Err(ProbeError::NotReady), _) => return Ok(Look::BeingMade),
                (Err(error), _) if looks < LOOKS && is_passing(&error) => thread::sleep(Duration::from_millis(1)),
                (Err(ProbeError::WrongLength { len, .. } | ProbeError::TooShort { len }), _) => {
                    let needed = self.geometry.layout.file_len(self.geometry.capacity).unwrap_or(u64::MAX);
                    return Err(Trouble::Resized { len, needed });
                }
                (Err(error), _) => return Err(Trouble::Changed(error.into())),
                (Ok(_), None) => return Err(Trouble::Resized { len: 0, needed: nixl::HEADER_SIZE as u64 }),
            }
        }
    }

    /// A fresh look at the header, for information.
    pub(crate) fn header(source: &impl ReadAt) -> io::Result<Option<Header>> {
        let mut bytes = [0; nixl::HEADER_SIZE];
        Ok(if read_whole(source, 0, &mut bytes)? { Header::read(&bytes) } else { None })
    }
}

fn is_passing(error: &ProbeError) -> bool {
    use ProbeError as E;
    matches!(error, E::WrongLength { .. } | E::BadPosition { .. } | E::BadMask { .. } | E::BadCapacity { .. })
}

fn look_once(source: &impl ReadAt) -> io::Result<(Result<Geometry, ProbeError>, Option<Header>)> {
    let len = source.byte_len()?;
    let mut bytes = [0; nixl::HEADER_SIZE];
    if !read_whole(source, 0, &mut bytes)? {
        return Ok((Err(ProbeError::TooShort { len }), None));
    }
    Ok((nixl::probe(&bytes, len), Header::read(&bytes)))
}

/// Copies records from `index` on, around the end of the ring if need be. `false` if the file ends before.
fn read_records(source: &impl ReadAt, geometry: &Geometry, index: u64, into: &mut [u8]) -> io::Result<bool> {
    let size = geometry.layout.record_size();
    let until_end = (geometry.capacity - index).saturating_mul(size as u64);
    let (first, second) = into.split_at_mut(into.len().min(usize::try_from(until_end).unwrap_or(usize::MAX)));
    Ok(read_whole(source, geometry.offset(index), first)?
        && (second.is_empty() || read_whole(source, geometry.offset(0), second)?))
}
