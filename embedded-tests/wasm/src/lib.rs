//! What `black_box` of the firmware leaves in its second image, recorded in WebAssembly: the same bytes.

#![no_std]

use core::num::{NonZeroU32, NonZeroU64};
use core::sync::atomic::{AtomicU32, Ordering};

use telering_core::device::{Clock, StaticImage};
use telering_core::event::Template;
use telering_core::{Category, Name};

static IMAGE: StaticImage<16> = StaticImage::new();
static STEP: Template = Template::new(Category::CUSTOM, Name::from_static("main_step"));
/// The clock goes 1000 ticks on with each look; five went before.
static LOOKS: AtomicU32 = AtomicU32::new(5);

fn ticks() -> u64 {
    u64::from(LOOKS.fetch_add(1, Ordering::Relaxed) + 1) * 1000
}

/// Records and gives the address of the image, 0 if it was recorded before.
// SAFETY: no other function of this module has the name.
#[unsafe(no_mangle)]
pub extern "C" fn record() -> usize {
    let (Some(rate), Some(instance)) = (NonZeroU32::new(32_768), NonZeroU64::new(0x0123_4567_89ab_cdef)) else {
        return 0;
    };
    let Ok(mut recorder) = IMAGE.claim(instance, Clock::new(rate, ticks)) else { return 0 };
    for value in 0..7 {
        recorder.record(&STEP, value);
    }
    recorder.close();
    IMAGE.words().as_ptr() as usize
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
