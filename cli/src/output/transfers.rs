//! Finished transfers, put together from the four events that each of them leaves.

use telering::reader::Event;
use telering_core::names::{RX_BYTES, RX_REQUESTS, TX_BYTES, TX_REQUESTS, XFER_POST_TIME, XFER_TIME};

/// One finished transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FinishedTransfer {
    /// When it completed, Unix microseconds.
    pub(crate) end_us: u64,
    /// `write` or `read`.
    pub(crate) operation: &'static str,
    pub(crate) bytes: u64,
    /// From the start until the backend had it.
    pub(crate) post_us: u64,
    /// From the start to the end.
    pub(crate) xfer_us: u64,
}

impl FinishedTransfer {
    pub(crate) fn start_us(&self) -> u64 {
        self.end_us.saturating_sub(self.xfer_us)
    }
}

/// Puts the events of one file together.
///
/// A transfer's events follow each other: agent_xfer_post_time, agent_xfer_time, agent_tx_bytes or agent_rx_bytes,
/// the count of requests. In a telering image they carry one timestamp. Groups with a part missing are counted,
/// not guessed.
pub(crate) struct Grouper {
    one_time: bool,
    open: Option<Group>,
    incomplete: u64,
}

struct Group {
    timestamp_us: u64,
    last: Part,
    post_us: Option<u64>,
    xfer_us: Option<u64>,
    bytes: Option<(&'static str, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Post,
    Xfer,
    Bytes(&'static str),
    Requests(&'static str),
}

impl Part {
    fn place(self) -> u8 {
        match self {
            Part::Post => 0,
            Part::Xfer => 1,
            Part::Bytes(_) => 2,
            Part::Requests(_) => 3,
        }
    }

    fn of(id: Option<u32>) -> Option<Part> {
        Some(match id? {
            XFER_POST_TIME => Part::Post,
            XFER_TIME => Part::Xfer,
            TX_BYTES => Part::Bytes("write"),
            RX_BYTES => Part::Bytes("read"),
            TX_REQUESTS => Part::Requests("write"),
            RX_REQUESTS => Part::Requests("read"),
            _ => return None,
        })
    }
}

impl Grouper {
    /// `one_time`: the four events carry one timestamp, as telering writes them. NIXL takes one for each.
    pub(crate) fn new(one_time: bool) -> Grouper {
        Grouper { one_time, open: None, incomplete: 0 }
    }

    /// The next event of the file; returns the transfer that it completes.
    pub(crate) fn event(&mut self, event: &Event) -> Option<FinishedTransfer> {
        self.next(event.id, event.timestamp_us?, event.value)
    }

    /// Something is missing here: what is open can't be completed.
    pub(crate) fn gap(&mut self) {
        if self.open.take().is_some() {
            self.incomplete += 1;
        }
    }

    /// Transfers that were left out so far.
    pub(crate) fn incomplete(&self) -> u64 {
        self.incomplete
    }

    fn next(&mut self, id: Option<u32>, timestamp_us: u64, value: u64) -> Option<FinishedTransfer> {
        let Some(part) = Part::of(id) else {
            self.gap();
            return None;
        };
        let goes_on = self.open.as_ref().is_some_and(|group| {
            let in_time =
                if self.one_time { timestamp_us == group.timestamp_us } else { timestamp_us >= group.timestamp_us };
            part.place() > group.last.place() && in_time
        });
        if !goes_on {
            self.gap();
        }
        let empty = Group { timestamp_us, last: part, post_us: None, xfer_us: None, bytes: None };
        let group = self.open.get_or_insert(empty);
        group.last = part;
        group.timestamp_us = timestamp_us;
        match part {
            Part::Post => group.post_us = Some(value),
            Part::Xfer => group.xfer_us = Some(value),
            Part::Bytes(operation) => group.bytes = Some((operation, value)),
            Part::Requests(requested) => {
                let group = self.open.take()?;
                if let (Some(post_us), Some(xfer_us), Some((operation, bytes))) =
                    (group.post_us, group.xfer_us, group.bytes)
                    && operation == requested
                {
                    return Some(FinishedTransfer { end_us: timestamp_us, operation, bytes, post_us, xfer_us });
                }
                self.incomplete += 1;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(one_time: bool, events: &[(u32, u64, u64)]) -> (Vec<FinishedTransfer>, u64) {
        let mut grouper = Grouper::new(one_time);
        let found = events.iter().filter_map(|&(id, time, value)| grouper.next(Some(id), time, value)).collect();
        grouper.gap();
        (found, grouper.incomplete())
    }

    #[test]
    fn four_events_make_a_transfer() {
        let (found, incomplete) = run(
            true,
            &[
                (XFER_POST_TIME, 100, 3),
                (XFER_TIME, 100, 20),
                (RX_BYTES, 100, 4096),
                (RX_REQUESTS, 100, 1),
                (XFER_POST_TIME, 200, 1),
                (XFER_TIME, 200, 300),
                (TX_BYTES, 200, 1),
                (TX_REQUESTS, 200, 1),
            ],
        );
        assert_eq!(incomplete, 0);
        assert_eq!(
            found,
            [
                FinishedTransfer { end_us: 100, operation: "read", bytes: 4096, post_us: 3, xfer_us: 20 },
                FinishedTransfer { end_us: 200, operation: "write", bytes: 1, post_us: 1, xfer_us: 300 },
            ]
        );
        assert_eq!([found[0].start_us(), found[1].start_us()], [80, 0]);
    }

    #[test]
    fn a_group_with_a_part_missing_is_counted_once_and_not_guessed() {
        let whole = [(XFER_POST_TIME, 9, 3), (XFER_TIME, 9, 20), (TX_BYTES, 9, 7), (TX_REQUESTS, 9, 1)];
        for missing in 0..4 {
            let mut events = whole.to_vec();
            events.remove(missing);
            events.extend(whole.map(|(id, _, value)| (id, 10, value)));
            let (found, incomplete) = run(true, &events);
            assert_eq!((found.len(), incomplete), (1, 1), "without part {missing}");
        }
    }

    #[test]
    fn events_of_two_moments_are_not_one_transfer() {
        let events = [(XFER_POST_TIME, 9, 3), (XFER_TIME, 9, 20), (TX_BYTES, 10, 7), (TX_REQUESTS, 10, 1)];
        assert_eq!(run(true, &events), (vec![], 2));
        // NIXL takes the time anew for each event.
        assert_eq!(run(false, &events).0.len(), 1);
    }

    #[test]
    fn bytes_written_and_a_request_to_read_are_not_one_transfer() {
        let events = [(XFER_POST_TIME, 9, 3), (XFER_TIME, 9, 20), (TX_BYTES, 9, 7), (RX_REQUESTS, 9, 1)];
        assert_eq!(run(true, &events), (vec![], 1));
    }
}
