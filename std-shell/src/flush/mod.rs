//! The flush thread of an agent: takes records out of the slots, exports them, adds up the totals.
//!
//! It times itself. While records arrive it sleeps for as long as a quarter of the busiest ring takes to
//! fill at twice the last rate; when it sleeps for long, the recorder that fills a quarter wakes it.

mod by_hand;
mod handle;
mod latency;
mod opening;
mod outlet;
mod pace;
mod round;
mod source;
mod sums;
#[cfg(test)]
mod tests;

pub use by_hand::ByHand;
pub(crate) use handle::{FlushHandle, Published};
pub(crate) use sums::add_up;
