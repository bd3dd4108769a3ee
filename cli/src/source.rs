//! The files that are read, and who wrote them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use telering::file::name::FileName;
use telering::reader::{
    FileInfo, Follower, From, Item, Layout, NixlLayout, OpenError, Place, Positions, Reader, ReaderOptions, scan_dump,
};
use telering_core::layout::image::TimeBase;

use crate::merge::Stream;
use crate::output::transfers::Grouper;
use crate::terminal::{self, escape};

/// Where an event comes from. Shown, control characters are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The agent's name as it is.
    pub(crate) agent: String,
    pub(crate) pid: Option<u64>,
    pub(crate) rank: Option<String>,
    /// Times count from the boot of the machine, not from 1970.
    pub(crate) since_boot: bool,
}

impl Label {
    /// Who wrote the file: what it says itself, else what its name says.
    pub(crate) fn of(info: &FileInfo) -> Label {
        let identity = info.identity.as_ref();
        let named = identity.map(|identity| identity.agent.clone()).filter(|agent| !agent.is_empty());
        Label {
            agent: named.unwrap_or_else(|| agent_of_path(&info.path, info.layout)),
            pid: identity.map(|identity| identity.pid).filter(|&pid| pid != 0),
            rank: identity.and_then(|identity| identity.rank.clone()),
            since_boot: info.time_base == TimeBase::Boot,
        }
    }
}

/// `name, pid 12, rank 3`.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.agent))?;
        if let Some(pid) = self.pid {
            write!(f, ", pid {pid}")?;
        }
        if let Some(rank) = &self.rank {
            write!(f, ", rank {}", escape(rank))?;
        }
        Ok(())
    }
}

/// NIXL names its files after the agent as it is; telering encodes what does not belong in a file name.
fn agent_of_path(path: &Path, layout: Layout) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match (layout, FileName::parse(&name)) {
        (Layout::Image { .. }, Some(parsed)) => parsed.agent().to_owned(),
        _ => name.into_owned(),
    }
}

/// Whether a layout stores when an event happened.
pub(crate) fn has_times(layout: Layout) -> bool {
    !matches!(layout, Layout::Nixl(nixl) if nixl != NixlLayout::L1)
}

/// How the files are read.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) follow: bool,
    pub(crate) newest: bool,
    pub(crate) consume: bool,
    /// An image inside the file.
    pub(crate) within: Option<Place>,
}

/// The images inside a file, for `--scan`. It complains about those that are cut or swapped, and if there is none.
pub(crate) fn places_of(path: &Path) -> anyhow::Result<Vec<Place>> {
    let dump = scan_dump(path)?;
    for cut in &dump.cut {
        terminal::complain(format_args!(
            "{}: the image at {:#x} goes on for {} bytes, behind the end of this dump: dump more memory",
            terminal::path(path),
            cut.offset,
            cut.len
        ));
    }
    if dump.unsearched > 0 {
        terminal::complain(format_args!(
            "{}: {} images; its last {} bytes are not searched. Split the dump to see the rest",
            terminal::path(path),
            dump.images.len() + dump.cut.len(),
            dump.unsearched
        ));
    }
    if let Some(swapped) = dump.swapped {
        anyhow::bail!(
            "{}: the bytes of the image at {:#x} are swapped in words of {}. Dump bytes instead of words",
            terminal::path(path),
            swapped.head,
            swapped.word
        );
    }
    if dump.images.is_empty() {
        anyhow::bail!("{}: no whole telemetry image in it", terminal::path(path));
    }
    Ok(dump.images)
}

/// One file, as a stream of its items.
pub(crate) struct FileStream {
    pub(crate) path: PathBuf,
    pub(crate) label: Label,
    pub(crate) grouper: Grouper,
    pub(crate) layout: Layout,
    input: Input,
}

enum Input {
    /// What was there when it was opened, so that a busy producer doesn't keep us for ever.
    Once {
        reader: Reader,
        places: u64,
    },
    Follow(Follower),
}

impl FileStream {
    pub(crate) fn open(path: &Path, options: Options) -> anyhow::Result<FileStream> {
        let from = if options.newest { From::Newest } else { From::Oldest };
        let mut reader_options = ReaderOptions::new().from(from).consume(options.consume);
        if let Some(place) = options.within {
            reader_options = reader_options.within(place);
        }
        let input = if options.follow {
            Input::Follow(Follower::with(&reader_options, path)?)
        } else {
            let reader = reader_options.open(path)?;
            let places = places_ahead(&reader.info()?, reader.start());
            Input::Once { reader, places }
        };
        let info = input.reader().info()?;
        Ok(FileStream {
            path: path.to_path_buf(),
            label: Label::of(&info),
            grouper: Grouper::new(matches!(info.layout, Layout::Image { .. })),
            layout: info.layout,
            input,
        })
    }

    /// The file started over: another process may write it now.
    pub(crate) fn started_over(&mut self) {
        if let Ok(info) = self.input.reader().info() {
            self.label = Label::of(&info);
        }
    }

    /// One of NIXL's own rings, which must be emptied by somebody.
    pub(crate) fn is_nixl_ring(&self) -> bool {
        matches!(self.layout, Layout::Nixl(_))
    }
}

impl Input {
    fn reader(&self) -> &Reader {
        match self {
            Input::Once { reader, .. } => reader,
            Input::Follow(follower) => follower.reader(),
        }
    }
}

/// Places of the ring between the reader's start and the end of what is there.
fn places_ahead(info: &FileInfo, start: u64) -> u64 {
    match info.positions {
        Positions::Image { committed, .. } => committed.saturating_sub(start),
        Positions::Nixl { waiting, .. } => waiting,
        _ => u64::MAX,
    }
}

impl Stream for FileStream {
    type Item = Item;

    fn fill(&mut self, into: &mut Vec<Item>) -> anyhow::Result<usize> {
        match &mut self.input {
            Input::Follow(follower) => Ok(follower.poll(into)?),
            Input::Once { reader, places } => {
                if reader.counts().total() >= *places {
                    return Ok(0);
                }
                let count = reader.read(into)?;
                if into.iter().any(|item| matches!(item, Item::Reset { .. })) {
                    *places = reader.counts().total().saturating_add(places_ahead(&reader.info()?, reader.start()));
                }
                Ok(count)
            }
        }
    }

    fn time(item: &Item) -> Option<u64> {
        match item {
            Item::Event(event) => event.any_time_us(),
            _ => None,
        }
    }
}

/// Whether an error only says that there is nothing to be consumed in a telering file.
pub(crate) fn is_nothing_to_consume(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(OpenError::NothingToConsume { .. }))
}

/// Whether a file is not there yet, or is just being made.
pub(crate) fn is_still_to_come(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(OpenError::NotReady { .. }) => true,
        Some(OpenError::Io { source, .. }) => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A ring of NIXL 1.4 with this many events.
    fn ring(events: u8) -> Vec<u8> {
        let mut bytes = vec![0; 40 + 64 * 16];
        bytes[0] = events;
        bytes[16] = 4;
        bytes[20] = 4;
        bytes[24] = 64;
        bytes[32] = 63;
        bytes
    }

    #[test]
    fn reading_once_ends_with_what_was_there_when_it_began() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("initiator");
        fs::write(&path, ring(2)).unwrap();
        let options = Options { follow: false, newest: false, consume: false, within: None };
        let mut once = FileStream::open(&path, options).unwrap();
        let mut follow = FileStream::open(&path, Options { follow: true, ..options }).unwrap();
        let mut items = Vec::new();
        assert_eq!([once.fill(&mut items).unwrap(), follow.fill(&mut items).unwrap()], [2, 2]);
        fs::write(&path, ring(3)).unwrap();
        assert_eq!([once.fill(&mut items).unwrap(), follow.fill(&mut items).unwrap()], [0, 1]);
    }

    #[test]
    fn an_agents_name_is_read_from_its_files_name_where_the_file_says_none() {
        let image = Layout::Image { major: 1, minor: 0 };
        let name = |name: &str, layout| agent_of_path(&Path::new("/tmp").join(name), layout);
        assert_eq!(name("a%2Fb", image), "a/b");
        assert_eq!(name("a%2Fb@12", image), "a/b");
        assert_eq!(name("copy of it", image), "copy of it");
        assert_eq!(name("a%2Fb", Layout::Nixl(NixlLayout::L4)), "a%2Fb");
    }
}
