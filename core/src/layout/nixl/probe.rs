//! Opening a ring: the header against itself and against the length of its file.

use core::fmt;

use super::{
    CAPACITY_AT, FIRST_VERSION, HEADER_SIZE, LAST_VERSION, MASK_AT, NixlLayout, READ_POS_AT, VERSION_AT, WRITE_POS_AT,
    u32_at, u64_at,
};

/// A version above this, in a header that fits nothing else either, is some other kind of file.
const PLAUSIBLE_VERSION: u32 = 0xff;

/// The five numbers of a header, not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Index where the producer writes next.
    pub write_pos: u64,
    /// Index where the consumer reads next.
    pub read_pos: u64,
    /// Layout version, 0 while the file is being created.
    pub version: u32,
    /// Number of places.
    pub capacity: u64,
    /// Capacity - 1.
    pub mask: u64,
}

impl Header {
    /// The header at the start of `bytes`, `None` if there are fewer than 40.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER_SIZE)?;
        Some(Header {
            write_pos: u64_at(bytes, WRITE_POS_AT)?,
            read_pos: u64_at(bytes, READ_POS_AT)?,
            version: u32_at(bytes, VERSION_AT)?,
            capacity: u64_at(bytes, CAPACITY_AT)?,
            mask: u64_at(bytes, MASK_AT)?,
        })
    }

    /// Whether capacity and mask belong together, as in no file by chance.
    #[must_use]
    pub const fn looks_like_a_ring(&self) -> bool {
        self.capacity.is_power_of_two() && self.mask == self.capacity - 1
    }

    const fn swapped(&self) -> Header {
        Header {
            write_pos: self.write_pos.swap_bytes(),
            read_pos: self.read_pos.swap_bytes(),
            version: self.version.swap_bytes(),
            capacity: self.capacity.swap_bytes(),
            mask: self.mask.swap_bytes(),
        }
    }
}

/// A ring whose numbers agree with each other and with the length of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// How its records are laid out.
    pub layout: NixlLayout,
    /// Number of places, a power of two.
    pub capacity: u64,
}

impl Geometry {
    /// How many events lie between two indices.
    #[must_use]
    pub const fn waiting(&self, read_pos: u64, write_pos: u64) -> u64 {
        write_pos.wrapping_sub(read_pos) & (self.capacity - 1)
    }

    /// The index `count` places after `index`.
    #[must_use]
    pub const fn advance(&self, index: u64, count: u64) -> u64 {
        index.wrapping_add(count) & (self.capacity - 1)
    }

    /// Where the record of an index starts in the file.
    #[must_use]
    pub const fn offset(&self, index: u64) -> u64 {
        HEADER_SIZE as u64 + (index & (self.capacity - 1)) * self.layout.record_size() as u64
    }
}

/// Why a file is no NIXL ring that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeError {
    /// Shorter than a header.
    TooShort {
        /// Length of the file in bytes.
        len: u64,
    },
    /// The header has version 0: the file is being created, or its producer failed while creating it.
    NotReady,
    /// A version that is not known here.
    UnsupportedVersion {
        /// The version in the header.
        found: u32,
    },
    /// The header makes sense with its bytes swapped.
    WrongByteOrder,
    /// Nothing in the header looks like a ring.
    NotARing,
    /// The capacity is 0 or no power of two.
    BadCapacity {
        /// The capacity in the header.
        capacity: u64,
    },
    /// The mask is not capacity - 1.
    BadMask {
        /// The capacity in the header.
        capacity: u64,
        /// The mask in the header.
        mask: u64,
    },
    /// The file is shorter or longer than its records need.
    WrongLength {
        /// The version in the header.
        version: u32,
        /// The capacity in the header.
        capacity: u64,
        /// Length of the file in bytes.
        len: u64,
    },
    /// An index lies outside the ring.
    BadPosition {
        /// The index.
        position: u64,
        /// The capacity in the header.
        capacity: u64,
    },
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::TooShort { len } => write!(f, "{len} bytes are too few for a header of {HEADER_SIZE}"),
            ProbeError::NotReady => f.write_str("version 0: the file is being created"),
            ProbeError::UnsupportedVersion { found } => {
                write!(f, "unsupported version {found} (known {FIRST_VERSION} to {LAST_VERSION})")
            }
            ProbeError::WrongByteOrder => f.write_str("wrong byte order: written on a big-endian machine"),
            ProbeError::NotARing => f.write_str("no telemetry header"),
            ProbeError::BadCapacity { capacity } => write!(f, "capacity {capacity} is not a power of two"),
            ProbeError::BadMask { capacity, mask } => write!(f, "mask {mask} does not belong to capacity {capacity}"),
            ProbeError::WrongLength { version, capacity, len } => {
                write!(f, "{len} bytes do not fit version {version} with capacity {capacity}")
            }
            ProbeError::BadPosition { position, capacity } => {
                write!(f, "position {position} is outside capacity {capacity}")
            }
        }
    }
}

impl core::error::Error for ProbeError {}

/// Checks the header of a file against itself and against the file's length.
///
/// The version comes first: a newer one is always reported as that and never as a wrong size. The second
/// version field (`expected_version`) is ignored, as NIXL ignores it.
///
/// # Errors
/// [`ProbeError`] says what does not fit.
pub fn probe(header: &[u8], file_len: u64) -> Result<Geometry, ProbeError> {
    let header = Header::read(header).ok_or(ProbeError::TooShort { len: file_len })?;
    check_version(&header)?;
    let Header { version, capacity, mask, .. } = header;
    if !capacity.is_power_of_two() {
        return Err(ProbeError::BadCapacity { capacity });
    }
    if mask != capacity - 1 {
        return Err(ProbeError::BadMask { capacity, mask });
    }
    let layout = NixlLayout::ALL
        .into_iter()
        .find(|layout| layout.version() == version && layout.file_len(capacity) == Some(file_len))
        .ok_or(ProbeError::WrongLength { version, capacity, len: file_len })?;
    for position in [header.write_pos, header.read_pos] {
        if position >= capacity {
            return Err(ProbeError::BadPosition { position, capacity });
        }
    }
    Ok(Geometry { layout, capacity })
}

/// Tells a version that is read here from one that is not, and from what is no version at all.
///
/// # Errors
/// [`ProbeError::NotReady`], [`ProbeError::UnsupportedVersion`], [`ProbeError::WrongByteOrder`] or
/// [`ProbeError::NotARing`].
pub fn check_version(header: &Header) -> Result<(), ProbeError> {
    let swapped = header.swapped();
    match header.version {
        FIRST_VERSION..=LAST_VERSION => Ok(()),
        0 if header.capacity == 0 && header.mask == 0 || header.looks_like_a_ring() => Err(ProbeError::NotReady),
        // What NIXL leaves behind when it was asked for a capacity that it can't make.
        0 if header.mask == header.capacity.wrapping_sub(1) => {
            Err(ProbeError::BadCapacity { capacity: header.capacity })
        }
        found if found != 0 && (found <= PLAUSIBLE_VERSION || header.looks_like_a_ring()) => {
            Err(ProbeError::UnsupportedVersion { found })
        }
        _ if swapped.looks_like_a_ring() && swapped.version != 0 && swapped.version <= PLAUSIBLE_VERSION => {
            Err(ProbeError::WrongByteOrder)
        }
        _ => Err(ProbeError::NotARing),
    }
}
