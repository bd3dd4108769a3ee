//! What stands under a name, and whether it may be replaced.
//!
//! The bytes are copied out and held against the file's real length. Whatever can't be shown to be a dead image
//! of this user's is somebody else's and stays.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use telering_core::layout::image::{
    CAPACITY_MAX, Control, Head, HeadError, State, control, extension_offset, head, nixl_header, u32_at, u64_at,
};

use super::lock::{LockState, lock_state_of, open_unknown};

/// Where there are no locks, a writer lives while its heartbeat is younger than this.
const HEARTBEAT_MAX_US: u64 = 10_000_000;

/// One file, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    pub(crate) fn of(metadata: &Metadata) -> Inode {
        Inode { device: metadata.dev(), number: metadata.ino() }
    }

    /// The same from the system call's own answer, whose number types differ between systems.
    #[allow(clippy::unnecessary_cast, reason = "signed or narrower on other systems")]
    pub(crate) fn of_stat(stat: &rustix::fs::Stat) -> Inode {
        Inode { device: stat.st_dev as u64, number: stat.st_ino as u64 }
    }

    /// The file under a name, links not followed; `None` if there is none.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Inode>> {
        match path.symlink_metadata() {
            Ok(metadata) => Ok(Some(Inode::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn is_at(self, path: &Path) -> bool {
        matches!(Inode::at(path), Ok(Some(found)) if found == self)
    }
}

/// What the bytes of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// An image that this code knows.
    Image(Head),
    /// An image of another version or byte order, or a damaged one.
    StrangeImage(HeadError),
    /// A ring that NIXL writes, whole, damaged or being made.
    NixlRing,
    /// Nothing that we know.
    Unknown,
}

/// Reads just enough of a file to tell what it is.
pub(crate) fn content(file: &File, len: u64) -> io::Result<Content> {
    if len < nixl_header::SIZE as u64 {
        return Ok(Content::Unknown);
    }
    let mut header = [0; nixl_header::SIZE];
    file.read_exact_at(&mut header, 0)?;
    let capacity = u64_at(&header, nixl_header::CAPACITY);
    if let Some(extension) = extension_offset(capacity)
        && extension + head::SIZE as u64 <= len
    {
        let mut bytes = [0; head::SIZE];
        file.read_exact_at(&mut bytes, extension)?;
        match Head::parse(&bytes, capacity, len) {
            Ok(head) => return Ok(Content::Image(head)),
            Err(HeadError::WrongMagic | HeadError::NotReady) => {}
            Err(strange) => return Ok(Content::StrangeImage(strange)),
        }
    }
    let (version, again) = (u32_at(&header, nixl_header::VERSION), u32_at(&header, nixl_header::EXPECTED_VERSION));
    let mask = u64_at(&header, nixl_header::MASK);
    let geometry = capacity.is_power_of_two() && mask == capacity - 1;
    let ring = match version {
        // Being made: NIXL sizes the file first, then writes the header, the version last.
        0 => again == 0 && is_nixl_size(len),
        1..=4 => again == version || geometry,
        5..=255 => again == version && geometry,
        _ => false,
    };
    Ok(if ring { Content::NixlRing } else { Content::Unknown })
}

/// Whether NIXL would give a ring of some capacity this size.
pub(crate) fn is_nixl_size(len: u64) -> bool {
    let Some(records) = len.checked_sub(nixl_header::SIZE as u64) else { return false };
    [56, 48, 16].into_iter().any(|size| {
        records.is_multiple_of(size)
            && (records / size).is_power_of_two()
            && records / size <= CAPACITY_MAX.next_power_of_two()
    })
}

/// Whether the writer of an image lives.
pub(crate) fn is_alive(file: &File, head: &Head) -> io::Result<bool> {
    match lock_state_of(file) {
        LockState::Free => Ok(false),
        LockState::Held => Ok(true),
        LockState::Unsupported => {
            let control = read_control(file, head)?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
            let age = now.abs_diff(control.heartbeat);
            Ok(control.state != State::Closed && age < HEARTBEAT_MAX_US)
        }
    }
}

/// The control line as it stands now.
pub(crate) fn read_control(file: &File, head: &Head) -> io::Result<Control> {
    let mut bytes = [0; control::SIZE];
    file.read_exact_at(&mut bytes, head.extension + control::START as u64)?;
    Ok(Control::parse(&bytes))
}

/// What stands under the name that a new image wants.
#[derive(Debug)]
pub(crate) enum Standing {
    /// Nothing: the name is free.
    Nothing,
    /// A dead image or an empty file of this user's: may be replaced.
    Replaceable(Inode),
    /// Telemetry that isn't ours to replace: the new image takes another name. The words end "... is".
    Telemetry(&'static str),
    /// Anything else: no image under this name. The words end "... is".
    Foreign(String),
}

/// Judges what stands under `path`. `abandoned` is an inode that this writer gave up a moment ago.
pub(crate) fn standing(path: &Path, abandoned: Option<Inode>) -> io::Result<Standing> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Nothing),
        Err(error) => return Err(error),
    };
    let kind = metadata.file_type();
    let foreign = |what: &str| Ok(Standing::Foreign(what.to_owned()));
    if kind.is_symlink() {
        return foreign("a symbolic link");
    } else if kind.is_dir() {
        return foreign("a directory");
    } else if kind.is_fifo() {
        return foreign("a FIFO");
    } else if kind.is_socket() {
        return foreign("a socket");
    } else if !kind.is_file() {
        return foreign("a device");
    }

    let inode = Inode::of(&metadata);
    if abandoned == Some(inode) {
        // Our own image, resized by somebody. In the moment before NIXL writes its header only the size tells.
        return Ok(if is_nixl_size(metadata.len()) {
            Standing::Telemetry("used by a NIXL agent of the same name")
        } else {
            Standing::Replaceable(inode)
        });
    }
    let ours = is_of_this_user(&metadata);
    if metadata.len() == 0 {
        return if ours { Ok(Standing::Replaceable(inode)) } else { foreign("an empty file of another user") };
    }
    let file = match open_unknown(path) {
        Ok(file) => file,
        Err(error) => return Ok(Standing::Foreign(format!("a file that can't be read ({error})"))),
    };
    let opened = file.metadata()?;
    if Inode::of(&opened) != inode {
        return Ok(Standing::Telemetry("being replaced by another process"));
    }
    let what = match content(&file, opened.len())? {
        Content::Image(head) if is_alive(&file, &head)? => "used by another agent of this name",
        Content::Image(_) if ours => return Ok(Standing::Replaceable(inode)),
        Content::Image(_) => "a telemetry file of another user",
        Content::StrangeImage(_) => "a telemetry file of another version",
        Content::NixlRing => "a telemetry file of NIXL's",
        Content::Unknown => return foreign("no telemetry file"),
    };
    Ok(Standing::Telemetry(what))
}

/// Whether a file belongs to the user that this process runs as.
pub(crate) fn is_of_this_user(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}
