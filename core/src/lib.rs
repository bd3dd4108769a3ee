//! The heart of telering: fixed-layout event records, the overwrite ring, the telemetry image.
//!
//! Everything here works in memory that the caller hands over, without an operating system, without
//! an allocator, without a clock. The std shell (crate `telering`) puts it on files and threads;
//! firmware puts it on a static array. FORMAT.md describes the bytes.
//!
//! | module | what it knows |
//! |---|---|
//! | [`names`], [`status`] | the one table of built-in events, NIXL's status codes |
//! | [`event`], [`name`], [`check`] | one record of 56 bytes and what ties it to its place |
//! | [`layout`] | how telemetry files lay out their bytes: ours and NIXL's |
//! | [`ring`] | the single-producer ring that overwrites the oldest, and its exact cursor |
//! | [`slot`] | what one recording thread owns: lease, totals, sleep flag, close flag |
//! | [`snapshot`], [`dynamic`] | plain numbers of one moment; totals of custom events by name |
//! | [`copies`] | publishing a block of numbers so that a reader never sees half of it |
//! | [`image`] | the whole image: formatted, taken up after a reset, written |
//! | [`sync`] | the only choice of atomics |

#![no_std]
#![forbid(unsafe_code)]

pub mod check;
pub mod copies;
pub mod dynamic;
pub mod event;
pub mod image;
pub mod layout;
pub mod name;
pub mod names;
pub mod ring;
pub mod slot;
pub mod snapshot;
pub mod status;
pub mod sync;

pub use event::{Category, Record};
pub use name::Name;
pub use status::Status;
