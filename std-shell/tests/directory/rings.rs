//! NIXL's own rings: consumed and summed.

use super::*;
use material::NixlFile;
use telering::reader::NixlLayout;

/// What serve left in the file: the read index moves, nothing else.
fn reread(file: &mut NixlFile, path: &Path) {
    file.bytes = std::fs::read(path).unwrap();
}

#[test]
fn a_ring_of_every_layout_is_emptied_and_added_up() {
    for layout in NixlLayout::ALL {
        let scene = tempfile::tempdir().unwrap();
        let path = scene.path().join("agent");
        let mut file = NixlFile::new(layout, 64);
        file.write_to(&path);
        let mut directory = Directory::new(scene.path(), DirectoryOptions::default());
        let mut sum = 0;
        for round in 1..=10_u64 {
            for value in 0..20 {
                assert!(file.push(0, round * 100 + value), "{layout}: nobody made room");
                sum += round * 100 + value;
            }
            assert!(file.push(6, 50) && file.push(10, 1));
            file.write_to(&path);
            let page = scrape(&mut directory);
            reread(&mut file, &path);
            assert_eq!(file.get(8), file.get(0), "{layout}: all was taken");
            let agent = [("agent_name", "agent")];
            assert_eq!(page.number(TX, &agent), sum, "{layout}");
            assert_eq!(page.number("agent_tx_last_bytes", &agent), round * 100 + 19);
            assert_eq!(page.number("agent_errors_total", &[("agent_name", "agent"), ("status", "backend")]), round);
            // A value equal to a bound belongs to it.
            let buckets = page.buckets("agent_xfer_time_us", &agent);
            let count = |bound: &str| buckets.iter().find(|(known, _)| known == bound).unwrap().1;
            assert_eq!((count("25"), count("50"), count("+Inf")), (0, round, round));
            assert_eq!(page.number("agent_xfer_time_us_sum", &agent), 50 * round);
            assert_eq!(processes(&page, "ring"), 1);
        }
    }
}

#[test]
fn a_ring_that_its_agent_begins_anew_goes_on_in_the_sums() {
    let scene = tempfile::tempdir().unwrap();
    let path = scene.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 64);
    let mut directory = Directory::new(scene.path(), DirectoryOptions::default());
    file.push(0, 7);
    file.write_to(&path);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 7);
    // In the same file, as NIXL does.
    reread(&mut file, &path);
    file.restart();
    file.push(0, 100);
    file.write_to(&path);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 107);
    // In a larger one.
    let mut file = NixlFile::new(NixlLayout::L4, 256);
    file.push(0, 1000);
    file.write_to(&path);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 1107);
    // In another file of the same name.
    std::fs::remove_file(&path).unwrap();
    let mut file = NixlFile::new(NixlLayout::L3, 64);
    file.push(0, 10_000);
    file.write_to(&path);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 11_107);
    // Gone, and there again later.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(scrape(&mut directory).value(TX, &[]), None);
    let mut file = NixlFile::new(NixlLayout::L4, 64);
    file.push(0, 1);
    file.write_to(&path);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 11_108);
}

#[test]
fn a_second_consumer_is_noticed_and_named_once() {
    let scene = tempfile::tempdir().unwrap();
    let path = scene.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 64);
    file.write_to(&path);
    let heard = Heard::default();
    let mut directory = Directory::new(scene.path(), with(|options| options.warner = heard.warner()));
    scrape(&mut directory);
    let mut other = telering::reader::ReaderOptions::new().consume(true).open(&path).unwrap();
    for value in 1..=3 {
        reread(&mut file, &path);
        file.push(0, value);
        file.write_to(&path);
        let mut items = Vec::new();
        other.read(&mut items).unwrap();
        assert_eq!(other.read(&mut items).unwrap(), 0);
        scrape(&mut directory);
    }
    let said = heard.take();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("another process takes events out") && said[0].contains("agent"), "{}", said[0]);
    let page = scrape(&mut directory);
    assert!(page.number("telering_ring_rivals_total", &[]) >= 1);
}

#[test]
fn of_two_who_serve_a_directory_the_second_leaves_rings_to_the_first_until_it_ends() {
    let scene = tempfile::tempdir().unwrap();
    let path = scene.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 64);
    file.push(0, 5);
    file.write_to(&path);
    let heard = Heard::default();
    let mut first = Directory::new(scene.path(), DirectoryOptions::default());
    let mut second = Directory::new(scene.path(), with(|options| options.warner = heard.warner()));
    assert_eq!(scrape(&mut first).number(TX, &[]), 5);
    for value in 1..=3 {
        reread(&mut file, &path);
        file.push(0, value);
        // In its place, as a producer does.
        std::fs::write(&path, &file.bytes).unwrap();
        let before = std::fs::read(&path).unwrap();
        let page = scrape(&mut second);
        assert_eq!((page.value(TX, &[]), processes(&page, "not_consumable")), (None, 1));
        assert_eq!(std::fs::read(&path).unwrap(), before);
        scrape(&mut first);
    }
    assert_eq!(scrape(&mut first).number(TX, &[]), 11);
    let said = heard.take();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("left alone until that one ends"), "{said:?}");
    drop(first);
    reread(&mut file, &path);
    file.push(0, 100);
    std::fs::write(&path, &file.bytes).unwrap();
    let page = scrape(&mut second);
    assert_eq!((page.number(TX, &[]), processes(&page, "ring")), (100, 1), "what came after the first one ended");
    assert_eq!(page.number("telering_ring_rivals_total", &[]), 0);
}

#[test]
fn rings_whose_names_are_no_text_are_there_and_apart() {
    use std::os::unix::ffi::OsStrExt as _;
    let scene = tempfile::tempdir().unwrap();
    let names: [&[u8]; 4] = [b"a\xff", b"a\xfe", "a\u{fffd}".as_bytes(), b"a\"\n\\"];
    for (name, value) in names.into_iter().zip([1, 10, 100, 1000]) {
        let mut file = NixlFile::new(NixlLayout::L4, 64);
        file.push(0, value);
        file.write_to(&scene.path().join(std::ffi::OsStr::from_bytes(name)));
    }
    let page = scrape(&mut Directory::new(scene.path(), DirectoryOptions::default()));
    let mut values: Vec<_> = page.0[TX].lines.iter().map(|(_, _, value)| value.as_str()).collect();
    values.sort_unstable();
    assert_eq!(values, ["1", "10", "100", "1000"]);
    assert_eq!(page.values_of("agent_name"), ["a\u{fffd}", "a\"\n\\"].into());
    assert_eq!(page.values_of("file_instance"), ["61ff", "61fe"].into());
}

#[test]
fn events_of_unknown_types_are_counted_and_never_mistaken() {
    let scene = tempfile::tempdir().unwrap();
    let mut file = NixlFile::new(NixlLayout::L4, 64);
    for id in [21, 255, u32::MAX] {
        file.push(id, 5);
    }
    file.write_to(&scene.path().join("agent"));
    let page = scrape(&mut Directory::new(scene.path(), DirectoryOptions::default()));
    assert_eq!(page.number("telering_unknown_events_total", &[("agent_name", "agent")]), 3);
    assert_eq!(page.number(TX, &[]), 0);
}

#[test]
fn a_ring_without_consumption_is_counted_and_left_as_it_is() {
    let scene = tempfile::tempdir().unwrap();
    let path = scene.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 64);
    file.push(0, 5);
    file.write_to(&path);
    let mut directory = Directory::new(scene.path(), with(|options| options.consume = false));
    let page = scrape(&mut directory);
    assert_eq!((page.value(TX, &[]), processes(&page, "not_consumable")), (None, 1));
    assert_eq!(std::fs::read(&path).unwrap(), file.bytes);
}

#[test]
fn a_ring_that_fills_between_two_scrapes_is_emptied_in_time() {
    let scene = tempfile::tempdir().unwrap();
    let path = scene.path().join("agent");
    let mut file = NixlFile::new(NixlLayout::L4, 64);
    file.write_to(&path);
    let directory = Directory::new(scene.path(), DirectoryOptions::default());
    let service = telering::prometheus::Service::start(directory, &["127.0.0.1:0".parse().unwrap()], false).unwrap();
    // Six times what the ring holds, and nobody scrapes.
    let (mut sum, start) = (0, std::time::Instant::now());
    for value in 1..=400 {
        loop {
            reread(&mut file, &path);
            let pushed = file.push(0, value);
            if pushed {
                use std::os::unix::fs::FileExt as _;
                let target = std::fs::File::options().write(true).open(&path).unwrap();
                // As the producer writes: the records, then its index. The read index is the consumer's.
                target.write_all_at(&file.bytes[40..], 40).unwrap();
                target.write_all_at(&file.bytes[..8], 0).unwrap();
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "nobody makes room");
            std::thread::sleep(Duration::from_millis(1));
        }
        sum += value;
    }
    let page = Page::parse(&super::images::get(service.address()));
    assert_eq!(page.number(TX, &[]), sum);
}
