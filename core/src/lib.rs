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
//! | [`device`] | what firmware uses: an image in a static array, taken up after a reset |
//! | [`sync`] | the only choice of atomics |

//!
//! # Targets without 64-bit atomics
//!
//! | feature | for |
//! |---|---|
//! | `critical-section` | one core with interrupts: the firmware's implementation of `critical-section` keeps them out while a word is written |
//! | `unsafe-assume-single-core` | the same by switching interrupts off, without that package: only for one core, in a mode that may do so |
//! | `fallback` | processes of an operating system on a 32-bit machine: locks, at which an interrupt would wait for ever |
//! | `guarded` | any of these: adds `device::Guarded`, which `critical-section` brings along |
//! | `shared-memory` | says that other cores or processes read the memory: refuses to build where its words could be torn |

#![no_std]
#![forbid(unsafe_code)]

#[cfg(not(any(
    target_has_atomic = "64",
    feature = "critical-section",
    feature = "unsafe-assume-single-core",
    all(feature = "fallback", target_has_atomic = "ptr", not(target_os = "none"))
)))]
compile_error!(
    "telering-core: this target has no 64-bit atomics. Turn on one of its features: `critical-section` (firmware on one \
     core, with an implementation of that package), `unsafe-assume-single-core` (the same without that package), or \
     `fallback` (only under an operating system: its locks would hang an interrupt that meets one)"
);
#[cfg(all(feature = "shared-memory", not(target_has_atomic = "64")))]
compile_error!(
    "telering-core: memory that other cores or processes read needs 64-bit atomics, which this target has not: their \
     emulation locks out nobody but this core, and readers would see halves of words. Leave the feature \
     `shared-memory` out, and read the memory on this core or from a dump"
);

#[cfg(not(any(target_pointer_width = "32", target_pointer_width = "64")))]
compile_error!("telering-core: addresses of 16 bits don't reach through an image. It is for cores of 32 and 64 bits");

pub mod check;
pub mod copies;
#[cfg(not(loom))]
pub mod device;
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
