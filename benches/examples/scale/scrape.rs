//! What a scrape of a directory's files takes.

use std::path::Path;
use std::time::Instant;

use telering::prometheus::{Directory, DirectoryOptions};

/// Scrapes of which the fastest counts; the first one opens every file and is not among them.
const SCRAPES: usize = 7;

/// One page for all files of a directory.
#[derive(Clone, Copy)]
pub(crate) struct Scrape {
    pub(crate) bytes: u64,
    pub(crate) series: u64,
    /// From looking at the files to the last byte of the page.
    pub(crate) nanoseconds: f64,
}

impl Scrape {
    pub(crate) fn of(dir: &Path) -> Scrape {
        let mut directory = Directory::new(dir, DirectoryOptions::default());
        let mut page = String::new();
        directory.render(&mut page);
        let mut nanoseconds = f64::INFINITY;
        for _ in 0..SCRAPES {
            page.clear();
            let start = Instant::now();
            directory.render(&mut page);
            nanoseconds = nanoseconds.min(start.elapsed().as_nanos() as f64);
        }
        let series = page.lines().filter(|line| !line.starts_with('#')).count() as u64;
        Scrape { bytes: page.len() as u64, series, nanoseconds }
    }
}
