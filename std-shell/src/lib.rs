//! Telemetry for data-transfer engines: record transfers, keep the newest in a file, read them live or
//! after a crash.
//!
//! An agent of an engine (NVIDIA NIXL's, or one like it) holds a [`Telemetry`] and says what happens. Recording
//! takes no lock and never waits. A flush thread writes the events into a telemetry file, where any number of
//! [readers](reader) find them. Files are compatible with NIXL's; FORMAT.md describes the bytes.
//!
//! Nothing here breaks its host: whatever is wrong with telemetry ends in one [warning](warn) and in less
//! telemetry.
//!
//! ```
//! use telering::{Operation, Telemetry};
//!
//! // `Telemetry::from_env("prefill-0")` takes everything from NIXL_TELEMETRY_ENABLE, .._DIR and so on.
//! let agent = Telemetry::builder("prefill-0").ignore_environment(true).capture_telemetry(true).build();
//! let mut transfer = agent.begin_transfer(Operation::Write, 1 << 20, 16);
//! // ... hand it to the backend ...
//! transfer.posted();
//! // ... until it is done ...
//! transfer.finish();
//! assert_eq!(transfer.telemetry().unwrap().total_bytes, 1 << 20);
//! ```
//!
//! The command that reads and inspects telemetry files is called `telering` and lives in the crate `telering-cli`.
//!
//! | module | what it knows |
//! |---|---|
//! | (this one) | [`Telemetry`] and its [`Builder`], [`Transfer`], [`Backend`] |
//! | [`reader`], [`source`] | reading telemetry files, NIXL's own included; finding them in a directory |
//! | [`exporter`] | where events go: the trait, the telemetry file, nothing |
//! | [`prometheus`] | metrics as text, and a small server for them |
//! | [`config`] | settings, from the environment |
//! | [`mod@file`] | names of telemetry files, and removing those of dead writers |
//! | [`clock`] | ticks and wall-clock time; a clock for tests |
//! | [`warn`] | how warnings are told |
//! | [`core`] | the crate `telering-core`: records, ring, image, without std |

mod agent;
pub mod clock;
pub mod config;
pub mod exporter;
pub mod file;
mod flush;
mod fnmatch;
mod per_process;
pub mod prometheus;
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

/// The examples of README.md compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
