//! Adding up the totals of many agents so that no sum ever steps back.
//!
//! A sum grows by what each agent's totals grew since they were last added. What an agent added stays when the
//! agent goes; a new one begins from nothing.

use std::collections::BTreeMap;

use telering_core::snapshot::{Flow, Notices, Total};

use crate::prometheus::{Labels, Sample};
use crate::reader::{DynamicMetric, HistogramOf, Metric, MetricsSnapshot};

/// Custom and backend events that one sum tells apart. Agents that make up names would otherwise grow it for ever.
const NAMES_MAX: usize = 64;
/// Sums that are kept apart. Hosts and ranks are few; a file that claims others is nobody's friend.
const GROUPS_MAX: usize = 1024;

/// The sums, one for each set of labels.
#[derive(Default)]
pub(super) struct Sums {
    groups: BTreeMap<Labels, Group>,
}

/// The sum of all agents with the same stable labels.
struct Group {
    sum: Sample,
    /// Cumulative counts at the bounds that all agents have in common, by event type.
    histograms: BTreeMap<u32, Cumulative>,
}

/// A histogram by its cumulative counts: two with different bounds still have their common bounds in common.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cumulative {
    sum: u64,
    count: u64,
    at: BTreeMap<u64, u64>,
}

/// How much a running total grew. One that went past 2^64 goes on from 0; one that is lower for no such reason is a
/// damaged file's, and grew by nothing.
fn grown(before: u64, now: u64) -> u64 {
    match now.checked_sub(before) {
        Some(more) => more,
        None if before >> 63 == 1 && now >> 63 == 0 => now.wrapping_sub(before),
        None => 0,
    }
}

fn add(sum: &mut u64, before: u64, now: u64) {
    *sum = sum.wrapping_add(grown(before, now));
}

fn add_total(sum: &mut Total, before: Option<&Total>, now: &Total) {
    let zero = Total::default();
    let before = before.unwrap_or(&zero);
    add(&mut sum.sum, before.sum, now.sum);
    add(&mut sum.count, before.count, now.count);
    // The last value of all is the one of the latest operation.
    if now.count > 0 && now.last_us >= sum.last_us {
        (sum.last, sum.last_us) = (now.last, now.last_us);
    }
}

/// How many events an agent's totals are made of.
pub(super) fn events(sample: &Sample) -> u64 {
    let counts = sample.metrics.entries.iter().map(|entry| entry.total.count);
    let errors = sample.metrics.errors.iter().map(|(_, count)| *count);
    let dynamic = sample.dynamic.iter().map(|dynamic| dynamic.total.count);
    counts.chain(errors).chain(dynamic).fold(0, u64::wrapping_add)
}

impl Sums {
    /// Adds what an agent's numbers grew from `before`, what they were when they were last added, to `now`.
    pub(super) fn add(&mut self, labels: &Labels, before: Option<&Sample>, now: &Sample) {
        let labels = if self.groups.contains_key(labels) || self.groups.len() < GROUPS_MAX {
            labels.clone()
        } else {
            Labels::new().with("hostname", "")
        };
        let group = self
            .groups
            .entry(labels)
            .or_insert_with_key(|labels| Group { sum: Sample::new(labels.clone()), histograms: BTreeMap::new() });
        group.add(before, now);
    }

    /// All sums, in the order of their labels.
    pub(super) fn samples(&mut self) -> impl Iterator<Item = &Sample> {
        self.groups.values_mut().map(|group| {
            group.write_histograms();
            &group.sum
        })
    }
}

impl Group {
    fn add(&mut self, before: Option<&Sample>, now: &Sample) {
        let old = before.map(|before| &before.metrics);
        self.add_metrics(old, &now.metrics);
        for dynamic in &now.dynamic {
            let same = |other: &&DynamicMetric| other.name == dynamic.name && other.category == dynamic.category;
            let old = before.and_then(|before| before.dynamic.iter().find(same)).map(|old| &old.total);
            self.add_dynamic(old, dynamic);
        }
        if let Some(flow) = &now.flow {
            let old = before.and_then(|before| before.flow).unwrap_or_default();
            add_flow(self.sum.flow.get_or_insert_default(), &old, flow);
        }
        if let Some(notices) = &now.notices {
            let old = before.and_then(|before| before.notices).unwrap_or_default();
            add_notices(self.sum.notices.get_or_insert_default(), &old, notices);
        }
        if before.is_none() {
            // Counting began with the first agent of all.
            self.sum.start_us = match (self.sum.start_us, now.start_us) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            self.sum.writer.clone_from(&now.writer);
        }
    }

    fn add_metrics(&mut self, before: Option<&MetricsSnapshot>, now: &MetricsSnapshot) {
        let metrics = &mut self.sum.metrics;
        for Metric { id, total } in &now.entries {
            let place = metrics.entries.iter().position(|entry| entry.id == *id).unwrap_or_else(|| {
                metrics.entries.push(Metric { id: *id, total: Total::default() });
                metrics.entries.len() - 1
            });
            let old = before.and_then(|before| before.entry(*id));
            add_total(&mut metrics.entries[place].total, old, total);
        }
        for (id, count) in &now.errors {
            let old = before.and_then(|before| before.errors.iter().find(|(other, _)| other == id));
            let old = old.map_or(0, |(_, count)| *count);
            match metrics.errors.iter_mut().find(|(other, _)| other == id) {
                Some((_, sum)) => add(sum, old, *count),
                None => metrics.errors.push((*id, grown(old, *count))),
            }
        }
        for histogram in &now.histograms {
            let new = Cumulative::of(histogram, &now.bounds);
            let old = before.and_then(|before| Some(Cumulative::of(before.histogram(histogram.id)?, &before.bounds)));
            match self.histograms.entry(histogram.id) {
                std::collections::btree_map::Entry::Vacant(place) => _ = place.insert(new.minus(old.as_ref())),
                std::collections::btree_map::Entry::Occupied(mut place) => place.get_mut().add(old.as_ref(), &new),
            }
        }
    }

    /// All histograms of a sample have the same bounds: those that are left in each.
    fn write_histograms(&mut self) {
        let metrics = &mut self.sum.metrics;
        let Some(first) = self.histograms.values().next() else { return };
        let common = |bound: &u64| self.histograms.values().all(|histogram| histogram.at.contains_key(bound));
        metrics.bounds = first.at.keys().copied().filter(common).collect();
        metrics.histograms.clear();
        for (id, histogram) in &self.histograms {
            metrics.histograms.push(histogram.to_buckets(*id, &metrics.bounds));
        }
    }

    fn add_dynamic(&mut self, before: Option<&Total>, now: &DynamicMetric) {
        let same = |other: &DynamicMetric| other.name == now.name && other.category == now.category;
        match self.sum.dynamic.iter().position(same) {
            Some(place) => add_total(&mut self.sum.dynamic[place].total, before, &now.total),
            None if self.sum.dynamic.len() < NAMES_MAX => {
                let mut sum = DynamicMetric { total: Total::default(), ..*now };
                add_total(&mut sum.total, before, &now.total);
                self.sum.dynamic.push(sum);
            }
            None => {
                let more = grown(before.map_or(0, |before| before.count), now.total.count);
                let notices = self.sum.notices.get_or_insert_default();
                notices.dynamic_overflow = notices.dynamic_overflow.wrapping_add(more);
            }
        }
    }
}

fn add_flow(sum: &mut Flow, before: &Flow, now: &Flow) {
    add(&mut sum.recorded, before.recorded, now.recorded);
    add(&mut sum.exported, before.exported, now.exported);
    add(&mut sum.lost.staging, before.lost.staging, now.lost.staging);
    add(&mut sum.lost.exporter, before.lost.exporter, now.lost.exporter);
    add(&mut sum.lost.interrupted, before.lost.interrupted, now.lost.interrupted);
    add(&mut sum.lost.backend, before.lost.backend, now.lost.backend);
    add(&mut sum.lost.closing, before.lost.closing, now.lost.closing);
}

fn add_notices(sum: &mut Notices, before: &Notices, now: &Notices) {
    add(&mut sum.names_changed, before.names_changed, now.names_changed);
    add(&mut sum.dynamic_overflow, before.dynamic_overflow, now.dynamic_overflow);
    add(&mut sum.refused, before.refused, now.refused);
    add(&mut sum.file_trouble, before.file_trouble, now.file_trouble);
}

impl Cumulative {
    fn of(histogram: &HistogramOf, bounds: &[u64]) -> Cumulative {
        let mut count = 0_u64;
        let mut at = BTreeMap::new();
        for (place, bucket) in histogram.buckets.iter().enumerate() {
            count = count.wrapping_add(*bucket);
            if let Some(bound) = bounds.get(place) {
                at.insert(*bound, count);
            }
        }
        Cumulative { sum: histogram.sum, count, at }
    }

    fn minus(mut self, before: Option<&Cumulative>) -> Cumulative {
        if let Some(before) = before {
            self.sum = grown(before.sum, self.sum);
            self.count = grown(before.count, self.count);
            for (bound, count) in &mut self.at {
                *count = grown(before.at.get(bound).copied().unwrap_or(0), *count);
            }
        }
        self
    }

    fn add(&mut self, before: Option<&Cumulative>, now: &Cumulative) {
        let more = now.clone().minus(before);
        self.sum = self.sum.wrapping_add(more.sum);
        self.count = self.count.wrapping_add(more.count);
        // A bound that not all have says nothing of the sum.
        self.at.retain(|bound, count| match more.at.get(bound) {
            Some(more) => {
                *count = count.wrapping_add(*more);
                true
            }
            None => false,
        });
    }

    fn to_buckets(&self, id: u32, bounds: &[u64]) -> HistogramOf {
        let mut below = 0;
        let mut buckets: Vec<u64> = bounds
            .iter()
            .map(|bound| {
                let count = self.at.get(bound).copied().unwrap_or(below);
                let bucket = count.wrapping_sub(below);
                below = count;
                bucket
            })
            .collect();
        buckets.push(self.count.wrapping_sub(below));
        HistogramOf { id, sum: self.sum, buckets }
    }
}
