//! Which events are recorded at all.

use super::limited;
use super::nearest::nearest;
use crate::fnmatch::fnmatch;
use crate::warn::{Warning, shown};
use std::collections::HashSet;
use telering_core::names::{BUILT_IN, BuiltIn, by_name, index_of};

/// One bit for each row of [`BUILT_IN`].
const ALL: u64 = u64::MAX >> (64 - BUILT_IN.len());
const _: () = assert!(BUILT_IN.len() <= 64);

/// The events that are recorded: all, or those whose name fits a pattern of a list.
///
/// A pattern ([`fnmatch`]) is compared with an event's base name (`agent_err_canceled`) and with the name that
/// it has in a file (`NIXL_ERR_CANCELED`); fitting one of them is enough. Our own events about agents and
/// connections follow the list as well, and so do the names of an application's and a backend's own events.
/// Names of series (`agent_tx_bytes_total`) are not compared.
///
/// ```
/// use telering::config::Allowlist;
/// let (list, warnings) = Allowlist::from_patterns("agent_tx_*, cache_hit");
/// assert!(warnings.is_empty());
/// assert!(list.allows_name("agent_tx_bytes") && list.allows_name("cache_hit"));
/// assert!(!list.allows_name("agent_rx_bytes") && !list.allows_name("cache_miss"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowlist {
    mask: u64,
    /// `None`: no list, everything is recorded.
    patterns: Option<Vec<String>>,
}

impl Default for Allowlist {
    fn default() -> Allowlist {
        Allowlist::all()
    }
}

impl Allowlist {
    /// Everything.
    #[must_use]
    pub const fn all() -> Allowlist {
        Allowlist { mask: ALL, patterns: None }
    }

    /// Reads a list: patterns separated by commas, blanks around them trimmed, empty ones dropped, each counted
    /// once. A list without a pattern allows everything; a list that fits nothing allows nothing.
    ///
    /// Names of an application's own events aren't known beforehand, so a pattern that fits no built-in event
    /// may still be right. Such a pattern leads to a warning only when it was probably meant for a built-in
    /// event: it begins with `agent_` or `NIXL_ERR_` in any case, or would fit one with `agent_` before it. The
    /// pattern stays in the list.
    #[must_use]
    pub fn from_patterns(list: &str) -> (Allowlist, Vec<Warning>) {
        Allowlist::from_setting("the list of enabled metrics", list)
    }

    /// As [`Allowlist::from_patterns`]; the warnings begin with the name of the setting.
    pub(super) fn from_setting(setting: &str, list: &str) -> (Allowlist, Vec<Warning>) {
        let mut seen = HashSet::new();
        let blanks = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];
        let tokens = list.split(',').map(|token| token.trim_matches(blanks));
        let patterns: Vec<&str> = tokens.filter(|token| !token.is_empty() && seen.insert(*token)).collect();
        if patterns.is_empty() {
            return (Allowlist::all(), Vec::new());
        }
        let mut mask = 0;
        let mut faults = Vec::new();
        for pattern in &patterns {
            let fits = mask_of(pattern);
            mask |= fits;
            if fits == 0 {
                faults.extend(probable_mistake(pattern).map(|fault| format!("{setting}: {fault}")));
            }
        }
        let patterns = patterns.into_iter().map(String::from).collect();
        (Allowlist { mask, patterns: Some(patterns) }, limited(faults, &format!("{setting}: patterns like these")))
    }

    /// One bit for each row of [`BUILT_IN`], set when that event is recorded.
    #[must_use]
    pub const fn mask(&self) -> u64 {
        self.mask
    }

    /// Whether everything is recorded because there is no list.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.patterns.is_none()
    }

    /// Whether the event with this id is recorded; an id that isn't in the table only without a list.
    #[must_use]
    pub const fn allows_id(&self, id: u32) -> bool {
        match index_of(id) {
            Some(place) => self.mask & (1 << place) != 0,
            None => self.is_all(),
        }
    }

    /// Whether an event with this name is recorded: a built-in one under either of its names, or an
    /// application's or a backend's own.
    #[must_use]
    pub fn allows_name(&self, name: &str) -> bool {
        match (&self.patterns, by_name(name.as_bytes())) {
            (None, _) => true,
            (_, Some(row)) => self.allows_id(row.id),
            (Some(patterns), None) => patterns.iter().any(|pattern| fnmatch(pattern.as_bytes(), name.as_bytes())),
        }
    }
}

/// The built-in events that a pattern fits.
fn mask_of(pattern: &str) -> u64 {
    let fits = |name: &str| fnmatch(pattern.as_bytes(), name.as_bytes());
    let bit = |(place, row): (usize, &BuiltIn)| u64::from(fits(row.name) || fits(row.file_name())) << place;
    BUILT_IN.iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
}

/// What to say about a pattern that fits no built-in event, when it looks as if it should.
fn probable_mistake(pattern: &str) -> Option<String> {
    let begins_with = |prefix: &str| {
        pattern.as_bytes().get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    let prefixed = format!("agent_{pattern}");
    let meant = if begins_with("agent_") || begins_with("NIXL_ERR_") {
        let is_series_of =
            |row: &&BuiltIn| row.counter == pattern || row.gauge == Some(pattern) || row.histogram == Some(pattern);
        let names = BUILT_IN.iter().flat_map(|row| [row.name, row.file_name()]);
        BUILT_IN.iter().find(is_series_of).map(|row| row.name).or_else(|| nearest(pattern, names))
    } else if mask_of(&prefixed) != 0 {
        Some(prefixed.as_str())
    } else {
        return None;
    };
    let hint = meant.map_or(String::new(), |meant| format!("; did you mean {}?", shown(meant)));
    Some(format!("{} fits no built-in event and counts for the application's own names only{hint}", shown(pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn enabled(list: &str) -> Vec<&'static str> {
        let (list, _) = Allowlist::from_patterns(list);
        BUILT_IN.iter().filter(|row| list.allows_id(row.id)).map(|row| row.name).collect()
    }

    #[test]
    fn without_a_pattern_everything_is_on() {
        for list in ["", " ", ",", " , ,\t"] {
            let (list, warnings) = Allowlist::from_patterns(list);
            assert_eq!(list, Allowlist::all());
            assert!(warnings.is_empty() && list.is_all() && list.allows_name("anything at all"));
            assert_eq!(list.mask(), (1 << 27) - 1);
        }
    }

    #[test]
    fn patterns_choose_events_by_either_name() {
        assert_eq!(enabled("agent_[tr]x_bytes"), ["agent_tx_bytes", "agent_rx_bytes"]);
        assert_eq!(enabled("agent_err_canceled"), ["agent_err_canceled"]);
        assert_eq!(enabled("NIXL_ERR_CANCELED"), ["agent_err_canceled"]);
        assert_eq!(enabled(" agent_tx_bytes ,, agent_tx_bytes,agent_started"), ["agent_tx_bytes", "agent_started"]);
        assert_eq!(enabled("NIXL_*").len(), 12);
        assert_eq!(enabled("*").len(), BUILT_IN.len());
        assert!(enabled("AGENT_TX_BYTES").is_empty(), "upper and lower case differ");
    }

    #[test]
    fn names_of_ones_own_follow_the_list() {
        let (list, warnings) = Allowlist::from_patterns("cache_*,agent_tx_bytes");
        assert!(warnings.is_empty());
        assert!(list.allows_name("cache_hit") && list.allows_name("agent_tx_bytes"));
        assert!(!list.allows_name("other") && !list.allows_name("NIXL_ERR_BACKEND"));
        assert!(!list.allows_id(4711) && Allowlist::all().allows_id(4711));
        let (list, _) = Allowlist::from_patterns("agent_err_backend");
        assert!(list.allows_name("NIXL_ERR_BACKEND"));
    }

    #[test]
    fn a_probable_mistake_is_told_with_what_was_meant() {
        for (list, meant) in [
            ("agent_tx_byte", Some("\"agent_tx_bytes\"")),
            ("agent_tx_bytes_total", Some("\"agent_tx_bytes\"")),
            ("agent_xfer_time_us", Some("\"agent_xfer_time\"")),
            ("NIXL_ERR_CANCELLED", Some("\"NIXL_ERR_CANCELED\"")),
            ("AGENT_TX_BYTES", Some("\"agent_tx_bytes\"")),
            ("tx_*", Some("\"agent_tx_*\"")),
            ("agent_quite_another_thing", None),
        ] {
            let (_, warnings) = Allowlist::from_patterns(list);
            assert_eq!(warnings.len(), 1, "{list}");
            let message = &warnings[0].message;
            assert!(message.contains(&format!("\"{list}\"")), "{message}");
            assert_eq!(message.contains("did you mean"), meant.is_some(), "{message}");
            assert!(message.contains(meant.unwrap_or_default()), "{message}");
        }
        assert!(Allowlist::from_patterns("cache_*").1.is_empty());
    }

    #[test]
    fn a_thousand_mistakes_give_few_warnings() {
        let list = (0..1000).map(|number| format!("agent_{number}")).collect::<Vec<_>>().join(",");
        let (_, warnings) = Allowlist::from_patterns(&list);
        assert_eq!(warnings.len(), 17);
        assert!(warnings[16].message.contains("984"), "{}", warnings[16].message);
    }

    proptest! {
        #[test]
        fn any_list_is_read(list in "\\PC{0,40}|[a-z_*?,\\[\\]!\\\\ -]{0,40}", name in "\\PC{0,12}|[a-z_]{0,8}") {
            let (list, warnings) = Allowlist::from_patterns(&list);
            prop_assert!(list.mask() <= ALL && warnings.len() <= 17);
            prop_assert!(!list.is_all() || list.allows_name(&name));
            for row in &BUILT_IN {
                prop_assert_eq!(list.allows_name(row.name), list.allows_id(row.id));
                prop_assert_eq!(list.allows_name(row.file_name()), list.allows_id(row.id));
            }
        }
    }
}
