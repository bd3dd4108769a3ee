//! Custom and backend events as metrics: any name, within bounds.
//!
//! An event `cache hits` becomes `telering_event_cache_hits_total{..,category="CUSTOM",event="cache hits"}`. The
//! metric's name is made clean, the label keeps the event's own: two events whose clean names are the same stay apart,
//! whatever else is there. The prefix keeps them away from all other metrics, in a host's own page too.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;

use super::labels::write_label;
use crate::reader::DynamicMetric;

/// Named events that one sample shows at the most. An agent of ours has no more.
pub const NAMED_PER_SAMPLE_MAX: usize = 64;
/// Metrics made from names of events that one page shows at the most.
pub const NAMED_FAMILIES_MAX: usize = 1000;

/// The named events of one page.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Sums by the metric's name.
    families: BTreeMap<String, Vec<Series>>,
    left_out: u64,
}

/// One agent's events of one name and category.
#[derive(Debug)]
pub(super) struct Series {
    /// Place of the sample in the page.
    pub(super) sample: usize,
    /// Category and name as labels.
    pub(super) labels: String,
    pub(super) sum: u64,
    pub(super) count: u64,
}

impl Named {
    /// Takes a sample's named events; what is over the bounds is counted.
    pub(super) fn add(&mut self, sample: usize, dynamic: &[DynamicMetric]) {
        let (shown, more) = dynamic.split_at(dynamic.len().min(NAMED_PER_SAMPLE_MAX));
        self.left_out += more.len() as u64;
        for metric in shown {
            self.add_one(sample, metric);
        }
    }

    fn add_one(&mut self, sample: usize, metric: &DynamicMetric) {
        let full = self.families.len() >= NAMED_FAMILIES_MAX;
        let family = match self.families.entry(family_name(metric.name.as_str())) {
            Entry::Occupied(family) => family.into_mut(),
            Entry::Vacant(_) if full => {
                self.left_out += 1;
                return;
            }
            Entry::Vacant(place) => place.insert(Vec::new()),
        };
        let labels = labels_of(metric);
        let total = &metric.total;
        // A sample's series stand at the end, and a foreign file may name one event twice.
        let own = family.iter_mut().rev().take_while(|series| series.sample == sample);
        match own.into_iter().find(|series| series.labels == labels) {
            Some(series) => {
                series.sum = series.sum.wrapping_add(total.sum);
                series.count = series.count.wrapping_add(total.count);
            }
            None => family.push(Series { sample, labels, sum: total.sum, count: total.count }),
        }
    }

    /// The metrics with their series, in alphabetical order.
    pub(super) fn families(&self) -> impl Iterator<Item = (&str, &[Series])> {
        self.families.iter().map(|(name, series)| (name.as_str(), series.as_slice()))
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn labels_of(metric: &DynamicMetric) -> String {
    let mut labels = String::new();
    // Writing to a String can't fail.
    let _ = write!(labels, "category=\"{}\",", metric.category);
    let _ = write_label(&mut labels, "event", metric.name.as_str());
    labels
}

/// The metric of an event's name: what Prometheus doesn't take in a name becomes `_`.
fn family_name(event: &str) -> String {
    let event = event.strip_suffix("_total").unwrap_or(event);
    let mut name = String::from("telering_event_");
    name.extend(event.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }));
    name.push_str("_total");
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_a_valid_one() {
        for (event, name) in [
            ("cache_hits", "telering_event_cache_hits_total"),
            ("cache hits", "telering_event_cache_hits_total"),
            ("hits_total", "telering_event_hits_total"),
            ("9 lives", "telering_event_9_lives_total"),
            ("größe", "telering_event_gr__e_total"),
            ("agent_tx_bytes", "telering_event_agent_tx_bytes_total"),
            ("_", "telering_event___total"),
        ] {
            assert_eq!(family_name(event), name);
        }
    }
}
