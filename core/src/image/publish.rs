//! Publishing numbers into the parts of an image: losses, notices, clock, and the two copies of the metrics.

use super::Image;
use crate::copies;
use crate::layout::image::control;
use crate::layout::parts::{CopyCheck, PartKind, clock, dynamic, losses, metrics, notices};
use crate::names;
use crate::snapshot::{ClockInfo, DynamicTotal, ENTRY_IDS, Flow, HISTOGRAM_IDS, Notices, Snapshot, Total};
use crate::status::Status;
use crate::sync::{AtomicU64, Ordering};

/// Writes words one after the other and adds them to the copy's checksum.
struct CopyWriter<'m> {
    words: core::slice::Iter<'m, AtomicU64>,
    check: CopyCheck,
}

impl<'m> CopyWriter<'m> {
    fn new(words: &'m [AtomicU64]) -> Self {
        CopyWriter { words: words.iter(), check: CopyCheck::default() }
    }

    fn put(&mut self, word: u64) {
        if let Some(place) = self.words.next() {
            place.store(word.to_le(), Ordering::Relaxed);
            self.check.add(word);
        }
    }

    fn put_total(&mut self, total: &Total) {
        for word in [total.sum, total.count, total.last, total.last_us] {
            self.put(word);
        }
    }
}

impl Image<'_, '_> {
    /// Publishes the running totals, as of `now_us`. Readers see all of them or the ones before.
    ///
    /// Of `dynamic` the first 64 are published.
    pub fn publish(&mut self, snapshot: &Snapshot, dynamic: &[DynamicTotal], now_us: u64) {
        let built_in = self.state.plan.part_word(PartKind::Metrics);
        let named = self.state.plan.part_word(PartKind::Dynamic);
        if built_in.is_none() && named.is_none() {
            return;
        }
        let generation = self.extension(control::METRICS_GENERATION);
        let next = copies::publish(generation, self.state.metrics_generation, |generation, half| {
            if let Some(start) = built_in {
                let copy = start + (metrics::COPIES + half * metrics::COPY_SIZE) / 8;
                put_metrics(&self.memory[copy..copy + metrics::COPY_SIZE / 8], generation, snapshot);
            }
            if let Some(start) = named {
                let copy = start + (dynamic::COPIES + half * dynamic::COPY_SIZE) / 8;
                put_dynamic(&self.memory[copy..copy + dynamic::COPY_SIZE / 8], generation, dynamic);
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

fn put_metrics(copy: &[AtomicU64], generation: u64, snapshot: &Snapshot) {
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
    check.store(writer.check.finish().to_le(), Ordering::Relaxed);
}

fn put_dynamic(copy: &[AtomicU64], generation: u64, totals: &[DynamicTotal]) {
    let (check, body) = split_check(copy);
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
    // Entries not in use are outside the checksum.
    check.store(writer.check.finish().to_le(), Ordering::Relaxed);
}

/// The last word of a copy is its check.
fn split_check(copy: &[AtomicU64]) -> (&AtomicU64, &[AtomicU64]) {
    match copy.split_last() {
        Some(split) => split,
        None => unreachable!("a copy has a size known when compiling"),
    }
}
