//! The exporter `prometheus_mp`: many processes, one directory, one endpoint.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "../acceptance/mod.rs"]
mod acceptance;
mod conformance;
mod owners;
#[path = "../prometheus/page.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod page;
mod processes;
mod rank;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use acceptance::Heard;
use page::Page;
use telering::{Builder, Operation, Telemetry, TransferRecord};

/// An agent of this process that takes part at a free port.
fn member(name: &str, directory: &Path) -> Builder {
    acceptance::agent(name).prometheus_mp(directory).prometheus_port(0).prometheus_local(true).buffer_size(64)
}

fn move_bytes(agent: &Telemetry, bytes: u64) {
    agent.record_transfer(&TransferRecord {
        operation: Operation::Write,
        bytes,
        descriptors: 1,
        post_duration: Duration::from_micros(2),
        xfer_duration: Duration::from_micros(42),
    });
    assert!(agent.flush_now(Duration::from_secs(60)));
}

/// A port that nobody has just now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// One scrape; `None` if nobody serves there.
fn try_scrape(address: SocketAddr) -> Option<Page> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    Some(Page::parse(body))
}

fn scrape(address: SocketAddr) -> Page {
    try_scrape(address).expect("somebody serves")
}

const TX: &str = "agent_tx_bytes_total";
