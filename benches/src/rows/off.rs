//! What telemetry costs that is not wanted.

use telering::{Mode, Telemetry};

use super::agent::{row, transfer};
use crate::harness::{Reference, Row};

pub(super) fn rows() -> Vec<Row> {
    let builder = || Telemetry::builder("off").ignore_environment(true);
    let off = builder().enable(false).build();
    let masked = builder().enable(true).nop().metrics("agent_memory_registered").build();
    debug_assert_eq!((off.mode(), masked.mode()), (Mode::Off, Mode::Exported));
    vec![
        row("off", "begin, posted, finish with telemetry off", Reference::Raw64, off.clone(), transfer),
        row("off-masked", "the same with all metrics of transfers masked off", Reference::Raw64, masked, transfer),
        row("off-event", "memory_registered with telemetry off", Reference::Raw64, off, |agent, value| {
            agent.memory_registered(value);
        }),
    ]
}
