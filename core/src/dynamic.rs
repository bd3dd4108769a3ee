//! Running totals of custom and backend events, by name: a table of fixed size, without an allocator.

use heapless::index_map::FnvIndexMap;

use crate::event::Category;
use crate::layout::parts::dynamic::ROOM;
use crate::name::Name;
use crate::snapshot::{DynamicTotal, Total};

/// The first 64 names that come, each with its totals. Further names are counted as overflow.
///
/// ```
/// use telering_core::{Category, Name};
/// use telering_core::dynamic::DynamicTotals;
/// let mut totals = DynamicTotals::new();
/// totals.add(Category::CUSTOM, Name::from_static("cache_hit"), 2, 1_000);
/// totals.add(Category::CUSTOM, Name::from_static("cache_hit"), 3, 2_000);
/// let entry = totals.iter().next().expect("one name");
/// assert_eq!((entry.total.sum, entry.total.count, entry.total.last), (5, 2, 3));
/// ```
#[derive(Debug, Default)]
pub struct DynamicTotals {
    totals: FnvIndexMap<(Category, Name), Total, ROOM>,
    overflow: u64,
}

impl DynamicTotals {
    /// An empty table.
    #[must_use]
    pub fn new() -> DynamicTotals {
        DynamicTotals::default()
    }

    /// Counts one event that completed at `time_us`.
    pub fn add(&mut self, category: Category, name: Name, value: u64, time_us: u64) {
        let key = (category, name);
        if !self.totals.contains_key(&key) && self.totals.insert(key, Total::default()).is_err() {
            self.overflow += 1;
            return;
        }
        if let Some(total) = self.totals.get_mut(&key) {
            total.sum = total.sum.wrapping_add(value);
            total.count += 1;
            total.last = value;
            total.last_us = time_us;
        }
    }

    /// The names in the order in which they first came.
    pub fn iter(&self) -> impl Iterator<Item = DynamicTotal> {
        self.totals.iter().map(|(&(category, name), &total)| DynamicTotal { name, category, total })
    }

    /// Events whose name found no room.
    #[must_use]
    pub const fn overflow(&self) -> u64 {
        self.overflow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write as _;

    #[test]
    fn sixty_four_names_have_totals_and_the_others_are_counted() {
        let mut totals = DynamicTotals::new();
        for round in 1..=2 {
            for place in 0..70 {
                let mut name = heapless::String::<31>::new();
                write!(name, "event_{place}").expect("short enough");
                totals.add(Category::CUSTOM, Name::new(&name).0, place, round);
            }
        }
        // The same name in another category is another entry, and there is no room for it.
        totals.add(Category::BACKEND, Name::from_static("event_0"), 1, 3);
        assert_eq!(totals.overflow(), 2 * 6 + 1);
        let entries: std::vec::Vec<_> = totals.iter().collect();
        assert_eq!(entries.len(), ROOM);
        for (place, entry) in (0..).zip(&entries) {
            assert_eq!(entry.name.as_str(), std::format!("event_{place}"));
            assert_eq!(entry.total, Total { sum: 2 * place, count: 2, last: place, last_us: 2 });
        }
    }

    extern crate std;
}
