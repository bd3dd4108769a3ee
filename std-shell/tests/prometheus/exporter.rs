//! Agents at the endpoint of their process, and without one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use telering::prometheus::render;
use telering::{Operation, Telemetry};

use crate::acceptance::agent;
use crate::page::Page;
use crate::{address, scrape, served};

#[test]
fn a_scrape_shows_every_transfer_that_finished_before_it() {
    // Flushes are an hour apart: what is shown doesn't wait for them.
    let agent = served("fresh").run_interval(Duration::from_secs(3600)).build();
    let labels = [("agent_name", "fresh")];
    for number in 1..=200_u64 {
        agent.begin_transfer(Operation::Write, 1, 1).finish();
        let page = scrape(address(&agent));
        assert_eq!(page.number("agent_tx_requests_num_total", &labels), number);
    }
}

#[test]
fn a_scrape_asks_for_a_flush_and_waits_for_it_a_little() {
    struct Slow;
    impl telering::exporter::Exporter for Slow {
        fn export(&mut self, _: &[telering::exporter::Event]) -> Result<(), telering::exporter::ExportError> {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        }
    }
    // Flushes are an hour apart, and a flush takes its time.
    let agent = agent("slow").exporter(Box::new(Slow)).run_interval(Duration::from_secs(3600)).build();
    let mut in_time = 0;
    for number in 1..=50_u64 {
        agent.event("step", 1);
        let mut text = String::new();
        agent.render_prometheus(&mut text).unwrap();
        let page = Page::parse(&text);
        let step = page.value("telering_event_step_total", &[]).map_or(0, |value| value.parse().unwrap());
        assert!(step <= number);
        if step == number {
            in_time += 1;
            assert_eq!(page.number("telering_events_recorded_total", &[]), number);
        }
    }
    // On a busy machine some come after the scrape's patience.
    assert!(in_time > 25, "{in_time} of 50 scrapes showed the custom event before them");
}

#[test]
fn counters_never_go_down_while_threads_record_and_each_page_fits_together() {
    const THREADS: u64 = 3;
    let agent = served("monotone").build();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    agent.begin_transfer(Operation::Write, 3, 1).finish();
                }
            });
        }
        let labels = [("agent_name", "monotone")];
        let mut before = std::collections::BTreeMap::<_, u64>::new();
        let mut most = 0;
        for _ in 0..60 {
            let page = scrape(address(&agent));
            for (_, family) in page.0.iter().filter(|(_, family)| family.kind != "gauge") {
                let mine = family.lines.iter().filter(|(_, series, _)| series["agent_name"] == "monotone");
                for (name, series, value) in mine {
                    let value = value.parse().unwrap();
                    let last = before.insert((name.clone(), series.clone()), value).unwrap_or(0);
                    assert!(value >= last, "{name}{series:?} went from {last} to {value}");
                }
            }
            // What is recorded in the very moment in which the slots are added up may be in one sum already and not
            // yet in another.
            let requests = page.number("agent_tx_requests_num_total", &labels);
            let (bytes, timed) =
                (page.number("agent_tx_bytes_total", &labels), page.number("agent_xfer_time_us_count", &labels));
            most = most.max(timed.abs_diff(requests)).max(bytes.abs_diff(3 * requests) / 3);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(most <= 1000, "sums of one page are {most} transfers apart");
        println!("sums of one page were {most} transfers apart at the most");
    });
    let page = scrape(address(&agent));
    let labels = [("agent_name", "monotone")];
    let requests = page.number("agent_tx_requests_num_total", &labels);
    assert_eq!(page.number("agent_tx_bytes_total", &labels), 3 * requests);
    assert_eq!(page.number("agent_xfer_time_us_count", &labels), requests);
}

#[test]
fn two_agents_of_one_name_keep_series_of_their_own() {
    let first = served("twin").build();
    let second = served("twin").build();
    first.memory_registered(1);
    second.memory_registered(2);
    let page = scrape(address(&first));
    let lines = &page.0["agent_memory_registered_total"].lines;
    let twins: Vec<_> = lines.iter().filter(|(_, series, _)| series["agent_name"] == "twin").collect();
    assert_eq!(twins.len(), 2);
    let plain =
        |(_, series, _): &&&(_, std::collections::BTreeMap<String, String>, _)| !series.contains_key("agent_instance");
    assert_eq!(twins.iter().filter(plain).map(|(_, _, value)| value.as_str()).collect::<Vec<_>>(), ["1"]);
    // The first goes: the second keeps the series that it has, and the next one gets the plain labels.
    drop(first);
    let third = served("twin").build();
    third.memory_registered(3);
    let page = scrape(address(&second));
    let lines = &page.0["agent_memory_registered_total"].lines;
    let twins: Vec<_> = lines.iter().filter(|(_, series, _)| series["agent_name"] == "twin").collect();
    assert_eq!(twins.iter().filter(plain).map(|(_, _, value)| value.as_str()).collect::<Vec<_>>(), ["3"]);
    assert_eq!(twins.len(), 2);
}

#[test]
fn a_closed_agent_is_gone_from_the_page_while_its_handle_lives() {
    let stays = served("stays").build();
    let closes = served("closes").build();
    closes.memory_registered(1);
    closes.close();
    assert_eq!(closes.prometheus_address(), None);
    let page = scrape(address(&stays));
    assert!(!page.values_of("agent_name").contains("closes"));
    assert!(page.values_of("agent_name").contains("stays"));
}

#[test]
fn a_hundred_agents_come_and_go_while_others_scrape() {
    let stays = served("constant").build();
    stays.memory_registered(7);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for number in 0..25 {
                    let agent = served(&format!("guest-{thread}-{number}")).build();
                    agent.memory_registered(number);
                    let name = format!("guest-{thread}-{number}");
                    let page = scrape(address(&agent));
                    assert_eq!(page.number("agent_memory_registered_total", &[("agent_name", &name)]), number);
                }
            });
        }
        for _ in 0..25 {
            let page = scrape(address(&stays));
            assert_eq!(page.number("agent_memory_registered_total", &[("agent_name", "constant")]), 7);
        }
    });
}

#[test]
fn the_text_is_there_without_any_port_and_for_agents_of_all_kinds() {
    let directory = tempfile::tempdir().unwrap();
    let captured = Telemetry::builder("captured").ignore_environment(true).capture_telemetry(true).build();
    let filed = agent("filed").dir(directory.path()).build();
    let off = Telemetry::builder("off").ignore_environment(true).build();
    for (agent, bytes) in [(&captured, 10), (&filed, 20), (&off, 30)] {
        agent.begin_transfer(Operation::Read, bytes, 1).finish();
        assert_eq!(agent.prometheus_address(), None);
    }
    let mut text = String::new();
    captured.render_prometheus(&mut text).unwrap();
    let page = Page::parse(&text);
    assert_eq!(page.values_of("agent_name").into_iter().collect::<Vec<_>>(), ["captured"]);
    assert_eq!(page.number("agent_rx_bytes_total", &[]), 10);
    // Nobody counts events where nothing is exported.
    assert_eq!(page.value("telering_events_recorded_total", &[]), None);

    let mut text = String::new();
    render(&mut text).unwrap();
    let page = Page::parse(&text);
    assert_eq!(page.number("agent_rx_bytes_total", &[("agent_name", "captured")]), 10);
    assert_eq!(page.number("agent_rx_bytes_total", &[("agent_name", "filed")]), 20);
    assert_eq!(page.number("telering_events_recorded_total", &[("agent_name", "filed")]), 4);
    assert!(!page.values_of("agent_name").contains("off"));
    let mut nothing = String::new();
    off.render_prometheus(&mut nothing).unwrap();
    assert_eq!(nothing, "");
}

#[test]
fn an_exporter_that_hangs_does_not_hold_a_scrape() {
    struct Hangs;
    impl telering::exporter::Exporter for Hangs {
        fn export(&mut self, _: &[telering::exporter::Event]) -> Result<(), telering::exporter::ExportError> {
            std::thread::sleep(Duration::from_secs(3));
            Ok(())
        }
    }
    let agent = agent("hangs").exporter(Box::new(Hangs)).close_patience(Duration::from_millis(1)).build();
    agent.begin_transfer(Operation::Write, 5, 1).finish();
    let begin = Instant::now();
    let mut text = String::new();
    agent.render_prometheus(&mut text).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert_eq!(Page::parse(&text).number("agent_tx_bytes_total", &[]), 5);
}

/// At default settings, with two threads flat out: upstream's counters show about a twentieth of it.
#[test]
#[ignore = "three seconds at full speed"]
fn two_threads_flat_out_for_three_seconds_are_shown_to_the_last_transfer() {
    let agent = served("flat-out").build();
    let end = Instant::now() + Duration::from_secs(3);
    let made: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut made = 0;
                    while Instant::now() < end {
                        for _ in 0..1000 {
                            let mut transfer = agent.begin_transfer(Operation::Write, 4096, 1);
                            transfer.posted();
                            transfer.finish();
                        }
                        made += 1000;
                    }
                    made
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let begin = Instant::now();
    let page = scrape(address(&agent));
    let took = begin.elapsed();
    let number = |name| page.number(name, &[("agent_name", "flat-out")]);
    println!("{made} transfers, {} shown, scraped in {took:?}", number("agent_tx_requests_num_total"));
    assert_eq!(number("agent_tx_requests_num_total"), made);
    assert_eq!(number("agent_tx_bytes_total"), made * 4096);
    assert_eq!((number("agent_xfer_time_us_count"), number("agent_xfer_post_time_us_count")), (made, made));
    assert!(made > 100_000 && took < Duration::from_secs(1), "{made} transfers, scraped in {took:?}");
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

#[test]
#[ignore = "a hundred million observations"]
fn an_endpoint_that_nobody_scrapes_takes_no_more_memory() {
    let agent = served("never-scraped").build();
    let record = |times: u32| {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..times).for_each(|_| agent.begin_transfer(Operation::Write, 1, 1).finish()));
            }
        });
    };
    record(1_000_000);
    let before = resident();
    record(49_000_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes more");
    let page = scrape(address(&agent));
    assert_eq!(page.number("agent_tx_requests_num_total", &[("agent_name", "never-scraped")]), 100_000_000);
}

#[test]
#[ignore = "ten thousand scrapes"]
fn ten_thousand_scrapes_take_no_more_memory() {
    let agent = served("often-scraped").build();
    let scrapes =
        |times: u32| (0..times).for_each(|_| assert_eq!(crate::http::get(address(&agent), "/metrics").status, 200));
    scrapes(1000);
    let before = resident();
    scrapes(10_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 1 << 20, "{grown} bytes more");
}
