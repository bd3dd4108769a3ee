//! Files that are moved, copied, linked, taken away and brought back: none is added to a sum twice.

use super::stable::{stable, stable_for};
use super::*;

const MEMORY: &str = "agent_memory_registered_total";

/// Agents that registered one byte each.
fn agents(directory: &Path, name: &str, count: usize) -> Vec<Telemetry> {
    let agents: Vec<_> = (0..count).map(|number| agent(&format!("{name}-{number}"), directory)).collect();
    agents.iter().for_each(|agent| agent.memory_registered(1));
    assert!(agents.iter().all(|agent| agent.flush_now(Duration::from_secs(60))));
    agents
}

/// Has a link lead to another directory.
fn lead(link: &Path, to: &Path) {
    let _ = std::fs::remove_file(link);
    std::os::unix::fs::symlink(to, link).unwrap();
}

#[test]
fn hundreds_of_agents_whose_directory_goes_and_comes_back_are_added_once() {
    let scene = tempfile::tempdir().unwrap();
    let (path, link) = (scene.path().join("here"), scene.path().join("served"));
    // More than are remembered of a directory that never had so many.
    let agents = agents(&path, "agent", 300);
    let mut directory = stable(&link);
    lead(&link, &path);
    assert_eq!(scrape(&mut directory).number(MEMORY, &[]), 300);
    for _ in 0..3 {
        std::fs::remove_file(&link).unwrap();
        assert_eq!(scrape(&mut directory).number(MEMORY, &[]), 300);
        lead(&link, &path);
        assert_eq!(scrape(&mut directory).number(MEMORY, &[]), 300);
    }
    std::fs::remove_file(&link).unwrap();
    scrape(&mut directory);
    agents.iter().for_each(|agent| agent.memory_registered(1));
    assert!(agents.iter().all(|agent| agent.flush_now(Duration::from_secs(60))));
    lead(&link, &path);
    assert_eq!(scrape(&mut directory).number(MEMORY, &[]), 600, "what they went on with is there in full");
}

#[test]
fn agents_that_come_back_after_many_others_were_there_are_added_once() {
    let scene = tempfile::tempdir().unwrap();
    let link = scene.path().join("served");
    let mut directory = stable(&link);
    let mut all = Vec::new();
    for (name, sum) in [("one", 260), ("two", 520), ("three", 780)] {
        all.push(agents(&scene.path().join(name), name, 260));
        lead(&link, &scene.path().join(name));
        assert_eq!(scrape(&mut directory).number(MEMORY, &[]), sum);
    }
    for name in ["one", "two", "three", "one"] {
        lead(&link, &scene.path().join(name));
        assert_eq!(scrape(&mut directory).number(MEMORY, &[]), 780);
    }
}

#[test]
fn an_agent_that_lost_its_file_goes_on_in_the_sum_and_is_not_added_again() {
    let scene = tempfile::tempdir().unwrap();
    let mut directory = stable(scene.path());
    let one = agent("one", scene.path());
    let path = || one.path().unwrap();
    move_bytes(&one, 5);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 5);
    std::fs::File::options().write(true).open(path()).unwrap().set_len(100).unwrap();
    move_bytes(&one, 2);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 7, "its file was cut");
    for entry in std::fs::read_dir(scene.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(scrape(&mut directory).number(TX, &[]), 7);
    move_bytes(&one, 3);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 10, "its file was removed");
    // Another file takes its name, so that it goes on beside it.
    std::fs::rename(path(), scene.path().join("aside")).unwrap();
    std::fs::write(path(), "text").unwrap();
    move_bytes(&one, 4);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 14, "its name was taken");
}

#[test]
fn a_file_under_another_name_is_the_same_agent() {
    let scene = tempfile::tempdir().unwrap();
    let path = |name: &str| scene.path().join(name);
    let mut directory = stable(scene.path());
    let (one, two) = (agent("one", scene.path()), agent("two", scene.path()));
    move_bytes(&one, 5);
    move_bytes(&two, 100);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 105);
    std::fs::rename(path("one"), path("three")).unwrap();
    assert_eq!(scrape(&mut directory).number(TX, &[]), 105, "a new name");
    std::fs::rename(path("three"), path("aside")).unwrap();
    std::fs::rename(path("two"), path("three")).unwrap();
    std::fs::rename(path("aside"), path("two")).unwrap();
    assert_eq!(scrape(&mut directory).number(TX, &[]), 105, "names exchanged");
    one.close();
    std::fs::rename(path("two"), path("one")).unwrap();
    assert_eq!(scrape(&mut directory).number(TX, &[]), 105, "a closed one");
}

#[test]
fn copies_and_links_of_a_file_are_not_its_agent_again() {
    for labels in [telering::prometheus::LabelSet::Full, telering::prometheus::LabelSet::Stable] {
        let scene = tempfile::tempdir().unwrap();
        let path = |name: &str| scene.path().join(name);
        let one = agent("one", scene.path());
        move_bytes(&one, 5);
        let copy = std::fs::read(path("one")).unwrap();
        std::fs::write(path("copy"), &copy).unwrap();
        std::fs::hard_link(path("one"), path("link")).unwrap();
        // Whichever of them is found first, and also when the copy was there alone for a while.
        let mut directory = Directory::new(scene.path(), with(|options| options.labels = labels));
        let page = scrape(&mut directory);
        assert_eq!((page.0[TX].lines.len(), page.number(TX, &[])), (1, 5), "{labels:?}");
        assert_eq!((processes(&page, "alive"), processes(&page, "foreign")), (1, 2), "{labels:?}");
        move_bytes(&one, 2);
        std::fs::write(path("later"), &copy).unwrap();
        let page = scrape(&mut directory);
        assert_eq!((page.number(TX, &[]), processes(&page, "foreign")), (7, 3), "{labels:?}");
        move_bytes(&one, 3);
        assert_eq!(scrape(&mut directory).number(TX, &[]), 10, "the agent's own file is the one that counts");
    }
}

#[test]
fn an_agent_takes_the_place_of_its_copy() {
    let scene = tempfile::tempdir().unwrap();
    let path = |name: &str| scene.path().join(name);
    let mut directory = stable(scene.path());
    let one = agent("one", scene.path());
    move_bytes(&one, 5);
    std::fs::copy(path("one"), path("copy")).unwrap();
    std::fs::rename(path("one"), path(".one")).unwrap();
    assert_eq!(scrape(&mut directory).number(TX, &[]), 5);
    move_bytes(&one, 2);
    std::fs::rename(path(".one"), path("one")).unwrap();
    let page = scrape(&mut directory);
    assert_eq!((page.number(TX, &[]), processes(&page, "alive"), processes(&page, "foreign")), (7, 1, 1));
}

#[test]
fn agents_of_one_name_that_close_between_two_pages_are_all_in_the_sum() {
    let scene = tempfile::tempdir().unwrap();
    let directory =
        Directory::new(scene.path(), with(|options| options.labels = telering::prometheus::LabelSet::Stable));
    let service = telering::prometheus::Service::start(directory, &["127.0.0.1:0".parse().unwrap()], false).unwrap();
    let page = || Page::parse(&super::images::get(service.address()));
    assert_eq!(page().value(TX, &[]), None);
    // One after the other, each a little slower than the directory is looked at.
    for bytes in 1..=10 {
        let one = agent("one", scene.path());
        move_bytes(&one, bytes);
        std::thread::sleep(Duration::from_millis(300));
        move_bytes(&one, 100 * bytes);
        one.close();
    }
    let page = page();
    assert_eq!(page.number(TX, &[]), 101 * 55);
    assert_eq!(page.number("telering_last_numbers_missed_total", &[]), 0);
}

#[test]
fn two_agents_of_one_name_that_close_between_two_looks_are_both_in_the_sum() {
    let scene = tempfile::tempdir().unwrap();
    let mut directory = stable_for(scene.path(), Duration::from_secs(60));
    scrape(&mut directory);
    for bytes in [1, 10] {
        let one = agent("one", scene.path());
        move_bytes(&one, bytes);
        one.close();
    }
    for _ in 0..2 {
        assert_eq!(scrape(&mut directory).number(TX, &[]), 11);
    }
}

#[test]
fn numbers_that_nobody_saw_are_noticed() {
    let scene = tempfile::tempdir().unwrap();
    let mut directory = stable(scene.path());
    let one = agent("one", scene.path());
    move_bytes(&one, 1);
    let missed = |page: &Page| page.number("telering_last_numbers_missed_total", &[]);
    assert_eq!(missed(&scrape(&mut directory)), 0);
    move_bytes(&one, 10);
    one.close();
    for entry in std::fs::read_dir(scene.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let page = scrape(&mut directory);
    assert_eq!((page.number(TX, &[]), missed(&page)), (1, 1));
    assert_eq!(missed(&scrape(&mut directory)), 1);
}

#[test]
fn two_processes_that_can_not_be_told_apart_are_both_there() {
    use telering::core::image::{Identity, ImagePlan, PartSet};
    use telering::core::layout::image::TimeBase;
    use telering::core::sync::{AtomicU64, Ordering};
    let scene = tempfile::tempdir().unwrap();
    // Two containers that started in one moment, each with a process 1. Both are dead by now.
    let now_us = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64;
    for (name, instance) in [("one", 11), ("one@1", 12), ("one@1@2", 13)] {
        let plan = ImagePlan::new(64, PartSet::ALL, TimeBase::Unix).unwrap();
        let memory: Vec<AtomicU64> = (0..plan.words()).map(|_| AtomicU64::new(0)).collect();
        let identity =
            Identity { agent: "one", hostname: "h", boot_id: [7; 16], pid: 1, process_start: 5, ..Identity::default() };
        plan.format(&memory, true, instance, now_us, &identity, &[10]).unwrap();
        let bytes: Vec<u8> = memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        std::fs::write(scene.path().join(name), bytes).unwrap();
    }
    let mut directory = Directory::new(scene.path(), DirectoryOptions::default());
    for _ in 0..2 {
        let page = scrape(&mut directory);
        assert_eq!((page.0[TX].lines.len(), page.values_of("file_instance").len()), (3, 2));
        assert_eq!(processes(&page, "foreign"), 0);
        std::fs::rename(scene.path().join("one@1"), scene.path().join("another")).unwrap();
        let page = scrape(&mut directory);
        assert_eq!((page.0[TX].lines.len(), page.values_of("file_instance").len()), (3, 2), "under another name");
        std::fs::rename(scene.path().join("another"), scene.path().join("one@1")).unwrap();
    }
}
