//! Files that this very process closed and replaced.
//!
//! A restart leaves its predecessor under the second link, for whoever wants to know what was recorded last. A
//! process that makes and closes agents of one name again and again would leave thousands, and on a tmpfs each is
//! memory. So of those that *this* process closed in good order the newest stays; those of other processes, and of
//! agents that didn't close, are not touched.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use telering_core::layout::image::{Control, PART_ROW_SIZE, State, control};
use telering_core::layout::parts::{PartKind, PartRow, identity};

use super::lock::{LockState, lock_state_of, open_unknown};
use super::name;
use super::probe::{Content, Inode, content, is_of_this_user};

/// Second links of one name that are looked at. They are filled from the lowest number on.
const LOOKED_AT: u64 = 1000;

/// Process id, its start and the boot: no two processes have the same.
#[derive(PartialEq, Eq)]
struct Writer([u8; Writer::LEN]);

impl Writer {
    const LEN: usize = identity::BOOT_ID + 16;

    /// Who wrote an image; `None` if the image doesn't say it well enough.
    fn of(file: &File, len: u64) -> io::Result<Option<Writer>> {
        let Content::Image(head) = content(file, len)? else { return Ok(None) };
        for place in 0..head.part_count {
            let mut row = [0; PART_ROW_SIZE];
            file.read_exact_at(&mut row, head.extension + (control::PART_TABLE + place * PART_ROW_SIZE) as u64)?;
            let row = PartRow::parse(&row);
            if row.kind == PartKind::Identity as u32 && row.len >= identity::SIZE && row.lies_inside(len) {
                let mut bytes = [0; Writer::LEN];
                file.read_exact_at(&mut bytes, row.offset)?;
                let known = [identity::PID, identity::PROCESS_START].map(|at| bytes[at..at + 8] != [0; 8]);
                return Ok((known == [true, true]).then_some(Writer(bytes)));
            }
        }
        Ok(None)
    }
}

/// Removes what this process closed under a name before, but for `replaced`, the file that has the name now. `new` is
/// the finished image that will take it. Called under the directory's lock.
pub(super) fn remove_earlier(directory: &Path, encoded: &str, pid: u32, new: &File, replaced: Option<Inode>) {
    let Ok(Some(writer)) = new.metadata().and_then(|metadata| Writer::of(new, metadata.len())) else { return };
    for attempt in 1..LOOKED_AT {
        let hidden = directory.join(name::hidden(encoded, pid, attempt));
        match is_earlier(&hidden, &writer) {
            // The descriptor keeps the inode, so that its number isn't another file's meanwhile.
            Ok(Some((_file, inode))) if Some(inode) != replaced && inode.is_at(&hidden) => {
                // What can't be removed now, the next one tries again.
                let _ = fs::remove_file(&hidden);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            _ => {}
        }
    }
}

/// Whether a file has no other name, and `writer` closed it in good order.
fn is_earlier(path: &Path, writer: &Writer) -> io::Result<Option<(File, Inode)>> {
    if !path.symlink_metadata()?.is_file() {
        return Ok(None);
    }
    let file = open_unknown(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.nlink() != 1 || !is_of_this_user(&metadata) {
        return Ok(None);
    }
    let Content::Image(head) = content(&file, metadata.len())? else { return Ok(None) };
    let mut bytes = [0; control::SIZE];
    file.read_exact_at(&mut bytes, head.extension + control::START as u64)?;
    let closed = Control::parse(&bytes).state == State::Closed && !matches!(lock_state_of(&file), LockState::Held);
    let ours = closed && Writer::of(&file, metadata.len())?.as_ref() == Some(writer);
    Ok(ours.then(|| (file, Inode::of(&metadata))))
}
