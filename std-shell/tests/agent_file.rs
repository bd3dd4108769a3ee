//! An agent's file under the library's own readers: all that was recorded, nothing else, and what the file
//! says about itself.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;
use std::time::Duration;

use common::agent;
use telering::reader::{Follower, Item, Liveness, Reader};
use telering::source::scan;
use telering::{Operation, TransferRecord};
use telering_core::names;

fn transfer(bytes: u64) -> TransferRecord {
    TransferRecord {
        operation: Operation::Write,
        bytes,
        descriptors: 1,
        post_duration: Duration::from_micros(5),
        xfer_duration: Duration::from_micros(90),
    }
}

#[test]
fn what_an_agent_recorded_is_what_its_file_gives() {
    let directory = tempfile::tempdir().unwrap();
    let agent = agent("näme/1").dir(directory.path()).rank("7").build();
    let path = agent.path().unwrap();
    let mut follower = Follower::open(&path).unwrap();
    let live = Reader::open(&path).unwrap().info().unwrap();
    assert_eq!((live.liveness, live.identity.as_ref().unwrap().pid), (Liveness::Alive, u64::from(std::process::id())));
    (0..100).for_each(|number| agent.record_transfer(&transfer(1000 + number)));
    agent.event("kv_cache_hit", 3);
    let flow = agent.close();
    assert_eq!(flow.lost.total(), 0);

    let mut items = Vec::new();
    while follower.poll(&mut items).unwrap() > 0 {}
    let mut sums: HashMap<String, (u64, u64)> = HashMap::new();
    for item in &items {
        let Item::Event(event) = item else { panic!("{item:?}") };
        let sum = sums.entry(event.name.to_string()).or_default();
        *sum = (sum.0 + 1, sum.1 + event.value);
    }
    assert_eq!(sums["agent_tx_bytes"], (100, 100 * 1000 + 99 * 100 / 2));
    assert_eq!((sums["agent_xfer_time"], sums["agent_tx_requests_num"]), ((100, 9000), (100, 100)));
    assert_eq!((sums["kv_cache_hit"], sums["agent_started"], sums["agent_stopped"]), ((1, 3), (1, 1), (1, 1)));
    let own = sums["agent_started"].0 + sums["agent_stopped"].0;
    assert_eq!(follower.counts().events - own, flow.recorded);

    let info = Reader::open(&path).unwrap().info().unwrap();
    let identity = info.identity.unwrap();
    assert_eq!((identity.agent.as_str(), identity.rank.as_deref()), ("näme/1", Some("7")));
    assert_eq!((info.liveness, info.flow), (Liveness::Closed, Some(flow)));
    let metrics = info.metrics.unwrap();
    let bytes = metrics.entry(names::TX_BYTES).unwrap();
    assert_eq!((bytes.count, bytes.sum, bytes.last), (100, sums["agent_tx_bytes"].1, 1099));
    assert_eq!(metrics.histogram(names::XFER_TIME).unwrap().count(), 100);
    assert_eq!(info.dynamic.unwrap()[0].name, "kv_cache_hit");
    let found = scan(directory.path()).unwrap().found;
    assert_eq!((found.len(), found[0].agent.as_str(), found[0].liveness), (1, "näme/1", Liveness::Closed));
}

#[test]
fn a_follower_goes_on_with_the_next_run() {
    let directory = tempfile::tempdir().unwrap();
    let first = agent("again").dir(directory.path()).build();
    let path = first.path().unwrap();
    let mut follower = Follower::open(&path).unwrap();
    first.record_transfer(&transfer(1));
    first.close();
    drop(first);
    let second = agent("again").dir(directory.path()).buffer_size(64).build();
    assert_eq!(second.path().unwrap(), path);
    second.record_transfer(&transfer(2));
    second.close();
    let mut items = Vec::new();
    while follower.poll(&mut items).unwrap() > 0 {}
    let bytes: Vec<u64> = items
        .iter()
        .filter_map(|item| match item {
            Item::Event(event) if event.id == Some(names::TX_BYTES) => Some(event.value),
            _ => None,
        })
        .collect();
    assert_eq!(bytes, [1, 2]);
    assert_eq!(items.iter().filter(|item| matches!(item, Item::Reset { .. })).count(), 1);
    assert_eq!(follower.counts().lost, 0);
}

#[test]
fn three_events_are_three_events_also_over_an_earlier_file() {
    // Known case 11: places that were never written, or only by the run before, are no events. All zeros would
    // be a legal one.
    let directory = tempfile::tempdir().unwrap();
    for (run, recorded) in [5000, 3, 0, 3].into_iter().enumerate() {
        let agent = agent("few").dir(directory.path()).buffer_size(4096).metrics("few").build();
        (0..recorded).for_each(|value| agent.event("few", value));
        assert!(agent.flush_now(Duration::from_secs(60)));
        for _ in 0..2 {
            let mut reader = Reader::open(agent.path().unwrap()).unwrap();
            let mut items = Vec::new();
            while reader.read(&mut items).unwrap() > 0 {}
            assert_eq!(items.len() as u64, recorded.min(4096), "run {run}");
            assert!(items.iter().all(|item| matches!(item, Item::Event(event) if event.name == "few")));
            // Alive, then closed.
            agent.close();
        }
    }
}
