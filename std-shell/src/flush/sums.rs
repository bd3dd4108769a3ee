//! Adding up the totals of an agent's slots.

use std::sync::atomic::Ordering;

use telering_core::names::{self, BUILT_IN};
use telering_core::slot::Totals;
use telering_core::snapshot::{ENTRY_IDS, Snapshot};
use telering_core::sync::AtomicU64;

use crate::clock::Anchor;

fn load(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

/// The sums so far, and when each entry's last event was: of several slots the newest tells the last value.
#[derive(Default)]
struct Sums {
    snapshot: Snapshot,
    newest: [u64; ENTRY_IDS.len()],
}

impl Sums {
    fn add(&mut self, id: u32, sum: u64, count: u64, last: u64, ticks: u64) {
        let Some(place) = ENTRY_IDS.iter().position(|&entry| entry == id) else { return };
        let total = &mut self.snapshot.entries[place];
        total.sum = total.sum.wrapping_add(sum);
        total.count = total.count.wrapping_add(count);
        if count > 0 && ticks >= self.newest[place] {
            self.newest[place] = ticks;
            total.last = last;
        }
    }

    fn add_slot(&mut self, totals: &Totals) {
        let directions = [
            (&totals.directions[0], names::TX_BYTES, names::TX_REQUESTS),
            (&totals.directions[1], names::RX_BYTES, names::RX_REQUESTS),
        ];
        let mut last_transfer = 0;
        for (direction, bytes_id, requests_id) in directions {
            let (requests, ticks) = (load(&direction.requests), load(&direction.last_ticks));
            last_transfer = ticks.max(last_transfer);
            self.add(bytes_id, load(&direction.bytes), requests, load(&direction.last_bytes), ticks);
            self.add(requests_id, requests, requests, 1, ticks);
        }
        let durations = [(&totals.xfer_time, names::XFER_TIME), (&totals.post_time, names::XFER_POST_TIME)];
        for (place, (latency, id)) in durations.into_iter().enumerate() {
            let mut count: u64 = 0;
            let histogram = &mut self.snapshot.histograms[place];
            for (sum, bucket) in histogram.buckets.iter_mut().zip(&latency.buckets) {
                let bucket = load(bucket);
                *sum = sum.wrapping_add(bucket);
                count = count.wrapping_add(bucket);
            }
            let sum = load(&latency.sum);
            histogram.sum = histogram.sum.wrapping_add(sum);
            self.add(id, sum, count, load(&latency.last), last_transfer);
        }
        for row in &BUILT_IN {
            if let Some(single) = totals.single(row.id) {
                let ticks = load(&single.last_ticks);
                self.add(row.id, load(&single.sum), load(&single.count), load(&single.last), ticks);
            }
        }
        for (sum, count) in self.snapshot.errors.iter_mut().zip(&totals.errors) {
            *sum = sum.wrapping_add(load(count));
        }
    }
}

/// The sums over all slots. Rows of the names table that `mask` leaves out stay 0.
pub(crate) fn add_up<'a>(slots: impl Iterator<Item = &'a Totals>, mask: u64, anchor: &Anchor) -> Snapshot {
    let mut sums = Sums::default();
    slots.for_each(|totals| sums.add_slot(totals));
    for (place, id) in ENTRY_IDS.into_iter().enumerate() {
        let total = &mut sums.snapshot.entries[place];
        if names::index_of(id).is_none_or(|row| mask >> row & 1 == 0) {
            *total = Default::default();
        } else if total.count > 0 {
            total.last_us = anchor.unix_us(sums.newest[place]);
        }
    }
    sums.snapshot
}
