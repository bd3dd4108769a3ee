//! The events that an exporter gets of one transfer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use telering::exporter::{Event, ExportError, Exporter};
use telering::{Operation, Telemetry, TransferRecord};
use telering_core::names;

/// Keeps what comes.
struct Kept(Arc<Mutex<Vec<Event>>>);

impl Exporter for Kept {
    fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
        self.0.lock().expect("no panic while it is held").extend_from_slice(events);
        Ok(())
    }
}

/// (id, value, group) of each event of one transfer.
fn exported(metrics: &str, operation: Operation) -> Vec<(u32, u64, u8)> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let builder = Telemetry::builder("groups").ignore_environment(true).enable(true).metrics(metrics);
    let agent = builder.exporter(Box::new(Kept(Arc::clone(&kept)))).build();
    agent.record_transfer(&TransferRecord {
        operation,
        bytes: 4096,
        descriptors: 1,
        post_duration: Duration::from_micros(20),
        xfer_duration: Duration::from_micros(300),
    });
    agent.close();
    let events = kept.lock().expect("no panic while it is held");
    let of_transfers = events.iter().filter(|event| event.id <= names::XFER_POST_TIME);
    of_transfers
        .map(|event| {
            let row = names::by_id(event.id).expect("an event of the table");
            assert_eq!((event.name.as_str(), event.category), (row.name, row.category));
            assert!(event.timestamp_us > 1_600_000_000_000_000, "{event:?}");
            (event.id, event.value, event.group)
        })
        .collect()
}

#[test]
fn a_transfer_is_four_events_that_count_down() {
    let times = [(names::XFER_POST_TIME, 20, 4), (names::XFER_TIME, 300, 3)];
    let written = exported("*", Operation::Write);
    assert_eq!(written, [times[0], times[1], (names::TX_BYTES, 4096, 2), (names::TX_REQUESTS, 1, 1)]);
    let read = exported("*", Operation::Read);
    assert_eq!(read, [times[0], times[1], (names::RX_BYTES, 4096, 2), (names::RX_REQUESTS, 1, 1)]);
}

#[test]
fn events_that_are_masked_off_are_not_in_the_count() {
    let some = exported("agent_tx_bytes,agent_xfer_time", Operation::Write);
    assert_eq!(some, [(names::XFER_TIME, 300, 2), (names::TX_BYTES, 4096, 1)]);
    assert_eq!(exported("agent_tx_bytes,agent_xfer_time", Operation::Read), [(names::XFER_TIME, 300, 1)]);
}
