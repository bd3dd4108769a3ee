//! Telemetry for data-transfer engines.

pub mod clock;
pub mod config;
pub mod file;
mod fnmatch;
pub mod warn;

pub use fnmatch::fnmatch;
