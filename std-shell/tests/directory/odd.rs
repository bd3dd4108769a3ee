//! Whatever else may stand in a directory.

use super::*;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::time::Instant;

#[test]
fn foreign_files_of_every_kind_neither_spoil_nor_delay_a_scrape() {
    let scene = tempfile::tempdir().unwrap();
    let good = agent("good", scene.path());
    move_bytes(&good, 5);
    let path = |name: &str| scene.path().join(name);
    let image = std::fs::read(path("good")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    std::os::unix::fs::symlink(path("good"), path("link")).unwrap();
    std::os::unix::fs::symlink(path("loop"), path("loop")).unwrap();
    let _socket = UnixListener::bind(path("socket")).unwrap();
    std::fs::create_dir(path("folder")).unwrap();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("text"), "a text\n".repeat(100)).unwrap();
    std::fs::write(path("zeros"), vec![0; 4096]).unwrap();
    std::fs::write(path("cut"), &image[..image.len() / 2]).unwrap();
    let mut bent = image.clone();
    let extension = telering_core::layout::image::extension_offset(64).unwrap() as usize;
    bent[extension + 16] ^= 1;
    std::fs::write(path("bent"), &bent).unwrap();
    let mut newer = image.clone();
    newer[extension + 8] = 9;
    std::fs::write(path("newer"), &newer).unwrap();
    let huge = std::fs::File::create(path("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();

    let heard = Heard::default();
    let mut directory = Directory::new(scene.path(), with(|options| options.warner = heard.warner()));
    let start = Instant::now();
    let page = scrape(&mut directory);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!((page.number(TX, &[]), page.values_of("agent_name")), (5, ["good"].into()));
    assert_eq!(processes(&page, "alive"), 1);
    assert!(processes(&page, "foreign") >= 6, "{:?}", page.0["telering_processes"]);
    assert_eq!(processes(&page, "unreadable"), 3, "cut, bent, newer: {:?}", heard.take());
    heard.take();
    scrape(&mut directory);
    assert_eq!(heard.take(), [""; 0], "said once");
}

#[test]
fn a_directory_that_is_not_there_yet_is_an_empty_page_that_says_so() {
    let scene = tempfile::tempdir().unwrap();
    let path = scene.path().join("later");
    let mut directory = Directory::new(&path, DirectoryOptions::default());
    assert_eq!(scrape(&mut directory).number("telering_directory_readable", &[]), 0);
    let one = agent("one", &path);
    move_bytes(&one, 3);
    let page = scrape(&mut directory);
    assert_eq!((page.number("telering_directory_readable", &[]), page.number(TX, &[])), (1, 3));
    std::fs::remove_dir_all(&path).unwrap();
    let page = scrape(&mut directory);
    assert_eq!((page.number("telering_directory_readable", &[]), page.value(TX, &[])), (0, None));
}

#[test]
fn an_image_that_turns_into_something_else_is_dropped_at_once() {
    let scene = tempfile::tempdir().unwrap();
    let one = agent("one", scene.path());
    move_bytes(&one, 3);
    one.close();
    let mut directory = Directory::new(scene.path(), DirectoryOptions::default());
    assert_eq!(scrape(&mut directory).number(TX, &[]), 3);
    let path = scene.path().join("one");
    let image = std::fs::read(&path).unwrap();
    // Cut in its place, then text, then a ring of NIXL's, then the image again.
    std::fs::write(&path, &image[..1000]).unwrap();
    assert_eq!(scrape(&mut directory).value(TX, &[]), None);
    std::fs::write(&path, "text").unwrap();
    assert_eq!(scrape(&mut directory).value(TX, &[]), None);
    let mut ring = material::NixlFile::new(telering::reader::NixlLayout::L4, 64);
    ring.push(0, 9);
    ring.write_to(&path);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 9);
    std::fs::write(&path, &image).unwrap();
    // No ring any more: that is all this scrape finds.
    assert_eq!(scrape(&mut directory).value(TX, &[]), None);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 3);
}

#[test]
fn scrapes_beside_a_vandal_are_always_whole_pages() {
    let scene = tempfile::tempdir().unwrap();
    let good = agent("good", scene.path());
    move_bytes(&good, 5);
    let image = std::fs::read(scene.path().join("good")).unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let vandal = std::thread::spawn({
        let (directory, stop) = (scene.path().to_path_buf(), Arc::clone(&stop));
        move || {
            let mut dice = 7_u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let path = directory.join(format!("v{}", dice >> 62));
                match (dice >> 40) % 5 {
                    0 => _ = std::fs::write(&path, &image),
                    1 => _ = std::fs::remove_file(&path),
                    2 => _ = std::fs::write(&path, &image[..(dice >> 20) as usize % image.len()]),
                    3 => {
                        let mut bent = image.clone();
                        let at = (dice >> 20) as usize % bent.len();
                        bent[at] ^= 0xff;
                        let _ = std::fs::write(&path, bent);
                    }
                    _ => _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)),
                }
            }
        }
    });
    let mut directory = Directory::new(scene.path(), with(|options| options.warner = Heard::default().warner()));
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        let page = scrape(&mut directory);
        assert!(page.0[TX].lines.iter().any(|(_, series, value)| series["agent_name"] == "good" && value == "5"));
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    vandal.join().unwrap();
}
