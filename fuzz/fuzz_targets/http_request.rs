//! What a stranger sends to the metrics' server: no panic, no hang, and the same verdict in whatever pieces it comes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use telering::prometheus::http::fuzz_request;

fuzz_target!(|bytes: &[u8]| {
    let (pieces, bytes) = bytes.split_first().unwrap_or((&1, &[]));
    let _ = fuzz_request(bytes, usize::from(*pieces));
});
