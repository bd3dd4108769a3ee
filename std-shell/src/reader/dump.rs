//! Images inside something larger: a dump of a device's memory, a core file.

use std::fs::File;
use std::io;
use std::path::Path;

use telering_core::layout::image::{Head, MAGIC, head, nixl_header, u64_at};
use telering_core::layout::nixl::Header;

use super::error::OpenError;
use super::file::{self, Links};
use super::read_at::{LockState, ReadAt, read_whole};
use super::trouble::Refused;

/// Where an image lies in a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Place {
    /// First byte.
    pub offset: u64,
    /// Bytes of the image.
    pub len: u64,
}

/// What a dump holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dump {
    /// Whole images, by their offset: each is read with [`ReaderOptions::within`](super::ReaderOptions::within).
    pub images: Vec<Place>,
    /// Images of which a piece is missing at the dump's end: dump more memory.
    pub cut: Vec<Place>,
    /// Bytes at the dump's end that were not searched, because so many images stand before them.
    pub unsearched: u64,
    /// If there is no image: one whose bytes are swapped.
    pub swapped: Option<Swapped>,
}

/// An image in a dump that was written word by word, in the other byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Swapped {
    /// Where its head stands: behind its records.
    pub head: u64,
    /// Bytes of a word: 2, 4 or 8.
    pub word: u8,
}

/// Images that a dump is searched for; what is behind so many is not looked at.
const MOST: usize = 4096;
const CHUNK: usize = 1 << 20;
const MARK: [u8; 8] = MAGIC.to_le_bytes();

/// Looks for images in a file of any kind, at any offset.
///
/// ```no_run
/// use telering::reader::{ReaderOptions, scan_dump};
/// for place in scan_dump("ram.bin")?.images {
///     let reader = ReaderOptions::new().within(place).open("ram.bin")?;
///     println!("{:#x}: {:?}", place.offset, reader.layout());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`OpenError`] if the file can't be read.
pub fn scan_dump(path: impl AsRef<Path>) -> Result<Dump, OpenError> {
    let path = path.as_ref();
    let (file, _) = file::open(path, Links::Follow, false).map_err(|refused| refused.at(path))?;
    scan(&file).map_err(|error| Refused::Io("search it", error).at(path))
}

fn scan(source: &impl ReadAt) -> io::Result<Dump> {
    scan_by(source, CHUNK)
}

/// What [`scan_dump`] makes of bytes, taken in pieces of `chunk` bytes; for fuzzing.
#[doc(hidden)]
#[must_use]
pub fn fuzz_scan(bytes: &[u8], chunk: usize) -> Dump {
    scan_by(&bytes, chunk).unwrap_or_default()
}

fn scan_by(source: &impl ReadAt, chunk: usize) -> io::Result<Dump> {
    let len = source.byte_len()?;
    let mut dump = Dump::default();
    dump.unsearched = for_each_head(source, chunk, MARK, |candidate, fetch| {
        if let Some(place) = image_of(&candidate, fetch)? {
            let whole = place.offset.checked_add(place.len).is_some_and(|end| end <= len);
            if whole { dump.images.push(place) } else { dump.cut.push(place) }
        }
        Ok(dump.images.len() + dump.cut.len() < MOST)
    })?;
    if dump.images.is_empty() && dump.cut.is_empty() {
        dump.swapped = swapped_in(source, chunk)?;
    }
    Ok(dump)
}

/// Where a head may stand, and its bytes.
struct Candidate<'c> {
    extension: u64,
    bytes: &'c [u8; head::SIZE],
}

/// Calls `look` for each place where `mark` stands and a head behind it would be whole, until it gives `false`. Its
/// second argument fetches bytes: from the piece at hand, else from the source. Gives how many bytes were left over.
fn for_each_head<S: ReadAt>(
    source: &S,
    chunk: usize,
    mark: [u8; 8],
    mut look: impl FnMut(Candidate<'_>, &dyn Fn(u64, &mut [u8]) -> io::Result<bool>) -> io::Result<bool>,
) -> io::Result<u64> {
    let len = source.byte_len()?;
    // Pieces overlap by less than a head: each head is whole in one piece, and in one only.
    let chunk = chunk.max(2 * head::SIZE);
    let mut piece = vec![0; usize::try_from(len).unwrap_or(usize::MAX).min(chunk)];
    let mut start = 0;
    while start < len {
        let room = usize::try_from(len - start).unwrap_or(usize::MAX).min(chunk);
        let piece = &mut piece[..room];
        if !read_whole(source, start, piece)? {
            break;
        }
        let piece = &*piece;
        let fetch = |offset: u64, into: &mut [u8]| {
            let at = offset.checked_sub(start).and_then(|at| usize::try_from(at).ok());
            match at.and_then(|at| piece.get(at..)).and_then(|rest| rest.get(..into.len())) {
                Some(bytes) => into.copy_from_slice(bytes),
                None => return read_whole(source, offset, into),
            }
            Ok(true)
        };
        for at in marks(piece, mark) {
            let Some(bytes) = piece[at..].first_chunk() else { break };
            let extension = start + at as u64;
            if !look(Candidate { extension, bytes }, &fetch)? {
                return Ok(len - extension - head::SIZE as u64);
            }
        }
        start += (room - if room == chunk { head::SIZE - 1 } else { 0 }) as u64;
    }
    Ok(0)
}

/// Where a mark stands.
fn marks(bytes: &[u8], mark: [u8; 8]) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(from..)?;
            let at = from + rest.iter().position(|&byte| byte == mark[0])?;
            from = at + 1;
            if bytes[at..].starts_with(&mark) {
                return Some(at);
            }
        }
    })
}

/// The image whose head stands here, if the numbers in it and in its header agree. A head that can't be one is found
/// out without a further look at the source: memory may be full of the mark.
fn image_of(
    candidate: &Candidate<'_>,
    fetch: &dyn Fn(u64, &mut [u8]) -> io::Result<bool>,
) -> io::Result<Option<Place>> {
    let &Candidate { extension, bytes } = candidate;
    let (capacity, len) = (u64_at(bytes, head::CAPACITY), u64_at(bytes, head::IMAGE_LEN));
    let Ok(head) = Head::parse(bytes, capacity, len) else { return Ok(None) };
    let Some(offset) = extension.checked_sub(head.extension) else { return Ok(None) };
    let mut header = [0; nixl_header::SIZE];
    if !fetch(offset, &mut header)? {
        return Ok(None);
    }
    let right = Header::read(&header).is_some_and(|header| header.version == 1 && header.capacity == capacity);
    Ok(right.then_some(Place { offset, len }))
}

/// A head whose bytes are swapped in words of 8, 4 or 2: of a tool that writes words, or of another machine.
fn swapped_in(source: &impl ReadAt, chunk: usize) -> io::Result<Option<Swapped>> {
    for word in [8_u8, 4, 2] {
        let swap = |bytes: &mut [u8]| bytes.chunks_exact_mut(word.into()).for_each(<[u8]>::reverse);
        let mut mark = MARK;
        swap(&mut mark);
        let mut found = None;
        for_each_head(source, chunk, mark, |candidate, _| {
            let mut bytes = *candidate.bytes;
            swap(&mut bytes);
            if Head::parse(&bytes, u64_at(&bytes, head::CAPACITY), u64_at(&bytes, head::IMAGE_LEN)).is_ok() {
                found = Some(Swapped { head: candidate.extension, word });
            }
            Ok(found.is_none())
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// A file, or a piece of one.
pub(crate) struct Piece {
    pub(crate) file: File,
    pub(crate) place: Option<Place>,
}

impl ReadAt for Piece {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let Some(place) = self.place else { return ReadAt::read_at(&self.file, offset, into) };
        let rest = place.len.saturating_sub(offset);
        let room = into.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
        match place.offset.checked_add(offset) {
            Some(offset) => ReadAt::read_at(&self.file, offset, &mut into[..room]),
            None => Ok(0),
        }
    }

    fn byte_len(&self) -> io::Result<u64> {
        let len = self.file.byte_len()?;
        Ok(self.place.map_or(len, |place| len.saturating_sub(place.offset).min(place.len)))
    }

    fn lock_state(&self) -> LockState {
        // Whoever holds a lock on a dump is not the image's producer.
        if self.place.is_some() { LockState::Free } else { self.file.lock_state() }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.place.is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.file.write_at(offset, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn sample() -> Vec<u8> {
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/files/device_small.bin")).unwrap()
    }

    fn found(bytes: &[u8]) -> Dump {
        scan(&bytes).unwrap()
    }

    #[test]
    fn images_are_found_at_any_offset_and_across_chunks() {
        let image = sample();
        for before in
            [0, 1, 7, 4096, CHUNK - 1024, CHUNK - 1023, CHUNK - 964, CHUNK - 960, CHUNK - 957, CHUNK, 3 * CHUNK - 961]
        {
            let mut dump = vec![b'T'; before];
            dump.extend_from_slice(&image);
            dump.extend_from_slice(b"TELERING, but no image");
            let place = Place { offset: before as u64, len: image.len() as u64 };
            assert_eq!(found(&dump), Dump { images: vec![place], ..Dump::default() }, "{before}");
        }
    }

    #[test]
    fn several_images_are_all_found_and_one_that_is_cut_is_told() {
        let image = sample();
        let mut dump = [image.as_slice(), &[0; 100], &image, &image].concat();
        dump.pop();
        let offsets = |places: &[Place]| places.iter().map(|place| place.offset).collect::<Vec<_>>();
        let dump = found(&dump);
        assert_eq!(offsets(&dump.images), [0, 1316]);
        assert_eq!(offsets(&dump.cut), [2532]);
    }

    #[test]
    fn a_name_or_a_number_that_looks_like_a_head_is_no_image() {
        let image = sample();
        // The head of capacity 16 stands at 960: nothing in front of it, a wrong header, another major version.
        assert_eq!(found(&image[960..]), Dump::default());
        for (at, byte) in [(16, 2), (24, 8), (968, 9), (1008, 7)] {
            let mut other = image.clone();
            other[at] = byte;
            let as_before = Dump { images: vec![Place { offset: 0, len: 1216 }], ..Dump::default() };
            assert_eq!(found(&other) == as_before, at == 1008, "{at}");
        }
    }

    /// Bytes that count how often they are asked for.
    struct Counted<'b> {
        bytes: &'b [u8],
        reads: Cell<usize>,
    }

    impl ReadAt for Counted<'_> {
        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
            self.reads.set(self.reads.get() + 1);
            self.bytes.read_at(offset, into)
        }

        fn byte_len(&self) -> io::Result<u64> {
            self.bytes.byte_len()
        }
    }

    fn reads_of(bytes: &[u8]) -> usize {
        let counted = Counted { bytes, reads: Cell::new(0) };
        assert!(scan(&counted).unwrap().images.is_empty());
        counted.reads.get()
    }

    #[test]
    fn memory_full_of_marks_or_heads_costs_no_more_looks_than_other_memory() {
        let plain = reads_of(&vec![0; 4 * CHUNK]);
        assert_eq!(reads_of(&MARK.repeat(CHUNK / 2)), plain);
        // Whole heads without their records, whose headers would lie near in front of them.
        assert!(reads_of(&sample()[960..1024].repeat(CHUNK / 16)) <= plain + 4 * 16);
    }

    #[test]
    fn an_image_in_swapped_words_is_told_and_not_read() {
        let mut dump = [&[0; 104], sample().as_slice()].concat();
        dump.resize(2000, 7);
        for word in [2, 4, 8] {
            let mut swapped = dump.clone();
            swapped.chunks_exact_mut(word).for_each(<[u8]>::reverse);
            let found = found(&swapped);
            assert_eq!(found.swapped, Some(Swapped { head: 1064, word: word as u8 }));
            assert_eq!((found.images.len(), found.cut.len()), (0, 0));
        }
        assert_eq!(found(&dump).swapped, None);
    }

    #[test]
    fn what_lies_behind_too_many_images_is_said_to_be_unsearched() {
        let image = sample();
        let dump = found(&image.repeat(MOST + 3));
        assert_eq!((dump.images.len(), dump.unsearched), (MOST, 3 * 1216 + (1216 - 1024)));
    }
}
