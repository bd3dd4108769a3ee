//! Files that are sound but for some numbers: the input says which file, and which words lie in what way.
//! That gets deeper than random bytes, for whole records and parts stay right around the lies.
#![no_main]

include!("../watched.rs");

use libfuzzer_sys::fuzz_target;
use telering::reader::fuzz_open;
use telering_core::image::{Identity, ImagePlan, PartSet};
use telering_core::layout::image::TimeBase;
use telering_core::snapshot::Snapshot;
use telering_core::sync::{AtomicU64, Ordering};
use telering_core::{Category, Name, Record};

/// An image with `pushed` events, as its producer leaves it.
fn image(capacity: u64, parts: PartSet, pushed: u64) -> Vec<u8> {
    let plan = ImagePlan::new(capacity, parts, TimeBase::Unix).expect("a good capacity");
    let memory: Vec<AtomicU64> = (0..plan.words()).map(|_| AtomicU64::new(0)).collect();
    let who = Identity { pid: 7, agent: "agent", hostname: "host", ..Identity::default() };
    let mut state = plan.format(&memory, true, 9, 1, &who, &[10, 100]).expect("fits");
    let mut image = state.on(&memory).expect("fits");
    for position in 0..pushed {
        image.push(Record::new(position, Category::TRANSFER, Name::from_static("agent_tx_bytes"), position));
    }
    image.publish(&Snapshot::default(), &[], 5);
    memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
}

fuzz_target!(|input: &[u8]| {
    let [kind, lies @ ..] = input else { return };
    let capacity = [2, 4, 64, 256][usize::from(kind & 3)];
    let parts = if kind & 4 == 0 { PartSet::ALL } else { PartSet::NONE };
    let mut bytes = image(capacity, parts, u64::from(kind >> 3) * capacity / 8);
    let extension = 40 + capacity as usize * 56;
    for lie in lies.chunks_exact(10).take(16) {
        let place = usize::from(u16::from_le_bytes([lie[0], lie[1]]));
        let number = u64::from_le_bytes(lie[2..].try_into().expect("eight bytes"));
        // The numbers that steer a reader stand in the header and from the extension on.
        let at = if place & 1 == 0 { extension / 8 * 8 + place / 2 % 512 * 8 } else { place / 2 * 8 };
        match place >> 14 {
            0 => bytes.resize((number % (1 << 17)) as usize, 0),
            1 => {
                if let Some(word) = bytes.get_mut(at..at + 8) {
                    let before = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                    word.copy_from_slice(&before.wrapping_add(number as u8 as i8 as i64 as u64).to_le_bytes());
                }
            }
            _ => {
                if let Some(word) = bytes.get_mut(at..at + 8) {
                    word.copy_from_slice(&number.to_le_bytes());
                }
            }
        }
    }
    if let Some((counts, _)) = fuzz_open(&bytes) {
        assert!(counts.events <= bytes.len() as u64 / 16 * 3, "{counts:?}");
    }
});
