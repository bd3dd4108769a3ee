//! A dump of memory that holds images somewhere, and things that look like one: no panic, no hang, no allocation by a
//! number in it, and the same images in whatever pieces it is taken.
#![no_main]

include!("../watched.rs");

use libfuzzer_sys::fuzz_target;
use telering::reader::{fuzz_open, fuzz_scan};

fuzz_target!(|input: &[u8]| {
    let [pieces, bytes @ ..] = input else { return };
    let dump = fuzz_scan(bytes, usize::from(*pieces));
    // The second time in one piece.
    assert_eq!(dump, fuzz_scan(bytes, usize::MAX));
    let len = bytes.len() as u64;
    for place in &dump.images {
        let whole = usize::try_from(place.offset).ok().zip(usize::try_from(place.offset + place.len).ok());
        let image = whole.and_then(|(first, end)| bytes.get(first..end)).expect("a whole image lies inside the dump");
        let _ = fuzz_open(image);
    }
    for cut in &dump.cut {
        assert!(cut.offset < len && cut.offset.checked_add(cut.len).is_none_or(|end| end > len), "{cut:?}");
    }
    assert!(dump.swapped.is_none() || dump.images.is_empty());
});
