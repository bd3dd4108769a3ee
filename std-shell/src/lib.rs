//! Telemetry for data-transfer engines.

mod agent;
pub mod clock;
pub mod config;
pub mod exporter;
pub mod file;
mod flush;
mod fnmatch;
pub mod reader;
pub mod source;
pub mod warn;

pub use agent::{
    BACKEND_EVENTS_MAX, Backend, BackendEvent, Builder, Mode, StartError, Telemetry, Transfer, TransferRecord,
    TransferTelemetry,
};
#[doc(hidden)]
pub use flush::ByHand;
pub use fnmatch::fnmatch;
pub use telering_core as core;
pub use telering_core::slot::Operation;
pub use telering_core::{Category, Name, Status};
