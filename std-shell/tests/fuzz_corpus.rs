//! The fuzzer's corpus under the ordinary tests: every file that it starts from, or that it once broke a
//! reader with, is read again here.
//!
//! `TELERING_WRITE_SEEDS=1 cargo test -p telering --test fuzz_corpus` writes the seeds anew.

#![allow(clippy::unwrap_used)]

mod material;

use std::fs;
use std::path::{Path, PathBuf};

use material::{NixlFile, TestImage};
use telering::core::image::PartSet;
use telering::core::layout::parts::PartKind;
use telering::core::snapshot::{Flow, Snapshot};
use telering::reader::{NixlLayout, fuzz_open, fuzz_scan};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/open_image")
}

/// Small images of every shape: the parts, an empty ring, a full one, one that was overwritten.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let kinds = [PartKind::Identity, PartKind::Losses, PartKind::Notices, PartKind::Metrics, PartKind::Clock];
    for (capacity, pushed) in [(2, 0), (2, 1), (2, 5), (16, 9), (64, 40), (64, 200)] {
        let mut sets = vec![("none", PartSet::NONE)];
        if capacity == 2 {
            sets.push(("all-but-dynamic", kinds.into_iter().fold(PartSet::NONE, PartSet::with)));
        }
        for (name, parts) in sets {
            let mut image = TestImage::with_parts(capacity, 9, parts);
            image.push(pushed);
            let mut laid = image.state.on(&image.memory).unwrap();
            laid.publish(&Snapshot::default(), &[], 1_700_000_000_000_000);
            laid.set_flow(&Flow { recorded: pushed, exported: pushed, ..Flow::default() });
            seeds.push((format!("image-{capacity}-{pushed}-{name}"), image.bytes()));
        }
    }
    let mut torn = TestImage::with_parts(16, 9, PartSet::NONE);
    torn.push(20);
    let before = torn.bytes();
    torn.push(30);
    let (mut copy, middle) = (torn.bytes(), 40 + 8 * 56);
    copy[..middle].copy_from_slice(&before[..middle]);
    seeds.push(("image-16-copy-of-a-live-file".into(), copy));
    for layout in NixlLayout::ALL {
        let mut ring = NixlFile::new(layout, 16);
        (0..12).for_each(|value| assert!(ring.push(value, u64::from(value))));
        seeds.push((format!("ring-{layout:?}"), ring.bytes));
    }
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nixl");
    for release in ["0.10.1", "1.1.0", "1.2.0", "1.3.2", "1.5.1"] {
        seeds.push((format!("nixl-{release}"), fs::read(samples.join(release).join("initiator")).unwrap()));
    }
    seeds
}

#[test]
fn every_file_of_the_corpus_is_read_or_refused() {
    if std::env::var_os("TELERING_WRITE_SEEDS").is_some() {
        fs::create_dir_all(corpus()).unwrap();
        seeds().iter().for_each(|(name, bytes)| fs::write(corpus().join(name), bytes).unwrap());
    }
    let mut files = 0;
    let mut total = 0;
    for entry in fs::read_dir(corpus()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(bytes.len() < 8 << 10, "the corpus stays small");
        files += 1;
        total += bytes.len();
        fuzz_open(&bytes);
    }
    assert!(files >= seeds().len() && total < 200 << 10, "{files} files of {total} bytes");
}

#[test]
fn every_seed_is_sound_and_stands_in_the_corpus() {
    for (name, bytes) in seeds() {
        assert!(fuzz_open(&bytes).is_some(), "{name} is refused");
        assert!(corpus().join(&name).exists(), "{name} is missing: TELERING_WRITE_SEEDS=1 writes it");
    }
}

#[test]
fn every_dump_of_the_corpus_holds_the_same_images_in_whatever_pieces_it_is_taken() {
    let mut found = (0, 0, 0);
    for entry in fs::read_dir(corpus().with_file_name("scan_dump")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let (pieces, bytes) = bytes.split_first().unwrap();
        let dump = fuzz_scan(bytes, usize::from(*pieces));
        assert_eq!(dump, fuzz_scan(bytes, usize::MAX));
        found.0 += dump.images.len();
        found.1 += dump.cut.len();
        found.2 += usize::from(dump.swapped.is_some());
    }
    assert_eq!(found, (7, 1, 3), "images, cut ones, swapped ones");
}
