//! Telemetry for data-transfer engines.

pub mod clock;
