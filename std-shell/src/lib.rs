//! Telemetry for data-transfer engines.

pub mod clock;
pub mod config;
mod fnmatch;
pub mod warn;

pub use fnmatch::fnmatch;
