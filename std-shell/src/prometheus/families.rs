//! Which metrics there are: names, types and help.

use telering_core::names::{self, BuiltIn};

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Only grows, but for restarts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution: cumulative buckets, sum and count.
    Histogram,
}

impl Kind {
    /// The word of the text format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// All series of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name of the metric: letters, digits and `_`, no digit first.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What it says, in one line.
    pub help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Counter, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, help }
}

/// All errors, told apart by the label `status`.
pub(super) const ERRORS: Family = counter("agent_errors_total", "Failed operations of this agent, by status.");
pub(super) const RECORDED: Family =
    counter("telering_events_recorded_total", "Events that the program recorded, as of the agent's last flush.");
pub(super) const EXPORTED: Family =
    counter("telering_events_exported_total", "Events that reached the agent's exporter, as of its last flush.");
pub(super) const LOST: Family = counter(
    "telering_events_lost_total",
    "Events that never reached the exporter, by cause. The totals of built-in events hold them all the same.",
);
pub(super) const NOTICES: Family =
    counter("telering_notices_total", "Things worth knowing that are no loss of an event, by kind.");
pub(super) const UNKNOWN: Family =
    counter("telering_unknown_events_total", "Events of types that this version does not know.");
pub(super) const NAMED: Family =
    counter("telering_named_events_total", "How many events of a name of the program's or a backend's own there were.");
pub(super) const BUILD_INFO: Family =
    gauge("telering_build_info", "Always 1; the label writer names the library that counts, with its version.");
pub(super) const START_TIME: Family = gauge(
    "telering_start_time_seconds",
    "When counting began, in seconds since the Unix epoch. It changes when counters start again from 0.",
);
pub(super) const UNLISTED: Family =
    gauge("telering_named_series_left_out", "Names of events that this page leaves out: there are more than it lists.");
/// Help of the families that custom and backend events get by their name.
pub(super) const NAMED_SUM_HELP: &str =
    "Sum of the values of events of the program's or a backend's own; the label event has their name.";

/// The families of a built-in event that is no error: running total, last value, distribution.
pub(super) fn of_row(row: &'static BuiltIn) -> [Option<Family>; 3] {
    let [total, last, distribution] = helps(row.id);
    [
        Some(counter(row.counter, total)),
        row.gauge.map(|name| gauge(name, last)),
        row.histogram.map(|name| Family { name, kind: Kind::Histogram, help: distribution }),
    ]
}

/// Help of an event's running total, last value and distribution. A text that no family needs is empty.
const fn helps(id: u32) -> [&'static str; 3] {
    match id {
        names::TX_BYTES => ["Bytes written to peers by finished transfers.", "Bytes of the last finished write.", ""],
        names::RX_BYTES => ["Bytes read from peers by finished transfers.", "Bytes of the last finished read.", ""],
        names::TX_REQUESTS => ["Finished writes.", "", ""],
        names::RX_REQUESTS => ["Finished reads.", "", ""],
        names::MEMORY_REGISTERED => {
            ["Bytes of memory registered so far.", "Bytes of the last registration of memory.", ""]
        }
        names::MEMORY_DEREGISTERED => {
            ["Bytes of memory deregistered so far.", "Bytes of the last deregistration of memory.", ""]
        }
        names::XFER_TIME => [
            "Microseconds from start to completion, added up over all finished transfers.",
            "Microseconds from start to completion of the last finished transfer.",
            "Microseconds from start to completion of transfers.",
        ],
        names::XFER_POST_TIME => [
            "Microseconds from start until the backend had the request, added up over all finished transfers.",
            "Microseconds from start until the backend had the request of the last finished transfer.",
            "Microseconds from start until the backend had the request.",
        ],
        names::EVENTS_DROPPED => {
            ["Events lost before the exporter, because recording threads were ahead of the flush thread.", "", ""]
        }
        names::STARTED => ["Starts of this agent.", "", ""],
        names::STOPPED => ["Stops of this agent in good order.", "", ""],
        names::METADATA_SENT => ["Bytes of metadata sent to peers.", "", ""],
        names::METADATA_RECEIVED => ["Bytes of metadata received from peers.", "", ""],
        names::CONNECTED => ["Connections to peers that came up.", "", ""],
        names::DISCONNECTED => ["Connections to peers that went away.", "", ""],
        _ => ["Sum of an event's values.", "Value of the last event.", "Distribution of an event's values."],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telering_core::names::BUILT_IN;

    #[test]
    fn every_family_has_a_help_of_its_own_in_one_line() {
        let mut seen = std::collections::BTreeSet::new();
        for row in BUILT_IN.iter().filter(|row| names::error_status(row.id).is_none()) {
            for family in of_row(row).into_iter().flatten() {
                assert!(!family.help.is_empty() && !family.help.contains(['\n', '\\']), "{}", family.name);
                assert!(seen.insert(family.help), "{} has the help of another", family.name);
            }
        }
    }
}
