//! The one table of built-in events: id, name, category, unit, Prometheus series.
//!
//! Ids 0 to 20 are NIXL's event types (its layout L2b and later store nothing but this id); ids from
//! [`FIRST_OWN_ID`] are ours. A new event is one row here, one line in FORMAT.md and the golden bytes.

use crate::event::Category;
use crate::status::Status;

/// Ids below this are NIXL's, from here on ours.
pub const FIRST_OWN_ID: u32 = 1000;

/// What an event's value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Bytes of one operation.
    Bytes,
    /// A number of things.
    Count,
    /// Microseconds.
    Microseconds,
}

impl Unit {
    /// The unit as a word: `bytes`, `count`, `us`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Microseconds => "us",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltIn {
    /// Event type: NIXL's below [`FIRST_OWN_ID`], ours from there on.
    pub id: u32,
    /// Name that the allowlist matches and that series are made from.
    pub name: &'static str,
    /// Category of the event.
    pub category: Category,
    /// What the value counts.
    pub unit: Unit,
    /// Series of the running total. All errors share one, told apart by the label `status`.
    pub counter: &'static str,
    /// Series of the last operation's value, where upstream has one.
    pub gauge: Option<&'static str>,
    /// Series of the latency histogram, where upstream has one.
    pub histogram: Option<&'static str>,
}

const fn row(id: u32, name: &'static str, category: Category, unit: Unit, counter: &'static str) -> BuiltIn {
    BuiltIn { id, name, category, unit, counter, gauge: None, histogram: None }
}

const fn gauged(row: BuiltIn, gauge: &'static str) -> BuiltIn {
    BuiltIn { gauge: Some(gauge), ..row }
}

const fn timed(row: BuiltIn, histogram: &'static str) -> BuiltIn {
    BuiltIn { histogram: Some(histogram), ..row }
}

const fn error(id: u32, name: &'static str) -> BuiltIn {
    row(id, name, Category::ERROR, Unit::Count, "agent_errors_total")
}

/// Bytes of one finished write.
pub const TX_BYTES: u32 = 0;
/// Bytes of one finished read.
pub const RX_BYTES: u32 = 1;
/// One finished write.
pub const TX_REQUESTS: u32 = 2;
/// One finished read.
pub const RX_REQUESTS: u32 = 3;
/// Bytes of one memory registration.
pub const MEMORY_REGISTERED: u32 = 4;
/// Bytes of one memory deregistration.
pub const MEMORY_DEREGISTERED: u32 = 5;
/// Microseconds from start to completion.
pub const XFER_TIME: u32 = 6;
/// Microseconds from start until the backend had the request.
pub const XFER_POST_TIME: u32 = 7;
/// The first error, `agent_err_not_posted`; the others follow in the order of [`Status::ALL`].
pub const FIRST_ERROR: u32 = 8;
/// Events lost before the exporter since the last flush.
pub const EVENTS_DROPPED: u32 = 20;
/// An agent started.
pub const STARTED: u32 = 1000;
/// An agent stopped.
pub const STOPPED: u32 = 1001;
/// Metadata was sent to a peer.
pub const METADATA_SENT: u32 = 1002;
/// Metadata was received from a peer.
pub const METADATA_RECEIVED: u32 = 1003;
/// A connection to a peer came up.
pub const CONNECTED: u32 = 1004;
/// A connection to a peer went away.
pub const DISCONNECTED: u32 = 1005;

/// The table, in the order of the ids.
pub const BUILT_IN: [BuiltIn; 27] = {
    use Category as C;
    use Unit::{Bytes, Count, Microseconds};
    [
        gauged(row(TX_BYTES, "agent_tx_bytes", C::TRANSFER, Bytes, "agent_tx_bytes_total"), "agent_tx_last_bytes"),
        gauged(row(RX_BYTES, "agent_rx_bytes", C::TRANSFER, Bytes, "agent_rx_bytes_total"), "agent_rx_last_bytes"),
        row(TX_REQUESTS, "agent_tx_requests_num", C::TRANSFER, Count, "agent_tx_requests_num_total"),
        row(RX_REQUESTS, "agent_rx_requests_num", C::TRANSFER, Count, "agent_rx_requests_num_total"),
        gauged(
            row(MEMORY_REGISTERED, "agent_memory_registered", C::MEMORY, Bytes, "agent_memory_registered_total"),
            "agent_memory_registered_last_bytes",
        ),
        gauged(
            row(MEMORY_DEREGISTERED, "agent_memory_deregistered", C::MEMORY, Bytes, "agent_memory_deregistered_total"),
            "agent_memory_deregistered_last_bytes",
        ),
        timed(
            gauged(
                row(XFER_TIME, "agent_xfer_time", C::PERFORMANCE, Microseconds, "agent_xfer_time_total"),
                "agent_xfer_time",
            ),
            "agent_xfer_time_us",
        ),
        timed(
            gauged(
                row(XFER_POST_TIME, "agent_xfer_post_time", C::PERFORMANCE, Microseconds, "agent_xfer_post_time_total"),
                "agent_xfer_post_time",
            ),
            "agent_xfer_post_time_us",
        ),
        error(8, "agent_err_not_posted"),
        error(9, "agent_err_invalid_param"),
        error(10, "agent_err_backend"),
        error(11, "agent_err_not_found"),
        error(12, "agent_err_mismatch"),
        error(13, "agent_err_not_allowed"),
        error(14, "agent_err_repost_active"),
        error(15, "agent_err_unknown"),
        error(16, "agent_err_not_supported"),
        error(17, "agent_err_remote_disconnect"),
        error(18, "agent_err_canceled"),
        error(19, "agent_err_no_telemetry"),
        row(EVENTS_DROPPED, "agent_telemetry_events_dropped", C::ERROR, Count, "agent_telemetry_events_dropped_total"),
        row(STARTED, "agent_started", C::SYSTEM, Count, "agent_started_total"),
        row(STOPPED, "agent_stopped", C::SYSTEM, Count, "agent_stopped_total"),
        row(METADATA_SENT, "agent_metadata_sent", C::CONNECTION, Bytes, "agent_metadata_sent_total"),
        row(METADATA_RECEIVED, "agent_metadata_received", C::CONNECTION, Bytes, "agent_metadata_received_total"),
        row(CONNECTED, "agent_connected", C::CONNECTION, Count, "agent_connected_total"),
        row(DISCONNECTED, "agent_disconnected", C::CONNECTION, Count, "agent_disconnected_total"),
    ]
};

/// How many rows have one of NIXL's ids (0 to 20, without a gap).
const NIXL_ROWS: usize = 21;

/// The place of an id in [`BUILT_IN`], `None` for an id that we don't know.
#[must_use]
pub const fn index_of(id: u32) -> Option<usize> {
    if (id as usize) < NIXL_ROWS {
        Some(id as usize)
    } else if id >= FIRST_OWN_ID && ((id - FIRST_OWN_ID) as usize) < BUILT_IN.len() - NIXL_ROWS {
        Some((id - FIRST_OWN_ID) as usize + NIXL_ROWS)
    } else {
        None
    }
}

/// The row of an event type, `None` for an id that we don't know.
#[must_use]
pub fn by_id(id: u32) -> Option<&'static BuiltIn> {
    index_of(id).map(|index| &BUILT_IN[index])
}

/// The row of a name: a base name (`agent_err_canceled`) or a status text (`NIXL_ERR_CANCELED`).
#[must_use]
pub fn by_name(name: &[u8]) -> Option<&'static BuiltIn> {
    if let Some(status) = Status::ALL.into_iter().find(|status| status.text().as_bytes() == name) {
        return by_id(error_id(status));
    }
    BUILT_IN.iter().find(|row| row.name.as_bytes() == name)
}

/// The event type of a failed operation.
#[must_use]
pub const fn error_id(status: Status) -> u32 {
    FIRST_ERROR + status.index() as u32
}

/// The status behind an error's event type.
#[must_use]
pub const fn error_status(id: u32) -> Option<Status> {
    if id >= FIRST_ERROR && id < FIRST_ERROR + crate::status::STATUS_COUNT as u32 {
        Some(Status::ALL[(id - FIRST_ERROR) as usize])
    } else {
        None
    }
}

impl BuiltIn {
    /// The name that a telemetry file carries: the status text for errors, else [`BuiltIn::name`].
    #[must_use]
    pub const fn file_name(&self) -> &'static str {
        match error_status(self.id) {
            Some(status) => status.text(),
            None => self.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_each_row_is_its_place() {
        for (place, row) in BUILT_IN.iter().enumerate() {
            assert_eq!(index_of(row.id), Some(place), "{}", row.name);
            assert_eq!(by_name(row.name.as_bytes()).map(|found| found.id), Some(row.id));
            assert_eq!(by_name(row.file_name().as_bytes()).map(|found| found.id), Some(row.id));
            assert!(row.name.len() <= 31 && row.file_name().len() <= 31);
        }
        for id in [21, 255, 999, 1006, u32::MAX] {
            assert_eq!(by_id(id), None, "{id}");
        }
    }

    #[test]
    fn errors_stand_in_the_order_of_their_codes() {
        for status in Status::ALL {
            let row = by_id(error_id(status)).expect("every status has a row");
            assert_eq!(row.name.strip_prefix("agent_err_"), Some(status.label()));
            assert_eq!(error_status(row.id), Some(status));
        }
    }

    #[test]
    fn every_counter_ends_in_total() {
        assert!(BUILT_IN.iter().all(|row| row.counter.ends_with("_total")));
    }
}
