//! Saying once what is wrong with which file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::reader::Shown;
use crate::warn::{Warner, WarningKind};

/// Files that are named. After that one line says that there are more.
const NAMED_MAX: usize = 64;

/// Which files were named.
#[derive(Default)]
pub(super) struct Told {
    files: HashSet<PathBuf>,
    rivals: HashSet<PathBuf>,
    claimed: HashSet<PathBuf>,
}

impl Told {
    /// Tells what is wrong with a file, the first time.
    pub(super) fn file(&mut self, warner: &Warner, path: &Path, message: &str) {
        if first_time(&mut self.files, path) {
            warner.warn(WarningKind::File, message);
            if self.files.len() == NAMED_MAX {
                let more = "there may be more files that can't be read; they are counted and no longer named";
                warner.warn(WarningKind::File, more);
            }
        }
    }

    /// Tells that somebody else takes events out of a ring, the first time.
    pub(super) fn rival(&mut self, warner: &Warner, path: &Path) {
        if first_time(&mut self.rivals, path) {
            let message = format!(
                "{}: another process takes events out of this ring too, so neither sees all of them. Let one process \
                 consume: end the other, or serve the directory once only",
                Shown(path)
            );
            warner.warn(WarningKind::File, message);
        }
    }

    /// Tells that a ring is left to the process that empties it already, the first time.
    pub(super) fn claimed(&mut self, warner: &Warner, path: &Path) {
        if first_time(&mut self.claimed, path) {
            let message = format!(
                "{}: another process of telering takes events out of this ring, so it is left alone until that one ends. \
                 Serve the directory once, or read these numbers there",
                Shown(path)
            );
            warner.warn(WarningKind::File, message);
        }
    }
}

fn first_time(files: &mut HashSet<PathBuf>, path: &Path) -> bool {
    files.len() < NAMED_MAX && files.insert(path.to_path_buf())
}
