//! Stable labels: sums that go on.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use telering::prometheus::LabelSet;

pub(crate) fn stable(directory: &Path) -> Directory {
    stable_for(directory, Duration::from_millis(50))
}

pub(crate) fn stable_for(directory: &Path, ttl: Duration) -> Directory {
    Directory::new(
        directory,
        with(|options| {
            options.labels = LabelSet::Stable;
            options.ttl = ttl;
        }),
    )
}

#[test]
fn sums_never_step_back_over_restarts_closes_and_removed_files() {
    let scene = tempfile::tempdir().unwrap();
    let mut directory = stable(scene.path());
    let mut moved = 0;
    let mut before = 0;
    for run in 1..=20_u64 {
        // A new name in each run, as those who name their agents by UUID do.
        let name = format!("agent-{run:08x}");
        let agent = agent(&name, scene.path());
        for bytes in 1..=run {
            move_bytes(&agent, bytes);
            moved += bytes;
            let page = scrape(&mut directory);
            let now = page.number(TX, &[]);
            assert!(now >= before, "{now} after {before}");
            assert_eq!(now, moved);
            assert_eq!(page.values_of("agent_name").len() + page.values_of("pid").len(), 0);
            before = now;
        }
        agent.close();
        if run % 3 == 0 {
            std::thread::sleep(Duration::from_millis(60));
        }
        assert_eq!(scrape(&mut directory).number(TX, &[]), moved);
        if run % 2 == 0 {
            std::fs::remove_file(scene.path().join(&name)).unwrap();
        }
    }
    let page = scrape(&mut directory);
    assert_eq!(page.number("agent_tx_requests_num_total", &[]), 210);
    assert_eq!(page.number("agent_xfer_time_us_count", &[]), 210);
    assert_eq!(page.number("agent_xfer_time_us_sum", &[]), 210 * 30);
}

#[test]
fn the_last_numbers_of_an_agent_whose_name_was_taken_are_in_the_sum() {
    let scene = tempfile::tempdir().unwrap();
    let mut directory = stable(scene.path());
    let one = agent("one", scene.path());
    move_bytes(&one, 1);
    scrape(&mut directory);
    move_bytes(&one, 10);
    one.close();
    // The predecessor is left under its second link alone.
    let again = agent("one", scene.path());
    move_bytes(&again, 100);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 111);
}

#[test]
fn ranks_stay_apart_and_agents_of_one_rank_add_up() {
    let scene = tempfile::tempdir().unwrap();
    let ranked = |name: &str, rank: &str| {
        Telemetry::builder(name).ignore_environment(true).enable(true).dir(scene.path()).rank(rank).build()
    };
    let (a, b, c) = (ranked("a", "0"), ranked("b", "0"), ranked("c", "1"));
    [(&a, 1), (&b, 10), (&c, 100)].into_iter().for_each(|(agent, bytes)| move_bytes(agent, bytes));
    let page = scrape(&mut stable(scene.path()));
    assert_eq!(page.number(TX, &[("local_rank", "0")]), 11);
    assert_eq!(page.number(TX, &[("local_rank", "1")]), 100);
    // The last value is that of the latest operation.
    assert_eq!(page.number("agent_tx_last_bytes", &[("local_rank", "0")]), 10);
}

#[test]
fn histograms_with_different_bounds_add_up_at_the_bounds_that_they_share() {
    let scene = tempfile::tempdir().unwrap();
    let bounded = |name: &str, bounds: Vec<u64>| {
        Telemetry::builder(name)
            .ignore_environment(true)
            .enable(true)
            .dir(scene.path())
            .histogram_bounds(bounds)
            .build()
    };
    let (one, two) = (bounded("one", vec![10, 50, 100]), bounded("two", vec![50, 200]));
    // 30 us each.
    [&one, &one, &two].into_iter().for_each(|agent| move_bytes(agent, 1));
    let page = scrape(&mut stable(scene.path()));
    assert_eq!(page.buckets("agent_xfer_time_us", &[]), [("50".into(), 3), ("+Inf".into(), 3)]);
    assert_eq!(page.number("agent_xfer_time_us_sum", &[]), 90);
}

#[test]
fn an_image_that_can_not_be_read_for_a_while_is_not_added_twice() {
    let scene = tempfile::tempdir().unwrap();
    let mut directory = stable(scene.path());
    let one = agent("one", scene.path());
    move_bytes(&one, 7);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 7);
    let (path, aside) = (scene.path().join("one"), scene.path().join(".aside"));
    std::fs::rename(&path, &aside).unwrap();
    assert_eq!(scrape(&mut directory).number(TX, &[]), 7);
    std::fs::rename(&aside, &path).unwrap();
    move_bytes(&one, 1);
    assert_eq!(scrape(&mut directory).number(TX, &[]), 8);
}

/// Not a test of its own: a process whose files can't be opened for a while.
#[test]
fn a_process_that_is_not_root() {
    if std::env::var_os("TELERING_TEST_NOT_ROOT").is_none() {
        return;
    }
    // Root may open everything.
    // SAFETY: a system call without pointers; nothing else runs in this process yet.
    let dropped = unsafe { libc::geteuid() != 0 || libc::setresuid(1000, 1000, 1000) == 0 };
    assert!(dropped);
    // More agents than are remembered once they are gone.
    const AGENTS: u64 = 300;
    let scene = tempfile::tempdir().unwrap();
    let mut directory = stable(scene.path());
    let agents: Vec<_> = (0..AGENTS).map(|number| agent(&format!("agent-{number}"), scene.path())).collect();
    agents.iter().for_each(|agent| agent.memory_registered(1));
    assert!(agents.iter().all(|agent| agent.flush_now(Duration::from_secs(60))));
    let mut seen = || {
        let page = scrape(&mut directory);
        (page.number("agent_memory_registered_total", &[]), processes(&page, "unreadable"))
    };
    let set_mode = |mode| {
        for agent in &agents {
            std::fs::set_permissions(agent.path().unwrap(), std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    assert_eq!(seen(), (AGENTS, 0));
    set_mode(0);
    assert_eq!(seen(), (AGENTS, AGENTS));
    set_mode(0o644);
    assert_eq!(seen(), (AGENTS, 0));
    println!("DONE");
}

#[test]
fn files_that_can_not_be_opened_for_a_while_are_not_added_twice() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "stable::a_process_that_is_not_root", "--nocapture"]).env("TELERING_TEST_NOT_ROOT", "");
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("DONE"), "{out}\n{err}");
}

#[test]
fn rings_of_nixl_are_part_of_the_sum_and_go_on_in_it() {
    let scene = tempfile::tempdir().unwrap();
    let mut directory = stable(scene.path());
    let path = scene.path().join("agent");
    for (round, expected) in [(1, 5), (2, 10)] {
        let mut file = material::NixlFile::new(telering::reader::NixlLayout::L4, 64);
        file.push(0, 5);
        file.write_to(&path);
        assert_eq!(scrape(&mut directory).number(TX, &[]), expected, "round {round}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(scrape(&mut directory).number(TX, &[]), expected, "the ring is gone, its events were moved");
    }
}
