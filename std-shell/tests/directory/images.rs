//! Images of ours, from their first breath to the end of their time.

use super::*;

#[test]
fn every_live_image_has_its_exact_totals_and_all_labels() {
    let scene = tempfile::tempdir().unwrap();
    let one = agent("one", scene.path());
    let two = Telemetry::builder("two \"2\"")
        .ignore_environment(true)
        .enable(true)
        .dir(scene.path())
        .rank("3")
        .histogram_bounds([10, 1000])
        .build();
    move_bytes(&one, 100);
    move_bytes(&one, 250);
    move_bytes(&two, (1 << 53) + 1);
    one.error(telering::Status::Backend);
    assert!(one.flush_now(Duration::from_secs(60)));
    let mut directory = Directory::new(scene.path(), DirectoryOptions::default());
    let page = scrape(&mut directory);
    let pid = std::process::id().to_string();
    let first = [("agent_name", "one"), ("pid", pid.as_str())];
    assert_eq!(page.number(TX, &first), 350);
    assert_eq!(page.number("agent_tx_last_bytes", &first), 250);
    assert_eq!(page.number("agent_errors_total", &[("agent_name", "one"), ("status", "backend")]), 1);
    assert_eq!(page.number("agent_errors_total", &[("agent_name", "one"), ("status", "canceled")]), 0);
    let second = [("agent_name", "two \"2\""), ("local_rank", "3")];
    assert_eq!(page.value(TX, &second), Some("9007199254740993"));
    let buckets = page.buckets("agent_xfer_time_us", &second);
    assert_eq!(buckets, [("10".into(), 0), ("1000".into(), 1), ("+Inf".into(), 1)]);
    assert_eq!(processes(&page, "alive"), 1, "one process, two agents");
    let mut text = String::new();
    directory.render(&mut text);
    let line = text.lines().find(|line| line.starts_with("agent_tx_bytes_total{") && line.contains("two")).unwrap();
    let order: Vec<_> = ["hostname=", "agent_name=", "pid=", "agent_instance=", "local_rank="]
        .into_iter()
        .map(|label| line.find(label).unwrap())
        .collect();
    assert!(order.is_sorted(), "{line}");
}

#[test]
fn the_last_numbers_of_a_closed_agent_stay_for_the_ttl_and_no_longer() {
    let scene = tempfile::tempdir().unwrap();
    let options = with(|options| options.ttl = Duration::from_secs(1));
    let mut directory = Directory::new(scene.path(), options);
    let one = agent("one", scene.path());
    move_bytes(&one, 7);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 7);
    move_bytes(&one, 5);
    one.close();
    let page = scrape(&mut directory);
    assert_eq!((page.number(TX, &[]), processes(&page, "alive"), processes(&page, "closed")), (12, 0, 1));
    std::thread::sleep(Duration::from_millis(1300));
    let page = scrape(&mut directory);
    assert_eq!(page.value(TX, &[]), None);
    assert_eq!((processes(&page, "closed"), processes(&page, "expired")), (0, 1));
    assert!(scene.path().join("one").exists(), "nobody asked for its removal");
}

#[test]
fn an_agent_that_lived_between_two_scrapes_is_published_once_whatever_the_ttl() {
    let scene = tempfile::tempdir().unwrap();
    let options = with(|options| options.ttl = Duration::ZERO);
    let mut directory = Directory::new(scene.path(), options);
    assert!(scrape(&mut directory).value(TX, &[]).is_none());
    let one = agent("one", scene.path());
    move_bytes(&one, 7);
    one.close();
    assert_eq!(scrape(&mut directory).number(TX, &[]), 7);
    assert_eq!(scrape(&mut directory).value(TX, &[]), None);
}

#[test]
fn an_image_that_was_dead_for_long_is_never_published() {
    let scene = tempfile::tempdir().unwrap();
    let one = agent("one", scene.path());
    move_bytes(&one, 7);
    one.close();
    std::thread::sleep(Duration::from_millis(20));
    let mut directory = Directory::new(scene.path(), with(|options| options.ttl = Duration::from_millis(10)));
    let page = scrape(&mut directory);
    assert_eq!((page.value(TX, &[]), processes(&page, "expired")), (None, 1));
}

/// Writes the heartbeat of an image that nobody has open.
fn set_heartbeat(path: &Path, us: u64) {
    use std::os::unix::fs::FileExt as _;
    let bytes = std::fs::read(path).unwrap();
    let capacity = u64::from_le_bytes(bytes[24..32].try_into().unwrap());
    let at = telering_core::layout::image::extension_offset(capacity).unwrap() + 96;
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&us.to_le_bytes(), at).unwrap();
}

#[test]
fn a_heartbeat_in_the_future_is_as_good_as_none() {
    let scene = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let agent = agent(name, scene.path());
        move_bytes(&agent, 7);
        agent.close();
    }
    set_heartbeat(&scene.path().join("two"), u64::MAX / 2);
    let mut directory = Directory::new(scene.path(), DirectoryOptions::default());
    let page = scrape(&mut directory);
    assert_eq!(page.values_of("agent_name"), ["one"].into());
}

/// A dead image whose clock counts from a boot.
fn image_since_boot(path: &Path, boot_id: [u8; 16]) {
    use telering_core::image::{Identity, ImagePlan, PartSet};
    use telering_core::layout::image::TimeBase;
    use telering_core::sync::{AtomicU64, Ordering};
    let plan = ImagePlan::new(64, PartSet::ALL, TimeBase::Boot).unwrap();
    let memory: Vec<AtomicU64> = (0..plan.words()).map(|_| AtomicU64::new(0)).collect();
    let agent = path.file_name().unwrap().to_str().unwrap();
    let instance = 1 + agent.len() as u64;
    let identity = Identity { agent, hostname: "board", boot_id, ..Identity::default() };
    plan.format(&memory, true, instance, 0, &identity, &[10]).unwrap();
    let bytes: Vec<u8> = memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_heartbeat_counts_by_the_clock_of_its_image() {
    let scene = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let digits = text.trim().replace('-', "");
    let this_boot = u128::from_str_radix(&digits, 16).unwrap().to_be_bytes();
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now_us = now.tv_sec as u64 * 1_000_000;
    for (name, boot_id, heartbeat) in [
        ("fresh", this_boot, now_us - 5_000_000),
        ("of-old", this_boot, now_us - 60_000_000),
        // Of another boot nothing is known: its time counts from the first look.
        ("elsewhere", [9; 16], 5),
    ] {
        let path = scene.path().join(name);
        image_since_boot(&path, boot_id);
        set_heartbeat(&path, heartbeat);
    }
    let options = with(|options| options.ttl = Duration::from_secs(30));
    let page = scrape(&mut Directory::new(scene.path(), options));
    assert_eq!(page.values_of("agent_name"), ["elsewhere", "fresh"].into());
}

#[test]
fn a_dead_image_that_is_replaced_by_a_new_run_gives_way_to_it() {
    let scene = tempfile::tempdir().unwrap();
    let mut directory = Directory::new(scene.path(), DirectoryOptions::default());
    let one = agent("one", scene.path());
    move_bytes(&one, 7);
    scrape(&mut directory);
    one.close();
    let again = agent("one", scene.path());
    move_bytes(&again, 5);
    let page = scrape(&mut directory);
    assert_eq!((page.number(TX, &[]), processes(&page, "alive")), (5, 1));
}

#[test]
fn two_images_with_the_same_labels_are_both_there_and_apart() {
    let scene = tempfile::tempdir().unwrap();
    // Two containers of one host: the same names, process 1 in both.
    for (name, instance, events) in [("one", 11, 3), ("one@1", 12, 5)] {
        let mut image = material::TestImage::new(64, instance);
        image.push(events);
        std::fs::write(scene.path().join(name), image.bytes()).unwrap();
        set_heartbeat(&scene.path().join(name), now_us());
    }
    let mut directory = Directory::new(scene.path(), DirectoryOptions::default());
    let page = scrape(&mut directory);
    assert_eq!(page.0[TX].lines.len(), 2);
    assert_eq!(page.values_of("file_instance").len(), 1);
    assert_eq!(scrape(&mut directory).values_of("file_instance"), page.values_of("file_instance"), "for good");
}

fn now_us() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64
}

#[test]
fn only_overdue_images_of_ours_are_removed_and_only_where_that_is_asked_for() {
    let scene = tempfile::tempdir().unwrap();
    let living = agent("living", scene.path());
    let gone = agent("gone", scene.path());
    gone.close();
    std::fs::write(scene.path().join("text"), "not telemetry").unwrap();
    material::NixlFile::new(telering::reader::NixlLayout::L4, 64).write_to(&scene.path().join("nixl"));
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(scene.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    let before = names();
    let serve = |remove: bool| {
        let options = with(|options| options.ttl = Duration::ZERO);
        let directory = Directory::new(scene.path(), options);
        let service =
            telering::prometheus::Service::start(directory, &["127.0.0.1:0".parse().unwrap()], remove).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(service.removed(), 0, "nobody has asked yet");
        get(service.address());
        std::thread::sleep(Duration::from_millis(700));
        service.removed()
    };
    assert_eq!(serve(false), 0);
    assert_eq!(names(), before);
    assert_eq!(serve(true), 2, "the image under both of its names");
    let pid = std::process::id();
    assert_eq!(names(), [format!(".living.{pid}.telering"), "living".into(), "nixl".into(), "text".into()]);
    drop(living);
}

/// One scrape.
pub(crate) fn get(address: std::net::SocketAddr) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}
