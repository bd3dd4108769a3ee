//! Rings that real NIXL releases wrote (tests/data/nixl/README.md) read as exactly what is in them.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use telering::reader::{Item, Layout, NixlLayout, Reader};

const SAMPLES: [(&str, NixlLayout); 5] = [
    ("0.10.1", NixlLayout::L1),
    ("1.1.0", NixlLayout::L2a),
    ("1.2.0", NixlLayout::L2b),
    ("1.3.2", NixlLayout::L3),
    ("1.5.1", NixlLayout::L4),
];

fn folder(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nixl").join(version)
}

#[test]
fn every_release_reads_as_expected_and_stays_as_it_was() {
    for (version, layout) in SAMPLES {
        let path = folder(version).join("initiator");
        let before = std::fs::read(&path).unwrap();
        let expected: Vec<Value> = std::fs::read_to_string(folder(version).join("expected.jsonl"))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(!expected.is_empty());

        let mut reader = Reader::open(&path).unwrap();
        assert_eq!(reader.layout(), Layout::Nixl(layout), "{version}");
        let mut found = Vec::new();
        while let Some(item) = reader.next_item().unwrap() {
            let Item::Event(event) = item else { panic!("{version}: {item:?}") };
            assert_eq!(event.seq, found.len() as u64);
            assert_eq!(event.observed_us.is_some(), event.timestamp_us.is_none(), "{version}");
            found.push(json!({
                "timestamp_us": event.timestamp_us,
                "category": event.category.map(|category| category.to_string()),
                "event": event.name.as_str(),
                "value": event.value,
            }));
        }
        assert_eq!(found, expected, "{version}");
        assert_eq!(reader.counts().events, expected.len() as u64);
        assert!(!reader.replaced());
        drop(reader);
        assert_eq!(std::fs::read(&path).unwrap(), before, "{version}: the file changed");
    }
}

#[test]
fn categories_can_be_derived_where_the_layout_has_none() {
    let categories = |version: &str| {
        let mut reader = Reader::open(folder(version).join("initiator")).unwrap();
        let mut items = Vec::new();
        reader.read(&mut items).unwrap();
        let known = |item: &Item| match item {
            Item::Event(event) => event.known_category().map(|category| category.to_string()),
            _ => None,
        };
        items.iter().map(known).collect::<Vec<_>>()
    };
    // The five programs did the same, so the stored categories of one are the derived ones of the others.
    for (version, _) in SAMPLES {
        assert_eq!(categories(version), categories("1.2.0"), "{version}");
    }
}
