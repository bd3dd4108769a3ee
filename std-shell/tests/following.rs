//! Following a name through what producers and people do to its file.

#![allow(clippy::unwrap_used)]

mod material;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use material::{NixlFile, TestImage, events, is_own};
use telering::reader::{Follower, Item, NixlLayout, ReaderOptions};

/// Publishes an image as its producer does: under another name first.
fn publish(image: &TestImage, path: &Path) {
    let temporary = path.with_extension("new");
    fs::write(&temporary, image.bytes()).unwrap();
    fs::rename(temporary, path).unwrap();
}

fn poll(follower: &mut Follower) -> Vec<Item> {
    let mut items = Vec::new();
    while follower.poll(&mut items).unwrap() > 0 {}
    items
}

#[test]
fn a_new_file_under_the_name_is_read_after_the_old_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut first = TestImage::new(64, 1);
    first.push(10);
    publish(&first, &path);
    let mut follower = Follower::open(&path).unwrap();
    assert_eq!(poll(&mut follower).len(), 10);
    assert!(!follower.reader().replaced());

    // The old producer writes its last events into the inode that lost its name.
    let old = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let mut second = TestImage::new(128, 2);
    second.push(5);
    publish(&second, &path);
    first.push(3);
    std::os::unix::fs::FileExt::write_all_at(&old, &first.bytes(), 0).unwrap();

    let items = poll(&mut follower);
    let found = events(&items);
    assert_eq!(items[3], Item::Reset { instance: Some(2) });
    let places: Vec<(u64, u64)> = found.iter().map(|event| (event.instance, event.seq)).collect();
    assert_eq!(places, [(1, 10), (1, 11), (1, 12), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]);
    assert!(found.iter().all(is_own));
    assert_eq!(follower.counts().events, 18);
    assert_eq!(poll(&mut follower), []);
}

#[test]
fn a_name_that_is_gone_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut image = TestImage::new(64, 1);
    image.push(4);
    publish(&image, &path);
    let mut follower = Follower::open(&path).unwrap();
    poll(&mut follower);
    fs::remove_file(&path).unwrap();
    assert!(follower.reader().replaced());
    assert_eq!(poll(&mut follower), []);
    publish(&TestImage::new(64, 2), &path);
    assert_eq!(poll(&mut follower), [Item::Reset { instance: Some(2) }]);
}

#[test]
fn a_truncated_file_is_left_for_the_one_that_takes_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    for round in 0..50 {
        let mut image = TestImage::new(64, 1);
        image.push(20);
        publish(&image, &path);
        let mut follower = Follower::open(&path).unwrap();
        assert_eq!(poll(&mut follower).len(), 20);
        let len = [0, 30, 500, 1 << 20][round % 4];
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
        assert_eq!(poll(&mut follower), []);
        let mut again = TestImage::new(64, 2);
        again.push(20 + round as u64);
        publish(&again, &path);
        let items = poll(&mut follower);
        assert_eq!(items[0], Item::Reset { instance: Some(2) });
        assert_eq!(events(&items).len() as u64, (20 + round as u64).min(64));
    }
}

#[test]
fn a_real_nixl_agent_in_the_same_inode_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut image = TestImage::new(64, 1);
    image.push(20);
    publish(&image, &path);
    let mut follower = Follower::open(&path).unwrap();
    poll(&mut follower);
    let mut ring = NixlFile::new(NixlLayout::L4, 64);
    ring.push(0, 4096);
    ring.write_to(&path);
    let items = poll(&mut follower);
    assert_eq!((items[0], events(&items)[0].value, items.len()), (Item::Reset { instance: None }, 4096, 2));
}

#[test]
fn a_file_that_stays_broken_is_an_error_after_a_while() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    publish(&TestImage::new(64, 1), &path);
    let mut follower = Follower::with(&ReaderOptions::new(), &path).unwrap();
    follower.set_patience(Duration::from_millis(50));
    poll(&mut follower);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    let start = Instant::now();
    let error = loop {
        match follower.poll(&mut Vec::new()) {
            Ok(count) => assert_eq!(count, 0),
            Err(error) => break error,
        }
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(error.to_string().contains("truncated"), "{error}");
}

#[test]
fn a_damaged_file_is_not_begun_again_and_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut image = TestImage::new(64, 1);
    image.push(4);
    publish(&image, &path);
    let mut follower = Follower::open(&path).unwrap();
    follower.set_patience(Duration::ZERO);
    poll(&mut follower);
    let mut bytes = image.bytes();
    material::put(&mut bytes, image.extension() + 64, u64::MAX);
    fs::write(&path, &bytes).unwrap();
    let mut items = Vec::new();
    assert!(follower.poll(&mut items).unwrap_err().to_string().contains("damaged"));
    assert_eq!(items, []);
    fs::write(&path, image.bytes()).unwrap();
    assert_eq!(poll(&mut follower), []);
}

#[test]
fn consuming_goes_on_when_an_image_takes_the_place_of_a_ring() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut ring = NixlFile::new(NixlLayout::L4, 64);
    ring.push(0, 1);
    ring.write_to(&path);
    let mut follower = Follower::with(&ReaderOptions::new().consume(true), &path).unwrap();
    assert_eq!(poll(&mut follower).len(), 1);
    let mut image = TestImage::new(64, 1);
    image.push(2);
    publish(&image, &path);
    let items = poll(&mut follower);
    assert_eq!((items[0], items.len()), (Item::Reset { instance: Some(1) }, 3));
}
