//! Following a file whose transfers are numbered, to see that nothing was invented.

use std::path::Path;
use std::thread;
use std::time::Duration;

use telering::reader::{Item, Liveness, Positions, Reader};

/// Reads until the producer closed the file. The answer is one line of JSON.
pub(crate) fn follow(path: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut reader = Reader::open(path)?;
    let mut seen = Seen::default();
    let mut items = Vec::new();
    loop {
        let closed = reader.info()?.liveness == Liveness::Closed;
        while reader.read(&mut items)? > 0 {
            for item in items.drain(..) {
                if let Item::Event(event) = item {
                    seen.event(event.seq, (event.name == "agent_tx_bytes").then_some(event.value));
                }
            }
        }
        if closed {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    let Positions::Image { committed, .. } = reader.info()?.positions else {
        return Err("only images can be followed here".into());
    };
    let counts = reader.counts();
    Ok(format!(
        "{{\"start\":{},\"committed\":{committed},\"events\":{},\"lost\":{},\"unverified\":{},\"interrupted\":{},\
         \"first\":{},\"last\":{},\"sum\":{},\"wrong\":{}}}",
        reader.start(),
        counts.events,
        counts.lost,
        counts.unverified,
        counts.interrupted,
        seen.first.unwrap_or(0),
        seen.last.unwrap_or(0),
        seen.sum,
        seen.wrong
    ))
}

/// What the events were like so far.
#[derive(Default)]
struct Seen {
    first: Option<u64>,
    last: Option<u64>,
    transfer: u64,
    sum: u64,
    wrong: u64,
}

impl Seen {
    fn event(&mut self, seq: u64, transfer: Option<u64>) {
        let mut wrong = self.last.is_some_and(|last| seq <= last);
        self.first = self.first.or(Some(seq));
        self.last = Some(seq);
        if let Some(transfer) = transfer {
            wrong |= transfer <= self.transfer;
            self.transfer = transfer;
            self.sum = self.sum.wrapping_add(transfer);
        }
        self.wrong += u64::from(wrong);
    }
}
