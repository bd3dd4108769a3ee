//! Bytes as they come: no panic, no hang, no allocation by a number in them. The corpus holds real files,
//! so that the fuzzer starts behind the first checks.
#![no_main]

include!("../watched.rs");

use libfuzzer_sys::fuzz_target;
use telering::reader::fuzz_open;

fuzz_target!(|bytes: &[u8]| {
    let Some((counts, _)) = fuzz_open(bytes) else { return };
    // What is handed out stands in the file: a record has at least 16 bytes, and a copy reaches two laps back.
    assert!(counts.events <= bytes.len() as u64 / 16 * 3, "{counts:?}");
});
