//! Files that lie: whatever the bytes are, a reader neither panics, nor hangs, nor allocates by a number in
//! them.

#![allow(clippy::unwrap_used)]

mod material;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use material::{NixlFile, TestImage, put};
use proptest::prelude::*;
use telering::reader::{NixlLayout, fuzz_open};

/// Remembers the largest single allocation.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static WATCHED: Watched = Watched;

/// More than any reader needs: items of one call, their buffer, the parts.
const ENOUGH: usize = 4 << 20;

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..300_u64,
        (0..64_u32).prop_map(|shift| 1 << shift),
        (0..64_u32).prop_map(|shift| u64::MAX >> shift),
        (1..300_u64).prop_map(|back| u64::MAX - back),
    ]
}

fn image() -> Vec<u8> {
    let mut image = TestImage::new(64, 9);
    image.push(150);
    image.bytes()
}

fn ring(layout: NixlLayout) -> Vec<u8> {
    let mut file = NixlFile::new(layout, 64);
    (0..40).for_each(|value| assert!(file.push(value as u32, value)));
    file.bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        fuzz_open(&bytes);
        prop_assert!(LARGEST.load(Ordering::Relaxed) < ENOUGH);
    }

    #[test]
    fn rings_with_lies_in_their_header(
        which in 0..5_usize, lies in prop::collection::vec((0..5_usize, numbers()), 0..4), cut in 0..4000_usize, grow: bool,
    ) {
        let mut bytes = ring(NixlLayout::ALL[which]);
        lies.into_iter().for_each(|(word, number)| put(&mut bytes, word * 8, number));
        if !grow {
            bytes.truncate(cut.max(40));
        }
        if let Some((counts, _)) = fuzz_open(&bytes) {
            prop_assert!(counts.total() < 64);
        }
        prop_assert!(LARGEST.load(Ordering::Relaxed) < ENOUGH);
    }

    #[test]
    fn images_with_lies_in_their_extension(
        lies in prop::collection::vec((0..40_usize, numbers()), 0..4),
        deep in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = image();
        let extension = 40 + 64 * 56 + 24;
        lies.into_iter().for_each(|(word, number)| put(&mut bytes, extension + word * 8, number));
        for (at, byte) in deep {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Some((counts, _)) = fuzz_open(&bytes) {
            // Never more than the ring holds and the two laps before it.
            prop_assert!(counts.total() <= 3 * 64, "{counts:?}");
        }
        prop_assert!(LARGEST.load(Ordering::Relaxed) < ENOUGH);
    }
}

#[test]
fn the_test_material_itself_reads() {
    assert_eq!(fuzz_open(&image()).unwrap().0.events, 64);
    for layout in NixlLayout::ALL {
        assert_eq!(fuzz_open(&ring(layout)).unwrap().0.events, 40);
    }
}
