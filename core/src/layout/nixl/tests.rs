#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

extern crate std;
use std::format;
use std::vec;
use std::vec::Vec;

fn header(version: u32, capacity: u64) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_SIZE];
    bytes[VERSION_AT..VERSION_AT + 4].copy_from_slice(&version.to_le_bytes());
    bytes[CAPACITY_AT..][..8].copy_from_slice(&capacity.to_le_bytes());
    bytes[MASK_AT..][..8].copy_from_slice(&capacity.wrapping_sub(1).to_le_bytes());
    bytes
}

fn with(mut bytes: Vec<u8>, at: usize, number: u64) -> Vec<u8> {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    bytes
}

#[test]
fn every_layout_opens_at_its_exact_length_down_to_capacity_two() {
    for layout in NixlLayout::ALL {
        for capacity in [1, 2, 64, 1 << 20] {
            let len = layout.file_len(capacity).unwrap();
            let bytes = header(layout.version(), capacity);
            assert_eq!(probe(&bytes, len), Ok(Geometry { layout, capacity }), "{layout} {capacity}");
            for wrong in [len - 1, len + 1, 40, 0, u64::MAX] {
                let error = ProbeError::WrongLength { version: layout.version(), capacity, len: wrong };
                assert_eq!(probe(&bytes, wrong), Err(error), "{layout} {capacity}");
            }
        }
    }
}

#[test]
fn a_newer_version_is_named_whatever_the_length_is() {
    for len in [40, 41, 72, 1 << 40] {
        let error = probe(&header(5, 2), len).unwrap_err();
        assert_eq!(format!("{error}"), "unsupported version 5 (known 1 to 4)");
    }
    assert_eq!(probe(&header(900, 2), 72), Err(ProbeError::UnsupportedVersion { found: 900 }));
}

#[test]
fn version_zero_is_a_file_being_created() {
    assert_eq!(probe(&header(0, 64), 1064), Err(ProbeError::NotReady));
    assert_eq!(probe(&[0; 40], 1064), Err(ProbeError::NotReady));
    assert_eq!(probe(&header(0, 1000), 16_040), Err(ProbeError::BadCapacity { capacity: 1000 }));
}

#[test]
fn swapped_bytes_are_recognised() {
    let mut bytes = header(0, 0);
    bytes[VERSION_AT..VERSION_AT + 4].copy_from_slice(&3_u32.to_be_bytes());
    bytes[CAPACITY_AT..][..8].copy_from_slice(&4096_u64.to_be_bytes());
    bytes[MASK_AT..][..8].copy_from_slice(&4095_u64.to_be_bytes());
    assert_eq!(probe(&bytes, 40 + 4096 * 16), Err(ProbeError::WrongByteOrder));
}

#[test]
fn text_is_no_ring() {
    assert_eq!(probe(b"# a plain text file that someone left in the directory", 55), Err(ProbeError::NotARing));
    assert_eq!(probe(b"short", 5), Err(ProbeError::TooShort { len: 5 }));
}

#[test]
fn untrue_numbers_are_refused() {
    for capacity in [0, 3, 5, 1000, 4095, u64::MAX, (1 << 63) + 1] {
        assert_eq!(probe(&header(3, capacity), 16 * 64 + 40), Err(ProbeError::BadCapacity { capacity }));
    }
    // 2^60 * 16 wraps to 0: the file would seem to be exactly a header.
    assert!(matches!(probe(&header(3, 1 << 60), 40), Err(ProbeError::WrongLength { .. })));
    assert!(matches!(probe(&header(1, 1 << 63), 40), Err(ProbeError::WrongLength { .. })));
    let mask = with(header(4, 64), MASK_AT, 127);
    assert_eq!(probe(&mask, 1064), Err(ProbeError::BadMask { capacity: 64, mask: 127 }));
    for at in [WRITE_POS_AT, READ_POS_AT] {
        for position in [64, u64::MAX] {
            let bytes = with(header(4, 64), at, position);
            assert_eq!(probe(&bytes, 1064), Err(ProbeError::BadPosition { position, capacity: 64 }));
        }
    }
}

#[test]
fn padding_never_matters() {
    for (layout, padding) in [(NixlLayout::L1, 44), (NixlLayout::L2a, 36), (NixlLayout::L3, 4), (NixlLayout::L4, 4)] {
        let clean = [7; LONGEST_RECORD];
        let mut dirty = clean;
        dirty[padding..padding + 4].copy_from_slice(b"\xff\x7f\x55\x00");
        assert_eq!(layout.decode(&clean), layout.decode(&dirty), "{layout}");
    }
}

#[test]
fn unknown_types_and_categories_stay_what_they_are() {
    for id in [21, 255, u32::MAX] {
        let mut record = [0; 16];
        record[..4].copy_from_slice(&id.to_le_bytes());
        let event = NixlLayout::L4.decode(&record).unwrap();
        assert_eq!((event.id(), event.name(), event.category()), (Some(id), None, None));
    }
    let mut record = [0; 16];
    record[..4].copy_from_slice(&9_i32.to_le_bytes());
    let event = NixlLayout::L2b.decode(&record).unwrap();
    assert_eq!((event.category(), event.name()), (Some(Category(9)), Some("agent_tx_bytes")));
}

#[test]
fn an_error_carries_the_name_that_its_layout_stores() {
    let mut record = [0; 48];
    record[..4].copy_from_slice(&4_i32.to_le_bytes());
    record[4..23].copy_from_slice(b"NIXL_ERR_NOT_FOUND\0");
    let event = NixlLayout::L2a.decode(&record).unwrap();
    assert_eq!((event.name(), event.id()), (Some("NIXL_ERR_NOT_FOUND"), Some(11)));
    let mut record = [0; 16];
    record[0] = 11;
    let event = NixlLayout::L3.decode(&record).unwrap();
    assert_eq!(
        (event.name(), event.category, event.category()),
        (Some("agent_err_not_found"), None, Some(Category::ERROR))
    );
}

proptest! {
    #[test]
    fn whatever_the_bytes_are_a_geometry_lies_inside_the_file(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..64), version in 0_u32..6, shift in 0_u32..64, len: u64,
    ) {
        if bytes.len() >= HEADER_SIZE {
            bytes[VERSION_AT..VERSION_AT + 4].copy_from_slice(&version.to_le_bytes());
            bytes[CAPACITY_AT..][..8].copy_from_slice(&(1_u64 << shift).to_le_bytes());
            bytes[MASK_AT..][..8].copy_from_slice(&((1_u64 << shift) - 1).to_le_bytes());
        }
        for layout in NixlLayout::ALL {
            let _ = layout.decode(&bytes);
            for len in [len, layout.file_len(1 << shift).unwrap_or(0)] {
                if let Ok(geometry) = probe(&bytes, len) {
                    let last = geometry.offset(geometry.capacity - 1) + geometry.layout.record_size() as u64;
                    prop_assert_eq!(last, len);
                }
            }
        }
    }
}
