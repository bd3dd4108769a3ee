//! Metrics for Prometheus: the text, the server, the exporter.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

#[path = "../acceptance/mod.rs"]
mod acceptance;
mod conformance;
mod exporter;
mod http;
mod page;
mod processes;
mod settings;
mod text;

use std::net::SocketAddr;

use page::Page;
use telering::{Builder, Telemetry};

/// An agent at the endpoint that all agents of this test process share, on a free port of the loopback interface.
fn served(name: &str) -> Builder {
    acceptance::agent(name).prometheus().prometheus_port(0).prometheus_local(true)
}

/// Where it is served. The port was chosen by the system.
fn address(agent: &Telemetry) -> SocketAddr {
    agent.prometheus_address().expect("it is served")
}

fn scrape(address: SocketAddr) -> Page {
    let answer = http::get(address, "/metrics");
    assert_eq!(answer.status, 200);
    Page::parse(&answer.body)
}
