//! The bytes of FORMAT.md: they change together with the version, or not at all.

use std::fmt::Write as _;

use telering_core::image::{Identity, ImagePlan, PartSet};
use telering_core::layout::image::{Control, Head, State, TimeBase, control, head, u64_at};
use telering_core::layout::parts::PartKind;
use telering_core::snapshot::{Flow, Losses};
use telering_core::sync::{AtomicU64, Ordering};
use telering_core::{Category, Name, Record};

const FORMAT: &str = include_str!("../../FORMAT.md");

/// An image of two records and one part, into which three events were written.
fn small_image() -> Vec<u8> {
    let plan = ImagePlan::new(2, PartSet::NONE.with(PartKind::Losses), TimeBase::Unix).expect("a power of two");
    let memory: Vec<AtomicU64> = (0..plan.words()).map(|_| AtomicU64::new(!0)).collect();
    let created = 1_736_951_425_000_000;
    let mut state = plan
        .format(&memory, false, 0x0123_4567_89ab_cdef, created, &Identity::default(), &[])
        .expect("memory of the planned size");
    let mut image = state.on(&memory).expect("the same memory");
    for (event, name, category, value) in [
        (1, "agent_memory_registered", Category::MEMORY, 4096),
        (2, "agent_tx_bytes", Category::TRANSFER, 1 << 20),
        (3, "NIXL_ERR_CANCELED", Category::ERROR, 1),
    ] {
        image.push(Record::new(created + event, category, Name::from_static(name), value));
    }
    image.set_flow(&Flow { recorded: 4, exported: 3, lost: Losses { staging: 1, ..Losses::default() } });
    image.close(created + 10);
    memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
}

fn hex_dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (row, line) in bytes.chunks(16).enumerate() {
        if line.iter().any(|&byte| byte != 0) {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "{:04x}  {}", row * 16, hex.join(" ")).expect("writing to a string");
        }
    }
    text
}

#[test]
fn the_small_image_has_the_bytes_of_the_format_document() {
    let dump = hex_dump(&small_image());
    assert!(FORMAT.contains(&dump), "FORMAT.md does not show these bytes; a change here needs a new version:\n{dump}");
}

#[test]
fn the_small_image_reads_back() {
    let bytes = small_image();
    let start = 192;
    let head = Head::parse(bytes[start..start + head::SIZE].try_into().expect("64"), 2, bytes.len() as u64)
        .expect("a whole image");
    assert_eq!((head.capacity, head.max_batch, head.part_count, head.checks), (2, 1, 1, true));
    let line = bytes[start + control::START..][..control::SIZE].try_into().expect("64");
    let control = Control::parse(line);
    assert_eq!((control.intent, control.committed, control.state), (3, 3, State::Closed));
    // Position 2 overwrote position 0; a stock reader finds slot 1 freed for it.
    let newest = Record::from_file_bytes(bytes[40..96].try_into().expect("56"));
    assert!(newest.fits(2) && !newest.fits(0));
    assert_eq!(newest.name.as_str(), "NIXL_ERR_CANCELED");
    assert_eq!((u64_at(&bytes, 0), u64_at(&bytes, 8)), (1, 0));
}
