//! Telemetry of firmware: an image in a static array, one producer, a clock that the firmware has anyway.
//!
//! ```
//! use core::num::{NonZeroU32, NonZeroU64};
//! use telering_core::device::{Clock, StaticImage};
//! use telering_core::event::Template;
//! use telering_core::{Category, Name};
//!
//! // All zero in .bss until it is claimed. The symbol's bytes are a telemetry file: dump them and read them.
//! static TELEMETRY: StaticImage<64> = StaticImage::new();
//! // Made while compiling, its part of the check word too.
//! static SENT: Template = Template::new(Category::TRANSFER, Name::from_static("agent_tx_bytes"));
//!
//! fn ticks() -> u64 {
//!     12_345_678 // firmware reads its counter here
//! }
//!
//! const MEGAHERTZ: NonZeroU32 = NonZeroU32::new(1_000_000).unwrap();
//! let instance = NonZeroU64::new(0x1234).unwrap(); // a random number, else a serial number and a boot counter
//! let mut recorder = TELEMETRY.claim(instance, Clock::new(MEGAHERTZ, ticks)).unwrap();
//! recorder.record(&SENT, 1500);
//! assert_eq!(recorder.written(), 1);
//! assert!(TELEMETRY.claim(instance, Clock::new(MEGAHERTZ, ticks)).is_err(), "there is one producer");
//! ```
//!
//! Nothing here allocates, waits, uses floating point, or can panic: recording links no code of a panic.
//! [`StaticImage`] starts anew with every reset. [`BlackBox`] survives it, in memory that the start-up code leaves
//! alone. `Guarded`, with the feature `guarded`, is for a recorder that interrupts and the main loop share.
//! docs/embedded.md tells the whole way from a new project to events on the desk.

mod clock;
#[cfg(feature = "guarded")]
mod guarded;
mod memory;
mod recorder;

pub use clock::Clock;
#[cfg(feature = "guarded")]
pub use guarded::Guarded;
pub use memory::{BlackBox, Claim, Claimed, Found, ImageSize, Size, StaticImage};
pub use recorder::{Recorder, plan};
