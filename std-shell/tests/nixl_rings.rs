//! NIXL's own rings under a reader: growing, full, consumed by others, begun anew, cut.

#![allow(clippy::unwrap_used)]

mod material;

use std::fs;
use std::path::Path;

use material::{NixlFile, events};
use telering::reader::{From, Item, NixlLayout, OpenError, ReadError, Reader, ReaderOptions};

fn values(items: &[Item]) -> Vec<u64> {
    events(items).iter().map(|event| event.value).collect()
}

fn read(reader: &mut Reader) -> Vec<Item> {
    let mut items = Vec::new();
    reader.read(&mut items).unwrap();
    items
}

fn opened(file: &NixlFile, path: &Path) -> Reader {
    file.write_to(path);
    Reader::open(path).unwrap()
}

#[test]
fn a_growing_ring_gives_each_event_once_around_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    for layout in NixlLayout::ALL {
        let mut file = NixlFile::new(layout, 8);
        let mut reader = opened(&file, &path);
        let mut expected = Vec::new();
        let mut found = Vec::new();
        for round in 0..20 {
            for value in 0..round % 7 {
                assert!(file.push(7, round * 10 + value));
                expected.push(round * 10 + value);
            }
            file.write_to(&path);
            found.extend(values(&read(&mut reader)));
            // Another consumer takes all of it, so that the producer has room.
            let write_pos = file.get(0);
            file.put(8, write_pos);
            file.write_to(&path);
        }
        assert_eq!(found, expected, "{layout}");
        assert_eq!(reader.counts().lost, 0);
    }
}

#[test]
fn a_full_ring_holds_one_event_less_than_its_capacity() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    for layout in [NixlLayout::L3, NixlLayout::L4] {
        let mut file = NixlFile::new(layout, 2);
        assert!(file.push(0, 5));
        assert!(!file.push(0, 6));
        let mut reader = opened(&file, &path);
        assert_eq!(values(&read(&mut reader)), [5]);
        assert_eq!(read(&mut reader), []);
    }
}

#[test]
fn from_newest_gives_only_what_comes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 16);
    file.push(0, 1);
    file.write_to(&path);
    let mut reader = ReaderOptions::new().from(From::Newest).open(&path).unwrap();
    assert_eq!(read(&mut reader), []);
    file.push(0, 2);
    file.write_to(&path);
    assert_eq!(values(&read(&mut reader)), [2]);
}

#[test]
fn peeking_changes_nothing_and_needs_no_write_permission() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L1, 16);
    (0..9).for_each(|value| assert!(file.push(6, value)));
    file.write_to(&path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(values(&read(&mut reader)).len(), 9);
    drop(reader);
    assert_eq!(fs::read(&path).unwrap(), file.bytes);
}

#[test]
fn consuming_moves_the_read_index_once_the_caller_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 8);
    (0..5).for_each(|value| assert!(file.push(6, value)));
    file.write_to(&path);
    let on_disk = || NixlFile { layout: NixlLayout::L4, bytes: fs::read(&path).unwrap() };
    let mut reader = ReaderOptions::new().consume(true).open(&path).unwrap();
    assert_eq!(values(&read(&mut reader)), [0, 1, 2, 3, 4]);
    assert_eq!(on_disk().get(8), 0, "not before the caller has them");
    assert_eq!(read(&mut reader), []);
    assert_eq!(on_disk().get(8), 5);

    let mut file = on_disk();
    (5..11).for_each(|value| assert!(file.push(6, value)));
    file.write_to(&path);
    assert_eq!(values(&read(&mut reader)), [5, 6, 7, 8, 9, 10]);
    drop(reader);
    let mut expected = file.clone();
    expected.put(8, file.get(0));
    assert_eq!(on_disk().bytes, expected.bytes, "nothing but the read index changed");
}

#[test]
fn an_item_that_was_not_given_is_not_consumed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 8);
    (0..5).for_each(|value| assert!(file.push(6, value)));
    file.write_to(&path);
    let mut reader = ReaderOptions::new().consume(true).open(&path).unwrap();
    reader.next_item().unwrap().unwrap();
    drop(reader);
    assert_eq!(fs::read(&path).unwrap(), file.bytes);
}

#[test]
fn a_producer_that_starts_again_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut before = NixlFile::new(NixlLayout::L3, 16);
    (0..6).for_each(|value| assert!(before.push(6, 100 + value)));
    let mut again: Vec<NixlFile> = Vec::new();
    // The same size with fewer, as many and more events; another size; another layout.
    for count in [2, 6, 9] {
        let mut file = before.clone();
        file.restart();
        (0..count).for_each(|value| assert!(file.push(6, 200 + value)));
        again.push(file);
    }
    for (layout, capacity) in [(NixlLayout::L3, 8), (NixlLayout::L4, 16), (NixlLayout::L1, 64)] {
        let mut file = NixlFile::new(layout, capacity);
        (0..3).for_each(|value| assert!(file.push(6, 200 + value)));
        again.push(file);
    }
    for consume in [false, true] {
        for (case, file) in again.iter().enumerate() {
            before.write_to(&path);
            let mut reader = ReaderOptions::new().consume(consume).open(&path).unwrap();
            assert_eq!(values(&read(&mut reader)).len(), 6);
            assert_eq!(read(&mut reader), []);
            file.write_to(&path);
            let items = read(&mut reader);
            assert_eq!(items[0], Item::Reset { instance: None }, "case {case}, consume {consume}: {items:?}");
            let expected: Vec<u64> = (0..file.get(0)).map(|value| 200 + value).collect();
            assert_eq!(values(&items), expected, "case {case}, consume {consume}");
            assert_eq!(items.len(), expected.len() + 1);
        }
    }
}

#[test]
fn a_ring_being_made_anew_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 16);
    file.push(0, 1);
    let mut reader = opened(&file, &path);
    assert_eq!(values(&read(&mut reader)), [1]);
    file.restart();
    file.set_version(0);
    file.write_to(&path);
    assert_eq!(read(&mut reader), []);
    file.set_version(4);
    file.push(0, 1);
    file.write_to(&path);
    let items = read(&mut reader);
    assert_eq!((items[0], values(&items)), (Item::Reset { instance: None }, vec![1]));
}

#[test]
fn what_another_consumer_took_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 16);
    (0..4).for_each(|value| assert!(file.push(0, value)));
    let mut reader = opened(&file, &path);
    assert_eq!(values(&read(&mut reader)), [0, 1, 2, 3]);
    (4..12).for_each(|value| assert!(file.push(0, value)));
    file.put(8, 9);
    file.write_to(&path);
    let items = read(&mut reader);
    assert_eq!(items[0], Item::Lost(5));
    assert_eq!(values(&items), [9, 10, 11]);
    assert_eq!(reader.counts().lost, 5);
}

#[test]
fn a_cut_file_is_an_error_and_never_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 16);
    file.push(0, 1);
    for len in [0, 20, 100] {
        let mut reader = opened(&file, &path);
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
        let error = reader.read(&mut Vec::new()).unwrap_err();
        assert!(matches!(error, ReadError::Resized { len: found, needed: 296, .. } if found == len), "{error}");
        assert!(reader.info().is_err());
    }
}

#[test]
fn a_version_from_the_future_is_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    for (version, part) in [(5, "unsupported version 5 (known 1 to 4)"), (0, "not ready")] {
        let mut file = NixlFile::new(NixlLayout::L4, 2);
        file.set_version(version);
        file.write_to(&path);
        for consume in [false, true] {
            let error = ReaderOptions::new().consume(consume).open(&path).err().unwrap();
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), file.bytes);
    }
}

#[test]
fn unknown_types_and_categories_are_shown_as_what_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L2b, 16);
    for id in [21, 255, u32::MAX, 3] {
        file.push(id, u64::from(id));
    }
    let found = events(&read(&mut opened(&file, &path)));
    let names: Vec<&str> = found.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["unknown(21)", "unknown(255)", "unknown(4294967295)", "agent_rx_requests_num"]);
    assert_eq!(found[0].category.unwrap().to_string(), "UNKNOWN_CATEGORY_9");
    assert_eq!(found[2].value, u64::from(u32::MAX));
}

#[test]
fn what_is_no_telemetry_is_refused_without_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("text"), "nothing to see here, just a text file that is long enough").unwrap();
    fs::write(at("empty"), "").unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    for (name, reason) in [("text", "no telemetry header"), ("empty", "empty"), ("fifo", "FIFO"), (".", "directory")] {
        let error = Reader::open(at(name)).err().unwrap();
        assert!(matches!(error, OpenError::NotTelemetry { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert!(matches!(Reader::open(at("missing")), Err(OpenError::Io { .. })));
    // A symbolic link that the user names is followed.
    let mut file = NixlFile::new(NixlLayout::L4, 16);
    file.push(0, 1);
    file.write_to(&at("ring"));
    std::os::unix::fs::symlink(at("ring"), at("link")).unwrap();
    assert_eq!(values(&read(&mut Reader::open(at("link")).unwrap())), [1]);
}
