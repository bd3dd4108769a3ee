//! Publishing numbers into the parts of an image: losses, notices, clock, and the two copies of the metrics.

use super::{Image, ImageState};
use crate::copies;
use crate::layout::image::control;
use crate::layout::parts::{CopyCheck, PartKind, clock, dynamic, losses, metrics, notices};
use crate::names;
use crate::snapshot::{ClockInfo, DynamicTotal, ENTRY_IDS, Flow, HISTOGRAM_IDS, Notices, Snapshot, Total};
use crate::status::Status;
use crate::sync::{AtomicU64, Ordering};

/// The words of both copies of the next generation, checksums included: all that is left to do with the
/// shared memory is a copy.
#[derive(Clone, Debug)]
pub struct Prepared {
    generation: u64,
    metrics: [u64; metrics::COPY_SIZE / 8],
    dynamic: [u64; dynamic::COPY_SIZE / 8],
    /// Words of `dynamic` that are in use, its check at the end not counted.
    dynamic_used: usize,
}

/// Writes words one after the other and adds them to the copy's checksum.
struct CopyWriter<'m> {
    words: core::slice::IterMut<'m, u64>,
    check: CopyCheck,
}

impl<'m> CopyWriter<'m> {
    fn new(words: &'m mut [u64]) -> Self {
        CopyWriter { words: words.iter_mut(), check: CopyCheck::default() }
    }

    fn put(&mut self, word: u64) {
        if let Some(place) = self.words.next() {
            *place = word;
            self.check.add(word);
        }
    }

    fn put_total(&mut self, total: &Total) {
        for word in [total.sum, total.count, total.last, total.last_us] {
            self.put(word);
        }
    }
}

impl ImageState {
    /// Makes the running totals ready for [`Image::publish_prepared`]. Of `dynamic` the first 64 count.
    #[must_use]
    pub fn prepare(&self, snapshot: &Snapshot, dynamic: &[DynamicTotal]) -> Prepared {
        let generation = self.metrics_generation.wrapping_add(1);
        let mut prepared = Prepared {
            generation,
            metrics: [0; metrics::COPY_SIZE / 8],
            dynamic: [0; dynamic::COPY_SIZE / 8],
            dynamic_used: 0,
        };
        put_metrics(&mut prepared.metrics, generation, snapshot);
        prepared.dynamic_used = put_dynamic(&mut prepared.dynamic, generation, dynamic);
        prepared
    }
}

impl Image<'_, '_> {
    /// Publishes the running totals, as of `now_us`. Readers see all of them or the ones before.
    ///
    /// Of `dynamic` the first 64 are published.
    pub fn publish(&mut self, snapshot: &Snapshot, dynamic: &[DynamicTotal], now_us: u64) {
        let prepared = self.state.prepare(snapshot, dynamic);
        self.publish_prepared(&prepared, now_us);
    }

    /// Publishes numbers that this image's own state prepared after its last publication; others change nothing.
    pub fn publish_prepared(&mut self, prepared: &Prepared, now_us: u64) {
        let built_in = self.state.plan.part_word(PartKind::Metrics);
        let named = self.state.plan.part_word(PartKind::Dynamic);
        let stale = prepared.generation != self.state.metrics_generation.wrapping_add(1);
        if stale || (built_in.is_none() && named.is_none()) {
            return;
        }
        let generation = self.extension(control::METRICS_GENERATION);
        let next = copies::publish(generation, self.state.metrics_generation, |_, half| {
            if let Some(start) = built_in {
                let copy = start + (metrics::COPIES + half * metrics::COPY_SIZE) / 8;
                store(&self.memory[copy..], &prepared.metrics);
            }
            if let Some(start) = named {
                let copy = start + (dynamic::COPIES + half * dynamic::COPY_SIZE) / 8;
                store(&self.memory[copy..], &prepared.dynamic[..prepared.dynamic_used]);
                let last = prepared.dynamic.len() - 1;
                store(&self.memory[copy + last..], &prepared.dynamic[last..]);
            }
        });
        self.put(self.extension(control::METRICS_TIME), now_us);
        self.state.metrics_generation = next;
    }

    fn put_part(&self, kind: PartKind, fields: &[(usize, u64)]) {
        if let Some(start) = self.state.plan.part_word(kind) {
            for &(byte, value) in fields {
                self.put(&self.memory[start + byte / 8], value);
            }
        }
    }

    /// Publishes events recorded, exported and lost.
    pub fn set_flow(&mut self, flow: &Flow) {
        self.put_part(
            PartKind::Losses,
            &[
                (losses::RECORDED, flow.recorded),
                (losses::EXPORTED, flow.exported),
                (losses::STAGING, flow.lost.staging),
                (losses::EXPORTER, flow.lost.exporter),
                (losses::INTERRUPTED, flow.lost.interrupted),
                (losses::BACKEND, flow.lost.backend),
                (losses::CLOSING, flow.lost.closing),
            ],
        );
    }

    /// Publishes the notices.
    pub fn set_notices(&mut self, seen: &Notices) {
        self.put_part(
            PartKind::Notices,
            &[
                (notices::NAMES_CHANGED, seen.names_changed),
                (notices::DYNAMIC_OVERFLOW, seen.dynamic_overflow),
                (notices::REFUSED, seen.refused),
                (notices::FILE_TROUBLE, seen.file_trouble),
            ],
        );
    }

    /// Publishes the clock.
    pub fn set_clock(&mut self, info: &ClockInfo) {
        self.put_part(
            PartKind::Clock,
            &[
                (clock::SOURCE, u64::from(info.source) | u64::from(info.quality) << 32),
                (clock::RATE, info.rate),
                (clock::ANCHOR_TICKS, info.anchor_ticks),
                (clock::ANCHOR_US, info.anchor_us),
            ],
        );
    }
}

fn store(memory: &[AtomicU64], words: &[u64]) {
    for (place, word) in memory.iter().zip(words) {
        place.store(word.to_le(), Ordering::Relaxed);
    }
}

fn put_metrics(copy: &mut [u64], generation: u64, snapshot: &Snapshot) {
    let (check, body) = split_check(copy);
    let mut writer = CopyWriter::new(body);
    writer.put(generation);
    for (id, total) in ENTRY_IDS.into_iter().zip(&snapshot.entries) {
        writer.put(id.into());
        writer.put_total(total);
    }
    for (id, histogram) in HISTOGRAM_IDS.into_iter().zip(&snapshot.histograms) {
        writer.put(id.into());
        writer.put(histogram.sum);
        histogram.buckets.iter().for_each(|&count| writer.put(count));
    }
    for (status, count) in Status::ALL.into_iter().zip(snapshot.errors) {
        writer.put(names::error_id(status).into());
        writer.put(count);
    }
    // The rest of the copy up to its check is reserved: zero, and part of the checksum.
    for _ in 0..writer.words.len() {
        writer.put(0);
    }
    *check = writer.check.finish();
}

/// Returns the words in use. Entries not in use are outside the checksum.
fn put_dynamic(copy: &mut [u64], generation: u64, totals: &[DynamicTotal]) -> usize {
    let (check, body) = split_check(copy);
    let room = body.len();
    let totals = &totals[..totals.len().min(dynamic::ROOM)];
    let mut writer = CopyWriter::new(body);
    writer.put(generation);
    writer.put(totals.len() as u64);
    for entry in totals {
        for bytes in entry.name.as_bytes().as_chunks::<8>().0 {
            writer.put(u64::from_le_bytes(*bytes));
        }
        writer.put(u64::from(entry.category.0 as u32));
        writer.put_total(&entry.total);
    }
    *check = writer.check.finish();
    room - writer.words.len()
}

/// The last word of a copy is its check.
fn split_check(copy: &mut [u64]) -> (&mut u64, &mut [u64]) {
    match copy.split_last_mut() {
        Some(split) => split,
        None => unreachable!("a copy has a size known when compiling"),
    }
}
