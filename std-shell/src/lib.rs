//! Telemetry for data-transfer engines.
