//! The parts of an image, copied and checked. A part that is absent, unknown or not wholly inside the file
//! is `None`: nothing here fails, and nothing is allocated by a number that the file gave.

use std::io;

use telering_core::Name;
use telering_core::event::Category;
use telering_core::layout::image::{Control, Head, PART_ROW_SIZE, control, u32_at, u64_at};
use telering_core::layout::parts::{CopyCheck, PartKind, PartRow, clock, dynamic, identity, losses, metrics, notices};
use telering_core::snapshot::{ClockInfo, Flow, Losses, Notices, Total};

use super::info::{DynamicMetric, HistogramOf, Identity, Metric, MetricsSnapshot};
use super::item::EventName;
use super::read_at::{ReadAt, read_whole};

/// The longest part that is read; ours are far shorter.
const LONGEST: u64 = 1 << 20;
/// Looks at metrics whose writer comes around meanwhile.
const LOOKS: u32 = 8;

/// The rows of an image's table of parts.
pub(crate) struct Parts<'a, S> {
    source: &'a S,
    head: &'a Head,
    rows: Vec<PartRow>,
}

impl<'a, S: ReadAt> Parts<'a, S> {
    pub(crate) fn read(source: &'a S, head: &'a Head) -> io::Result<Parts<'a, S>> {
        // Head::parse allows at most 64 rows.
        let mut table = vec![0; head.part_count * PART_ROW_SIZE];
        let whole = read_whole(source, head.extension + control::PART_TABLE as u64, &mut table)?;
        let rows = if whole { table.as_chunks().0.iter().map(PartRow::parse).collect() } else { Vec::new() };
        Ok(Parts { source, head, rows })
    }

    pub(crate) fn rows(&self) -> &[PartRow] {
        &self.rows
    }

    fn row(&self, kind: PartKind) -> Option<&PartRow> {
        let behind = self.head.extension + control::PART_TABLE as u64;
        let known = |row: &&PartRow| row.kind == kind as u32 && row.version == PartKind::VERSION;
        self.rows.iter().find(known).filter(|row| row.lies_inside(self.head.image_len) && row.offset >= behind)
    }

    /// A part's bytes from its start, `most` at the most.
    fn bytes(&self, kind: PartKind, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(row) = self.row(kind) else { return Ok(None) };
        let mut bytes = vec![0; row.len.min(most).min(LONGEST) as usize];
        Ok(read_whole(self.source, row.offset, &mut bytes)?.then_some(bytes))
    }

    fn whole(&self, kind: PartKind) -> io::Result<Option<Vec<u8>>> {
        Ok(self.bytes(kind, kind.size())?.filter(|bytes| bytes.len() as u64 == kind.size()))
    }

    pub(crate) fn identity(&self) -> io::Result<Option<Identity>> {
        Ok(self.whole(PartKind::Identity)?.map(|bytes| {
            let mut boot_id = [0; 16];
            boot_id.copy_from_slice(&bytes[identity::BOOT_ID..][..16]);
            Identity {
                agent: text(&bytes, identity::AGENT),
                hostname: text(&bytes, identity::HOSTNAME),
                rank: Some(text(&bytes, identity::RANK)).filter(|rank| !rank.is_empty()),
                writer: Some(text(&bytes, identity::WRITER)).filter(|writer| !writer.is_empty()),
                pid: u64_at(&bytes, identity::PID),
                process_start: u64_at(&bytes, identity::PROCESS_START),
                boot_id,
                agent_instance: u64_at(&bytes, identity::AGENT_INSTANCE),
                uid: u64_at(&bytes, identity::UID),
            }
        }))
    }

    pub(crate) fn flow(&self) -> io::Result<Option<Flow>> {
        Ok(self.whole(PartKind::Losses)?.map(|bytes| {
            let at = |field| u64_at(&bytes, field);
            let mut flow = Flow { recorded: at(losses::RECORDED), exported: at(losses::EXPORTED), ..Flow::default() };
            flow.lost = Losses {
                staging: at(losses::STAGING),
                exporter: at(losses::EXPORTER),
                interrupted: at(losses::INTERRUPTED),
                backend: at(losses::BACKEND),
                closing: at(losses::CLOSING),
            };
            flow
        }))
    }

    pub(crate) fn notices(&self) -> io::Result<Option<Notices>> {
        Ok(self.whole(PartKind::Notices)?.map(|bytes| {
            let at = |field| u64_at(&bytes, field);
            Notices {
                names_changed: at(notices::NAMES_CHANGED),
                dynamic_overflow: at(notices::DYNAMIC_OVERFLOW),
                refused: at(notices::REFUSED),
                file_trouble: at(notices::FILE_TROUBLE),
            }
        }))
    }

    pub(crate) fn clock(&self) -> io::Result<Option<ClockInfo>> {
        Ok(self.whole(PartKind::Clock)?.map(|bytes| ClockInfo {
            source: u32_at(&bytes, clock::SOURCE),
            quality: u32_at(&bytes, clock::QUALITY),
            rate: u64_at(&bytes, clock::RATE),
            anchor_ticks: u64_at(&bytes, clock::ANCHOR_TICKS),
            anchor_us: u64_at(&bytes, clock::ANCHOR_US),
        }))
    }

    /// The newest copy of the running totals that is whole.
    pub(crate) fn metrics(&self) -> io::Result<Option<MetricsSnapshot>> {
        self.newest(PartKind::Metrics, |part| {
            let copy_size = copy_size(part, metrics::COPY_SIZE_AT)?;
            Some((metrics::COPIES, copy_size, metrics_of as Parse<_>))
        })
    }

    /// The newest copy of the custom events' running totals that is whole.
    pub(crate) fn dynamic(&self) -> io::Result<Option<Vec<DynamicMetric>>> {
        self.newest(PartKind::Dynamic, |part| {
            let copy_size = copy_size(part, dynamic::COPY_SIZE_AT)?;
            Some((dynamic::COPIES, copy_size, dynamic_of as Parse<_>))
        })
    }

    fn newest<T>(
        &self,
        kind: PartKind,
        shape: impl Fn(&[u8]) -> Option<(usize, usize, Parse<T>)>,
    ) -> io::Result<Option<T>> {
        for _ in 0..LOOKS {
            let control = self.control()?;
            let Some(part) = self.bytes(kind, u64::MAX)? else { return Ok(None) };
            let Some((start, size, parse)) = shape(&part) else { return Ok(None) };
            let (wanted, after) = (control.metrics_generation, self.control()?.metrics_generation);
            let copy = |generation: u64| part.get(start + (generation & 1) as usize * size..)?.get(..size);
            if wanted == after {
                if wanted == 0 {
                    return Ok(None);
                }
                let found = copy(wanted).filter(|copy| u64_at(copy, 0) == wanted).and_then(|copy| parse(&part, copy));
                if found.is_some() {
                    return Ok(found);
                }
                // A copy of a live file: its two halves and its control words are of different moments.
                let mut halves = [copy(0), copy(1)];
                halves.sort_by_key(|half| half.map_or(0, |copy| u64_at(copy, 0)));
                return Ok(halves.into_iter().rev().flatten().find_map(|copy| parse(&part, copy)));
            }
        }
        Ok(None)
    }

    fn control(&self) -> io::Result<Control> {
        let mut bytes = [0; control::SIZE];
        // The caller held the head against the file's length; a file cut since reads as zeros.
        let _ = read_whole(self.source, self.head.extension + control::START as u64, &mut bytes)?;
        Ok(Control::parse(&bytes))
    }
}

/// Makes numbers of the part's own header and one copy; `None` if the copy is not whole.
type Parse<T> = fn(&[u8], &[u8]) -> Option<T>;

fn copy_size(part: &[u8], at: usize) -> Option<usize> {
    let size = usize::try_from(u64_at(part, at)).ok()?;
    (size.is_multiple_of(8) && size >= 16 && size <= part.len()).then_some(size)
}

fn metrics_of(part: &[u8], copy: &[u8]) -> Option<MetricsSnapshot> {
    let (body, check) = copy.split_at_checked(copy.len() - 8)?;
    if CopyCheck::of_bytes(body) != u64_at(check, 0) {
        return None;
    }
    let mut rest = body.get(metrics::COPY_ENTRIES..)?;
    let mut take = |count: u32, size: usize| {
        let (taken, behind) = rest.split_at_checked((count as usize).checked_mul(size)?)?;
        rest = behind;
        Some(taken)
    };
    let entries = take(u32_at(part, metrics::COUNTS), metrics::ENTRY_SIZE)?;
    let histograms = take(u32_at(part, metrics::COUNTS + 4), metrics::HISTOGRAM_SIZE)?;
    let errors = take(u32_at(part, metrics::BOUNDS_AND_STATUSES + 4), metrics::ERROR_SIZE)?;
    let bounds = (u32_at(part, metrics::BOUNDS_AND_STATUSES) as usize).min(metrics::BOUNDS_MAX);
    let bounds: Vec<u64> = (0..bounds).map(|at| u64_at(part, metrics::BOUNDS + at * 8)).collect();
    let histogram = |bytes: &[u8]| {
        // One bucket for each bound in use, then the overflow; what is behind stays 0.
        let buckets = (0..=bounds.len()).map(|at| u64_at(bytes, 16 + at * 8)).collect();
        HistogramOf { id: u64_at(bytes, 0) as u32, sum: u64_at(bytes, 8), buckets }
    };
    Some(MetricsSnapshot {
        generation: u64_at(copy, 0),
        entries: entries
            .chunks_exact(metrics::ENTRY_SIZE)
            .map(|bytes| Metric { id: u64_at(bytes, 0) as u32, total: total_at(bytes, 8) })
            .collect(),
        histograms: histograms.chunks_exact(metrics::HISTOGRAM_SIZE).map(histogram).collect(),
        errors: errors
            .chunks_exact(metrics::ERROR_SIZE)
            .map(|bytes| (u64_at(bytes, 0) as u32, u64_at(bytes, 8)))
            .collect(),
        bounds,
    })
}

fn dynamic_of(_part: &[u8], copy: &[u8]) -> Option<Vec<DynamicMetric>> {
    let used = usize::try_from(u64_at(copy, dynamic::COPY_USED)).ok().filter(|&used| used <= dynamic::ROOM)?;
    let end = dynamic::COPY_ENTRIES + used * dynamic::ENTRY_SIZE;
    let check = u64_at(copy, copy.len() - 8);
    let body = copy.get(..end).filter(|body| body.len() <= copy.len() - 8 && CopyCheck::of_bytes(body) == check)?;
    let entries = body[dynamic::COPY_ENTRIES..].chunks_exact(dynamic::ENTRY_SIZE);
    Some(
        entries
            .map(|bytes| {
                let mut name = [0; 32];
                name.copy_from_slice(&bytes[..32]);
                DynamicMetric {
                    name: EventName::of(&Name::from_bytes(name)),
                    category: Category(u32_at(bytes, 32) as i32),
                    total: total_at(bytes, 40),
                }
            })
            .collect(),
    )
}

fn total_at(bytes: &[u8], at: usize) -> Total {
    Total {
        sum: u64_at(bytes, at),
        count: u64_at(bytes, at + 8),
        last: u64_at(bytes, at + 16),
        last_us: u64_at(bytes, at + 24),
    }
}

/// A text of fixed room: up to its NUL, what is no UTF-8 replaced. Control characters stay, for labels must
/// give them back; whoever prints them escapes them.
fn text(bytes: &[u8], (at, room): (usize, usize)) -> String {
    let bytes = &bytes[at..at + room];
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(room);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
