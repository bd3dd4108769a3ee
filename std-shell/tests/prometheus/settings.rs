//! The exporter with the settings of an environment, in processes of their own: the endpoint is one per process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use telering::{Mode, Operation, Telemetry, TransferRecord};

use crate::acceptance::{Heard, order, process};
use crate::scrape;

/// Not a test of its own: an agent with the settings of its environment; it says what it sees of itself.
#[test]
fn a_program() {
    let Some((name, _)) = order() else { return };
    let heard = Heard::default();
    let agent = Telemetry::builder(&name).on_warning(heard.ear()).build();
    println!("\nMODE {:?}", agent.mode());
    for us in [5, 30, 200, 700] {
        let xfer_duration = Duration::from_micros(us);
        let (operation, post_duration) = (Operation::Write, Duration::ZERO);
        agent.record_transfer(&TransferRecord { operation, bytes: 100, descriptors: 1, post_duration, xfer_duration });
    }
    let mut transfer = agent.begin_transfer(Operation::Read, 7, 1);
    transfer.finish();
    assert_eq!(transfer.telemetry().map(|telemetry| telemetry.total_bytes), Some(7), "each transfer has its numbers");
    assert_eq!(agent.mode() == Mode::Exported, agent.prometheus_address().is_some());
    if let Some(address) = agent.prometheus_address() {
        println!("ADDRESS {address}");
        let page = scrape(reachable(address));
        println!("BYTES {}", page.number("agent_tx_bytes_total", &[]));
        println!("POSTED {}", page.number("agent_xfer_post_time_us_count", &[]));
        let buckets = page.buckets("agent_xfer_time_us", &[]);
        println!("BUCKETS {}", buckets.iter().map(|(le, count)| format!("{le}:{count}")).collect::<Vec<_>>().join(" "));
    }
    let mut text = String::new();
    agent.render_prometheus(&mut text).unwrap();
    assert_eq!(crate::page::Page::parse(&text).number("agent_rx_bytes_total", &[]), 7, "it counts in any case");
    agent.close();
    heard.all().iter().for_each(|warning| println!("WARNING {warning}"));
}

/// An address that stands for all interfaces, as a client of this machine reaches it.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())) } else { address }
}

/// What a program said, by the first word of the line.
type Said = BTreeMap<String, Vec<String>>;

fn run(settings: &[(&str, &str)]) -> Said {
    let mut command = process("settings::a_program", "program", "");
    for (key, _) in std::env::vars_os() {
        if key.to_str().is_some_and(|key| key.starts_with("NIXL_") || key.starts_with("TELERING_")) {
            command.env_remove(key);
        }
    }
    command.envs([("NIXL_TELEMETRY_ENABLE", "y"), ("NIXL_TELEMETRY_EXPORTER", "prometheus")]);
    command.envs(settings.iter().map(|(key, value)| (OsString::from(format!("NIXL_TELEMETRY_{key}")), *value)));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (text, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{settings:?}: {:?}\n{text}\n{errors}", output.status);
    let mut said = Said::new();
    for (word, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
        said.entry(word.to_owned()).or_default().push(rest.to_owned());
    }
    // The port that nobody chose is told, for there is no logger.
    let free = settings.contains(&("PROMETHEUS_PORT", "0"));
    assert_eq!(errors.contains("telering: metrics are served on http://"), free, "{errors}");
    said
}

fn warnings(said: &Said) -> &[String] {
    said.get("WARNING").map_or(&[], Vec::as_slice)
}

const FREE: (&str, &str) = ("PROMETHEUS_PORT", "0");
const LOCAL: (&str, &str) = ("PROMETHEUS_LOCAL", "yes");

fn address_of(said: &Said) -> SocketAddr {
    said["ADDRESS"][0].parse().unwrap()
}

#[test]
fn a_free_port_is_chosen_told_and_served() {
    let said = run(&[FREE, LOCAL]);
    assert_eq!((said["MODE"][0].as_str(), said["BYTES"][0].as_str()), ("Exported", "400"));
    let address = address_of(&said);
    assert!(address.ip().is_loopback() && address.port() != 0);
    assert!(warnings(&said).is_empty(), "{said:?}");
    // The last agent of a process closes the endpoint.
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn words_for_local_are_those_of_nixl_and_a_typo_keeps_strangers_out() {
    for (word, local) in
        [("y", true), ("ON", true), ("true", true), ("1", true), ("no", false), ("0", false), ("", false)]
    {
        let said = run(&[FREE, ("PROMETHEUS_LOCAL", word)]);
        assert_eq!(address_of(&said).ip().is_loopback(), local, "{word}");
        assert!(warnings(&said).is_empty(), "{said:?}");
    }
    let said = run(&[FREE, ("PROMETHEUS_LOCAL", "jes")]);
    assert!(address_of(&said).ip().is_loopback());
    let [warning] = warnings(&said) else { panic!("{said:?}") };
    assert!(warning.contains("NIXL_TELEMETRY_PROMETHEUS_LOCAL=\"jes\""), "{warning}");
}

#[test]
fn a_bad_port_is_one_warning_with_its_name_and_value() {
    for port in ["", "65536", "-1", "abc", " 9090 ", "9090x", "1e3"] {
        let said = run(&[("PROMETHEUS_PORT", port), LOCAL]);
        // The default port may be another program's on this machine: then there is a second warning, which says so.
        let (port_warnings, others): (Vec<_>, Vec<_>) =
            warnings(&said).iter().partition(|warning| warning.contains("NIXL_TELEMETRY_PROMETHEUS_PORT="));
        assert_eq!(port_warnings.len(), 1, "{port:?}: {said:?}");
        assert!(port_warnings[0].contains(&format!("{port:?}")) && port_warnings[0].contains("9090"), "{said:?}");
        match said["MODE"][0].as_str() {
            "Exported" => assert_eq!((address_of(&said).port(), others.len()), (9090, 0), "{said:?}"),
            _ => assert!(others.len() == 1 && others[0].contains("can't be served on port 9090"), "{said:?}"),
        }
    }
}

#[test]
fn bind_collision_create_is_non_fatal_warn() {
    for local in [LOCAL, ("PROMETHEUS_LOCAL", "no")] {
        // Whoever has the port: on all interfaces, or on the one that the agent wants too.
        for holder in [
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
        ] {
            let Ok(holder) = TcpListener::bind(holder) else { continue };
            let port = holder.local_addr().unwrap().port().to_string();
            let said = run(&[("PROMETHEUS_PORT", &port), local]);
            assert_eq!(said["MODE"][0], "Captured", "{said:?}");
            let [warning] = warnings(&said) else { panic!("{said:?}") };
            assert!(warning.contains(&port) && warning.contains("NIXL_TELEMETRY_PROMETHEUS_PORT"), "{warning}");
        }
    }
}

#[test]
fn histogram_buckets_env_override_reaches_the_scrape() {
    let said = run(&[FREE, LOCAL, ("HISTOGRAM_BUCKETS_US", "30, 199.5, 1000")]);
    // The read of the program took some time of its own.
    let counts: Vec<&str> = said["BUCKETS"][0].split(' ').collect();
    assert_eq!(
        counts.iter().map(|bucket| bucket.split(':').next().unwrap()).collect::<Vec<_>>(),
        ["30", "199", "1000", "+Inf"]
    );
    assert!(counts[3].ends_with(":5"), "{counts:?}");
}

#[test]
fn histogram_buckets_test_valid_list_is_parsed_in_order_absent_uses_defaults_and_bad_lists_warn() {
    let defaults = |said: &Said| said["BUCKETS"][0].split(' ').count() == 19 && said["BUCKETS"][0].starts_with("10:");
    assert!(defaults(&run(&[FREE, LOCAL])));
    assert!(defaults(&run(&[FREE, LOCAL, ("HISTOGRAM_BUCKETS_US", "")])));
    for bad in ["10,abc", "20,10", "10,10", "0,1", "-1", "nan", "inf", "10,,20"] {
        let said = run(&[FREE, LOCAL, ("HISTOGRAM_BUCKETS_US", bad)]);
        assert!(defaults(&said), "{bad}: {said:?}");
        let [warning] = warnings(&said) else { panic!("{bad}: {said:?}") };
        assert!(warning.contains("NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US"), "{warning}");
    }
}

#[test]
fn enabled_metrics_reach_the_scrape() {
    let said = run(&[FREE, LOCAL, ("ENABLED_METRICS", "agent_tx_*,agent_rx_*")]);
    assert_eq!((said["BYTES"][0].as_str(), said["POSTED"][0].as_str()), ("400", "0"));
    assert!(warnings(&said).is_empty());
}

#[test]
fn our_own_variables_win() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut command = process("settings::a_program", "program", "");
    command.envs([
        ("NIXL_TELEMETRY_ENABLE", "y"),
        ("NIXL_TELEMETRY_EXPORTER", "prometheus"),
        ("NIXL_TELEMETRY_PROMETHEUS_PORT", &port),
        ("TELERING_PROMETHEUS_PORT", "0"),
        ("TELERING_PROMETHEUS_LOCAL", "1"),
    ]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("MODE Exported"), "{output:?}");
}
