//! Real processes behind one port.

use std::time::{Duration, Instant};

use super::*;
use crate::acceptance::{Dice, eventually, names_in};
use crate::rank::{Job, Rank};

const RANKS: usize = 8;
/// Another one must serve this soon after the owner died.
const TAKEOVER: Duration = Duration::from_secs(2);

/// All ranks at once, in an order that the dice decide.
fn start_all(job: &Job<'_>, dice: &mut Dice) -> Vec<(usize, Rank, Vec<String>)> {
    let mut numbers: Vec<_> = (0..RANKS).collect();
    for place in (1..RANKS).rev() {
        numbers.swap(place, dice.below(place as u64 + 1) as usize);
    }
    let mut ranks: Vec<_> = numbers.into_iter().map(|rank| (rank, job.start(rank), Vec::new())).collect();
    for (_, rank, said) in &mut ranks {
        *said = rank.ready();
    }
    ranks.sort_by_key(|(rank, ..)| *rank);
    ranks
}

fn owner_of(ranks: &mut [(usize, Rank, Vec<String>)]) -> Vec<usize> {
    ranks.iter_mut().filter_map(|(rank, process, _)| process.serves().then_some(*rank)).collect()
}

#[test]
fn eight_processes_behind_one_port_all_appear_and_none_fails_or_warns() {
    let mut dice = Dice(u64::from(std::process::id()) | 1);
    for _ in 0..3 {
        let scene = tempfile::tempdir().unwrap();
        let directory = scene.path().join("ranks");
        let port = free_port();
        let mut ranks = start_all(&Job::new(&directory, port), &mut dice);
        for (rank, process, said) in &mut ranks {
            assert_eq!(*said, [""; 0], "rank {rank}");
            process.move_bytes(100 + *rank as u64);
        }
        assert_eq!(owner_of(&mut ranks).len(), 1);
        let page = scrape(local(port));
        for (rank, process, _) in &ranks {
            let (rank_text, pid) = (rank.to_string(), process.pid());
            let labels = [("local_rank", rank_text.as_str()), ("pid", pid.as_str())];
            assert_eq!(page.number(TX, &labels), 100 + *rank as u64);
        }
        assert_eq!(page.0[TX].lines.len(), RANKS);
        assert_eq!(page.number("telering_processes", &[("state", "alive")]), RANKS as u64);
        ranks.into_iter().for_each(|(_, rank, _)| rank.end());
    }
}

#[test]
fn with_the_plain_exporter_each_but_the_first_warns_once_and_goes_on() {
    let scene = tempfile::tempdir().unwrap();
    let port = free_port();
    let job = Job { exporter: "prometheus", ..Job::new(scene.path(), port) };
    let mut dice = Dice(u64::from(std::process::id()) | 1);
    let mut numbers = Vec::new();
    let mut ranks: Vec<_> = (0..RANKS).map(|rank| (rank, job.start(rank))).collect();
    for (_, rank) in &mut ranks {
        // Without a port an agent is captured: it counts, and nobody can scrape it.
        let mut warnings = Vec::new();
        loop {
            let line = rank.talking.hear("").expect("the rank ended early");
            if line.starts_with("WARNING ") {
                warnings.push(line);
            } else if line.starts_with("READY") {
                break;
            }
        }
        numbers.push(warnings.len());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 1, 1, 1, 1, 1, 1], "the first serves, each other one says so once");
    let page = scrape(local(port));
    assert_eq!(page.0[TX].lines.len(), 1);
    assert!(dice.roll() > 0);
}

#[test]
fn another_rank_takes_over_within_two_seconds_of_a_kill_also_when_all_are_idle() {
    let scene = tempfile::tempdir().unwrap();
    let directory = scene.path().join("ranks");
    let port = free_port();
    let job = Job { ttl: "3", ..Job::new(&directory, port) };
    let mut ranks: Vec<_> = start_all(&job, &mut Dice(77));
    for (rank, process, _) in &mut ranks {
        process.move_bytes(1000 + *rank as u64);
    }
    // From here on nobody records anything. Two owners die, one after the other.
    for alive in [RANKS - 1, RANKS - 2] {
        let owner = owner_of(&mut ranks)[0];
        let place = ranks.iter().position(|(rank, ..)| *rank == owner).unwrap();
        let (_, mut killed, _) = ranks.remove(place);
        killed.talking.kill();
        let died = Instant::now();
        eventually("another rank serves", Duration::from_secs(20), || try_scrape(local(port)).is_some());
        assert!(died.elapsed() < TAKEOVER, "{:?}", died.elapsed());
        assert_eq!(owner_of(&mut ranks).len(), 1);
        // The last numbers of the dead are still there.
        let page = scrape(local(port));
        let owner_text = owner.to_string();
        assert_eq!(page.number(TX, &[("local_rank", &owner_text)]), 1000 + owner as u64);
        assert_eq!(page.number("telering_processes", &[("state", "alive")]), alive as u64);
        assert!(page.number("telering_processes", &[("state", "dead")]) >= 1);
        assert!(died.elapsed() < Duration::from_secs(3), "the TTL is over: too slow to tell");
        // And gone with their files once the TTL is over.
        eventually("the dead are no longer published", Duration::from_secs(20), || {
            scrape(local(port)).0[TX].lines.len() == alive
        });
        assert!(died.elapsed() >= Duration::from_secs(2), "{:?}: before the TTL was over", died.elapsed());
        eventually("the files of the dead are removed", Duration::from_secs(20), || {
            // Two names each, and the lock file of the election.
            names_in(&directory).len() == 2 * alive + 1
        });
    }
}

#[test]
fn a_child_of_a_killed_owner_keeps_neither_the_port_nor_the_election() {
    let scene = tempfile::tempdir().unwrap();
    let directory = scene.path().join("ranks");
    let port = free_port();
    let job = Job::new(&directory, port);
    let (mut first, mut second) = (job.start(0), job.start(1));
    first.ready();
    second.ready();
    let (mut owner, mut other) = if first.serves() { (first, second) } else { (second, first) };
    let child: i32 = owner.say("fork", "FORKED ").parse().unwrap();
    owner.talking.kill();
    let died = Instant::now();
    eventually("the other rank serves", Duration::from_secs(20), || other.serves());
    let took = died.elapsed();
    let page = scrape(local(port));
    // SAFETY: the child that was forked above; it lives until this.
    let killed = unsafe { libc::kill(child, libc::SIGKILL) };
    assert_eq!(killed, 0, "the child lived meanwhile");
    assert!(took < TAKEOVER, "{took:?}");
    assert_eq!(page.number("telering_processes", &[("state", "alive")]), 1, "the child keeps no file alive");
}

#[test]
fn e2e_all_rank_processes_aggregate_behind_one_endpoint_and_stale_are_dropped() {
    let scene = tempfile::tempdir().unwrap();
    let directory = scene.path().join("ranks");
    let port = free_port();
    let job = Job { ttl: "0", ..Job::new(&directory, port) };
    let mut ranks: Vec<_> = (0..4).map(|rank| job.start(rank)).collect();
    for (number, rank) in ranks.iter_mut().enumerate() {
        rank.ready();
        rank.move_bytes(10_u64.pow(number as u32));
    }
    let page = scrape(local(port));
    for (number, rank) in ranks.iter().enumerate() {
        assert_eq!(page.number(TX, &[("pid", &rank.pid())]), 10_u64.pow(number as u32));
    }
    // One that doesn't serve is killed.
    let place = ranks.iter_mut().position(|rank| !rank.serves()).unwrap();
    let mut killed = ranks.remove(place);
    let pid = killed.pid();
    // Seen alive a moment ago, and without a sign of life since: its file must stay until its last numbers are shown.
    scrape(local(port));
    killed.talking.kill();
    std::thread::sleep(Duration::from_millis(800));
    assert!(scrape(local(port)).value(TX, &[("pid", &pid)]).is_some(), "once more");
    assert!(scrape(local(port)).value(TX, &[("pid", &pid)]).is_none());
    eventually("its file is removed", Duration::from_secs(20), || names_in(&directory).len() == 2 * 3 + 1);
    assert_eq!(scrape(local(port)).0[TX].lines.len(), 3, "who lives outlives a TTL of zero");
}
