//! An image's numbers by one read: everything behind the ring at once.
//!
//! Whoever looks at thousands of images again and again, and wants their totals and no event, reads each by one
//! `pread`. Such a copy may be torn like any other; the checks in the copies of the totals say so.

use std::fs::File;
use std::io;

use telering_core::layout::image::{Control, Head, HeadError, control, head};
use telering_core::layout::nixl::{self, Header};
use telering_core::snapshot::{Flow, Notices};

use super::image;
use super::info::{DynamicMetric, Identity, MetricsSnapshot};
use super::parts::Parts;
use super::read_at::{ReadAt, read_whole};
use super::trouble::{Refused, io_at};

/// Bytes that are read at the most. Ours are 14 KiB; what an image of a later version has behind this is not seen.
const MOST: u64 = 256 << 10;

/// What a file is, as far as its totals are concerned.
pub(crate) enum Kind {
    /// An image.
    Image(Head),
    /// Perhaps one of NIXL's own rings; no image in any case.
    Other,
}

/// Tells an image from anything else.
///
/// # Errors
/// An image that is damaged, being made, or of another version; or what the system says.
pub(crate) fn kind(file: &File, len: u64) -> Result<Kind, Refused> {
    let mut bytes = [0; nixl::HEADER_SIZE];
    let whole = read_whole(file, 0, &mut bytes).map_err(io_at("read the header"))?;
    let Some(header) = Header::read(&bytes).filter(|_| whole) else { return Ok(Kind::Other) };
    Ok(image::probe(file, &header, len)?.map_or(Kind::Other, Kind::Image))
}

/// Bytes of a file from some place on.
struct Part<'a> {
    start: u64,
    bytes: &'a [u8],
    len: u64,
}

impl ReadAt for Part<'_> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        match offset.checked_sub(self.start) {
            Some(offset) => self.bytes.read_at(offset, into),
            None => Ok(0),
        }
    }

    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}

/// What stands behind the ring of an image, copied.
pub(crate) struct Tail<'a> {
    part: Part<'a>,
    head: Head,
    control: Control,
}

/// Copies what stands behind the ring into `buffer`, by one read. `known` is the head as it was found before; `None`
/// if the file is another image by now, or none.
///
/// # Errors
/// What the system says.
pub(crate) fn read<'a>(file: &File, len: u64, known: &Head, buffer: &'a mut Vec<u8>) -> io::Result<Option<Tail<'a>>> {
    let wanted = len.saturating_sub(known.extension).min(MOST) as usize;
    if buffer.len() < wanted {
        buffer.resize(wanted, 0);
    }
    let bytes = &mut buffer[..wanted];
    if wanted < head::SIZE + control::SIZE || !read_whole(file, known.extension, bytes)? {
        return Ok(None);
    }
    let bytes = &*bytes;
    let (Some(first), Some(second)) = (bytes.first_chunk(), bytes[head::SIZE..].first_chunk()) else {
        return Ok(None);
    };
    Ok(match Head::parse(first, known.capacity, len) {
        Ok(head) if head.instance == known.instance => {
            let part = Part { start: known.extension, bytes, len };
            Some(Tail { part, head, control: Control::parse(second) })
        }
        Ok(_) | Err(HeadError::NotReady) | Err(_) => None,
    })
}

/// The numbers of a moment. `None` where the part is missing or no copy is whole.
pub(crate) struct Numbers {
    pub(crate) metrics: Option<MetricsSnapshot>,
    pub(crate) dynamic: Option<Vec<DynamicMetric>>,
    pub(crate) flow: Option<Flow>,
    pub(crate) notices: Option<Notices>,
}

impl Tail<'_> {
    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// Who writes the image, which never changes.
    pub(crate) fn identity(&self) -> io::Result<Option<Identity>> {
        Parts::read(&self.part, &self.head)?.identity()
    }

    /// The totals.
    pub(crate) fn numbers(&self) -> io::Result<Numbers> {
        let parts = Parts::read(&self.part, &self.head)?;
        let metrics = parts.metrics()?;
        let dynamic = parts.dynamic(metrics.as_ref())?;
        Ok(Numbers { metrics, dynamic, flow: parts.flow()?, notices: parts.notices()? })
    }
}
