//! Telemetry for data-transfer engines.

mod fnmatch;
pub mod warn;

pub use fnmatch::fnmatch;
