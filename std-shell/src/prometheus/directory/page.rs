//! What is known of a directory as one page.

use std::collections::HashMap;

use super::{Directory, Image, LabelSet, What};
use crate::prometheus::{Exposition, Family, Kind, Labels};
use crate::reader::Liveness;

const PROCESSES: Family = Family {
    name: "telering_processes",
    kind: Kind::Gauge,
    help: "Processes that write into the directory, by state: alive, closed (in good order), dead (killed). Of files that \
           name no process each counts as one: expired (closed or dead for longer than the TTL, no longer published), ring \
           (NIXL's own, consumed here), not_consumable, unfinished, unreadable, foreign.",
};
const READABLE: Family = Family {
    name: "telering_directory_readable",
    kind: Kind::Gauge,
    help: "Whether the directory could be listed at this scrape, 0 or 1.",
};
const TAKEN: Family = Family {
    name: "telering_ring_events_taken_by_others_total",
    kind: Kind::Counter,
    help: "Events of NIXL's own rings that another consumer took, as far as it shows.",
};
const RIVALS: Family = Family {
    name: "telering_ring_rivals_total",
    kind: Kind::Counter,
    help: "Times that one of NIXL's own rings was found to have another consumer. Each event reaches one of the two only.",
};

const UNHEARD: Family = Family {
    name: "telering_last_numbers_missed_total",
    kind: Kind::Counter,
    help: "Agents that were alive at one look and whose file was gone at the next: what they counted in between is in no sum.",
};

/// The states of [`PROCESSES`], in the order of the page.
const STATES: [&str; 9] =
    ["alive", "closed", "dead", "expired", "ring", "not_consumable", "unfinished", "unreadable", "foreign"];

/// One process among all that ever ran on these machines: boot, process id, start. Two processes with the id 1, of two
/// containers, started at different times.
type Process = ([u8; 16], u64, u64);

impl Directory {
    /// Writes what the last look found.
    pub(super) fn write(&mut self, page: &mut String) {
        let counts = self.count();
        let rivals = self.rivals + self.rings().map(|ring| ring.rivals()).sum::<u64>();
        let mut exposition = Exposition::new();
        match self.options.labels {
            LabelSet::Full => {
                let mut samples: Vec<_> = self.files.values().filter_map(|known| known.what.sample()).collect();
                samples.sort_unstable_by(|one, other| one.labels.cmp(&other.labels));
                samples.into_iter().for_each(|sample| _ = exposition.add(sample));
            }
            LabelSet::Stable => self.sums.samples().for_each(|sample| _ = exposition.add(sample)),
        }
        for (state, count) in STATES.into_iter().zip(counts) {
            exposition.extra(PROCESSES, &Labels::new().with("state", state), count);
        }
        exposition.extra(READABLE, &Labels::new(), self.trouble.is_none().into());
        exposition.extra(TAKEN, &Labels::new(), self.taken_by_others);
        exposition.extra(RIVALS, &Labels::new(), rivals);
        if self.options.labels == LabelSet::Stable {
            exposition.extra(UNHEARD, &Labels::new(), self.unheard);
        }
        // Writing to a String can't fail.
        let _ = exposition.write(page);
        drop(exposition);
        for known in self.files.values_mut() {
            if let What::Image(image) = &mut known.what {
                image.was_published();
            }
        }
    }

    pub(super) fn rings(&self) -> impl Iterator<Item = &super::Ring> {
        self.files.values().filter_map(|known| if let What::Ring(ring) = &known.what { Some(&**ring) } else { None })
    }

    fn count(&self) -> [u64; STATES.len()] {
        let mut counts = [0; STATES.len()];
        let mut processes: HashMap<Process, usize> = HashMap::new();
        for known in self.files.values() {
            let place = match &known.what {
                What::Image(image) if image.expired => 3,
                What::Image(image) => {
                    let place = match image.liveness {
                        Liveness::Alive | Liveness::AliveByHeartbeat => 0,
                        Liveness::Closed => 1,
                        _ => 2,
                    };
                    match process(image) {
                        // One that has closed an agent and goes on with another is alive.
                        Some(process) => {
                            let known = processes.entry(process).or_insert(place);
                            *known = (*known).min(place);
                            continue;
                        }
                        None => place,
                    }
                }
                What::Ring(_) => 4,
                What::Locked => 5,
                What::Unfinished => 6,
                What::Shut(before) if matches!(**before, What::Ring(_)) => 5,
                What::Unreadable | What::Shut(_) => 7,
                What::Foreign => 8,
            };
            counts[place] += 1;
        }
        processes.into_values().for_each(|place| counts[place] += 1);
        // Names over the limit were not looked at.
        counts[7] += self.left_out as u64;
        counts
    }
}

fn process(image: &Image) -> Option<Process> {
    let who = &image.identity;
    (who.process_start != 0).then_some((who.boot_id, who.pid, who.process_start))
}

impl What {
    /// The image, also one that can't be opened just now.
    pub(super) fn image(&self) -> Option<&Image> {
        match self {
            What::Image(image) => Some(image),
            What::Shut(before) => before.image(),
            _ => None,
        }
    }

    /// The numbers to publish.
    fn sample(&self) -> Option<&crate::prometheus::Sample> {
        match self {
            What::Image(image) if !image.expired => Some(&image.sample),
            What::Ring(ring) => Some(&ring.sums.sample),
            _ => None,
        }
    }
}
