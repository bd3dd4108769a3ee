//! Images inside something larger: a dump of a device's memory, a core file.

use std::fs::File;
use std::io;
use std::path::Path;

use telering_core::layout::image::{Head, MAGIC, extension_offset, head, nixl_header, u64_at};
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
    let len = source.byte_len()?;
    let mut dump = Dump::default();
    let mut chunk = vec![0; CHUNK];
    let mut start = 0;
    while start < len && dump.images.len() + dump.cut.len() < MOST {
        let room = usize::try_from(len - start).unwrap_or(usize::MAX).min(CHUNK);
        if !read_whole(source, start, &mut chunk[..room])? {
            break;
        }
        for at in marks(&chunk[..room]) {
            if let Some(place) = image_at(source, start + at as u64)? {
                let whole = place.offset.checked_add(place.len).is_some_and(|end| end <= len);
                if whole { dump.images.push(place) } else { dump.cut.push(place) }
            }
        }
        // A mark may lie across two chunks. Those that lie whole in this one are not seen again.
        start += (room - if room == CHUNK { MARK.len() - 1 } else { 0 }) as u64;
    }
    Ok(dump)
}

/// Where the magic number stands.
fn marks(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(from..)?;
            let at = from + rest.iter().position(|&byte| byte == MARK[0])?;
            from = at + 1;
            if bytes[at..].starts_with(&MARK) {
                return Some(at);
            }
        }
    })
}

/// The image whose head starts here, if the numbers around it agree.
fn image_at(source: &impl ReadAt, extension: u64) -> io::Result<Option<Place>> {
    let mut bytes = [0; head::SIZE];
    if !read_whole(source, extension, &mut bytes)? {
        return Ok(None);
    }
    let capacity = u64_at(&bytes, head::CAPACITY);
    let Some(offset) = extension_offset(capacity).and_then(|distance| extension.checked_sub(distance)) else {
        return Ok(None);
    };
    let mut header = [0; nixl_header::SIZE];
    if !read_whole(source, offset, &mut header)? {
        return Ok(None);
    }
    let Some(header) = Header::read(&header) else { return Ok(None) };
    let len = u64_at(&bytes, head::IMAGE_LEN);
    let right = header.version == 1 && Head::parse(&bytes, header.capacity, len).is_ok();
    Ok(right.then_some(Place { offset, len }))
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

    fn sample() -> Vec<u8> {
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/files/device_small.bin")).unwrap()
    }

    fn found(bytes: &[u8]) -> Dump {
        scan(&bytes).unwrap()
    }

    #[test]
    fn images_are_found_at_any_offset_and_across_chunks() {
        let image = sample();
        for before in [0, 1, 7, 4096, CHUNK - 964, CHUNK - 960, CHUNK - 957, CHUNK, 3 * CHUNK - 961] {
            let mut dump = vec![b'T'; before];
            dump.extend_from_slice(&image);
            dump.extend_from_slice(b"TELERING, but no image");
            let place = Place { offset: before as u64, len: image.len() as u64 };
            assert_eq!(found(&dump), Dump { images: vec![place], cut: vec![] }, "{before}");
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
            let as_before = Dump { images: vec![Place { offset: 0, len: 1216 }], cut: vec![] };
            assert_eq!(found(&other) == as_before, at == 1008, "{at}");
        }
    }
}
