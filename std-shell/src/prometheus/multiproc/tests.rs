//! Elections.
