//! Static memory for an image: claimed once per boot, or taken up after a reset.

use core::num::NonZeroU64;

use super::recorder::formatted_ring;
use super::{Clock, Recorder, plan};
use crate::event::RECORD_WORDS;
use crate::image::{ImagePlan, TakeUpError};
use crate::layout::image::head;
use crate::ring::Ring;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// A number of records that an image in static memory can have: see [`ImageSize`].
#[derive(Debug)]
pub struct Size<const N: usize>;

/// How much memory an image of `N` records takes. A power of two from 2 to 16384.
#[diagnostic::on_unimplemented(
    message = "an image in static memory has a power of two of records, from 2 to 16384",
    label = "this number of records is none of them"
)]
pub trait ImageSize: sealed::Sealed {
    /// The words of the image.
    type Words: AsRef<[AtomicU64]> + core::fmt::Debug + Sync + 'static;
    /// All zero.
    const ZERO: Self::Words;
    /// Where everything stands.
    const PLAN: ImagePlan;
}

mod sealed {
    pub trait Sealed {}
}

const fn plan_of(records: usize) -> ImagePlan {
    match plan(records as u64) {
        Ok(plan) => plan,
        Err(_) => panic!("the number of records must be a power of two"),
    }
}

macro_rules! sizes {
    ($($records:literal)*) => {
        $(
            impl sealed::Sealed for Size<$records> {}
            impl ImageSize for Size<$records> {
                type Words = [AtomicU64; plan_of($records).words()];
                #[expect(clippy::declare_interior_mutable_const, reason = "each use is to be a new array")]
                const ZERO: Self::Words = [const { AtomicU64::new(0) }; plan_of($records).words()];
                const PLAN: ImagePlan = plan_of($records);
            }
        )*
    };
}

sizes!(2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384);

/// An image of `N` records in a `static`, all zero in .bss and formatted when it is claimed.
///
/// The bytes of the symbol are a telemetry file. 64 records take 3904 bytes, 16 take 1216.
#[derive(Debug)]
#[repr(transparent)]
pub struct StaticImage<const N: usize>
where
    Size<N>: ImageSize,
{
    words: <Size<N> as ImageSize>::Words,
}

/// Somebody else claimed this image since the last boot: it has its one producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed;

impl core::fmt::Display for Claimed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("this image has a producer already: an image is claimed once per boot")
    }
}

impl core::error::Error for Claimed {}

impl<const N: usize> StaticImage<N>
where
    Size<N>: ImageSize,
{
    /// Zeros.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is for a static, which `default` can't make")]
    pub const fn new() -> Self {
        StaticImage { words: <Size<N> as ImageSize>::ZERO }
    }

    /// Formats the image and gives its one producer. `instance` names this image among all others: a random number,
    /// else a serial number mixed with a boot counter.
    ///
    /// # Errors
    /// [`Claimed`] for every call but the first since boot. Also where the memory is not zero at boot: such memory is
    /// for a [`BlackBox`].
    pub fn claim(&'static self, instance: NonZeroU64, clock: Clock) -> Result<Recorder<'static>, Claimed> {
        let plan = &<Size<N> as ImageSize>::PLAN;
        let claimed = self.words().get(plan.extension_word() + head::INSTANCE / 8).ok_or(Claimed)?;
        // The instance is 0 until somebody has the image. It guards nothing else: formatting ends with a release of
        // its own.
        claimed
            .compare_exchange(0, instance.get().to_le(), Ordering::Relaxed, Ordering::Relaxed)
            .map_err(|_| Claimed)?;
        Recorder::format_as(plan, self.words(), true, instance, clock).map_err(|_| Claimed)
    }

    /// The words of the image, for readers on the device and for sending it elsewhere: as bytes
    /// (`word.load(Ordering::Relaxed).to_ne_bytes()`), one after the other, they are a telemetry file.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        self.words.as_ref()
    }

    /// The ring, for a [`Cursor`](crate::ring::Cursor) on the device; `None` before the image was claimed.
    #[must_use]
    pub fn ring(&self) -> Option<Ring<'_, RECORD_WORDS>> {
        formatted_ring(self.words(), &<Size<N> as ImageSize>::PLAN)
    }
}

/// Who claimed a [`BlackBox`] since the last boot. It lies in ordinary memory, which is zero after a reset.
#[derive(Debug)]
pub struct Claim {
    taken: AtomicU32,
}

impl Claim {
    /// Nobody yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is for a static, which `default` can't make")]
    pub const fn new() -> Claim {
        Claim { taken: AtomicU32::new(0) }
    }
}

/// What the memory of a [`BlackBox`] held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The image of the runs before, which goes on.
    Image {
        /// Records that the reset interrupted: readers count them as lost.
        interrupted: u64,
        /// Resets that the image survived, this one included.
        boots: u32,
    },
    /// No image that can go on, for this reason: the memory was formatted. So it is after power was lost.
    Nothing(TakeUpError),
}

/// An image of `N` records that survives a reset: a `static` in memory that the start-up code does not touch.
///
/// The memory must be read and written without a cache, or with one that writes through: what a reset finds in a
/// write-back cache is lost.
///
/// ```
/// use core::num::{NonZeroU32, NonZeroU64};
/// use telering_core::device::{BlackBox, Claim, Clock, Found};
///
/// // In firmware: #[unsafe(link_section = ".uninit.telemetry")]
/// static BLACK_BOX: BlackBox<64> = BlackBox::new();
/// static CLAIM: Claim = Claim::new();
///
/// let clock = Clock::new(NonZeroU32::new(32_768).unwrap(), || 0);
/// let (recorder, found) = BLACK_BOX.attach(&CLAIM, NonZeroU64::new(7).unwrap(), clock).unwrap();
/// assert!(matches!(found, Found::Nothing(_)), "power was off");
/// assert_eq!(recorder.boots(), 0);
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct BlackBox<const N: usize>
where
    Size<N>: ImageSize,
{
    image: StaticImage<N>,
}

impl<const N: usize> BlackBox<N>
where
    Size<N>: ImageSize,
{
    /// Memory whose content, in its section, is whatever was there.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is for a static, which `default` can't make")]
    pub const fn new() -> Self {
        BlackBox { image: StaticImage::new() }
    }

    /// Goes on with the image of the run before, or formats the memory if there is none; `instance` names a new image.
    /// Gives the one producer. `claim` is this image's own, in a `static` of ordinary memory.
    ///
    /// # Errors
    /// [`Claimed`] for every call but the first since boot.
    pub fn attach(
        &'static self,
        claim: &'static Claim,
        instance: NonZeroU64,
        clock: Clock,
    ) -> Result<(Recorder<'static>, Found), Claimed> {
        // It guards nothing else: the producer is handed out to whoever changed the word.
        if claim.taken.swap(1, Ordering::Relaxed) != 0 {
            return Err(Claimed);
        }
        let plan = &<Size<N> as ImageSize>::PLAN;
        match Recorder::attach_as(plan, self.words(), clock) {
            Ok((recorder, interrupted)) => {
                let boots = recorder.boots();
                Ok((recorder, Found::Image { interrupted, boots }))
            }
            Err(why) => {
                let recorder = Recorder::format_as(plan, self.words(), false, instance, clock).map_err(|_| Claimed)?;
                Ok((recorder, Found::Nothing(why)))
            }
        }
    }

    /// See [`StaticImage::words`].
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        self.image.words()
    }

    /// See [`StaticImage::ring`].
    #[must_use]
    pub fn ring(&self) -> Option<Ring<'_, RECORD_WORDS>> {
        self.image.ring()
    }
}
