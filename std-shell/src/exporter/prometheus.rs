//! The exporter that shows an agent's numbers to Prometheus.
//!
//! All agents of a process share one endpoint. The first one opens it with its settings; the last one that goes closes
//! it. A forked child has neither the endpoint nor its socket; its own agents open one of their own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use super::{Event, ExportError, Exporter};
use crate::agent;
use crate::agent::hot::lock;
use crate::file::fork;
use crate::per_process::PerProcess;
use crate::prometheus::http::{Server, addresses};
use crate::warn::{Warner, WarningKind};

/// Where the metrics are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrometheusSettings {
    /// 0 is any free port.
    pub(crate) port: u16,
    /// On the loopback interface only.
    pub(crate) local: bool,
}

/// The endpoint of this process.
struct Endpoint {
    server: Server,
    settings: PrometheusSettings,
    agents: usize,
}

static ENDPOINT: PerProcess<Mutex<Option<Endpoint>>> = PerProcess::new();

/// Shows an agent at the process's endpoint for as long as it lives. The numbers come from the agent's slots when they
/// are asked for; of the events nothing is kept.
pub(crate) struct Prometheus {
    seat: Option<Seat>,
    address: SocketAddr,
}

impl Prometheus {
    /// Opens the endpoint, or joins it. The error says what to do.
    pub(crate) fn new(settings: PrometheusSettings, warner: &Warner) -> Result<Prometheus, String> {
        let mut endpoint = lock(ENDPOINT.get());
        let joined = endpoint.is_some();
        let there = match &mut *endpoint {
            Some(there) => there,
            none => {
                let server = Server::start(&addresses(settings.port, settings.local), Arc::new(agent::write_endpoint));
                let server = server.map_err(|error| refused(settings, &error))?;
                none.insert(Endpoint { server, settings, agents: 0 })
            }
        };
        there.agents += 1;
        let (address, first) = (there.server.address(), there.settings);
        // The lock is given back before anything is told: whoever hears it may make another agent.
        drop(endpoint);
        if !joined {
            // A port that nobody chose is known to nobody.
            warner.note(&format!("metrics are served on http://{address}/metrics"), settings.port == 0);
        } else if settings.local != first.local || ![0, first.port, address.port()].contains(&settings.port) {
            warner.warn(
                WarningKind::Config,
                format!(
                    "the metrics of this process are served on {address}, as its first agent wanted; another port or \
                     interface has no effect until the last agent with the exporter prometheus is gone"
                ),
            );
        }
        Ok(Prometheus { seat: Some(Seat { generation: fork::generation() }), address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn refused(PrometheusSettings { port, local }: PrometheusSettings, error: &std::io::Error) -> String {
    let place = if local { "the loopback interface" } else { "all interfaces" };
    let what_to_do = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program, or another library in this one, has it: choose another port in \
             NIXL_TELEMETRY_PROMETHEUS_PORT (0 is any free one)"
        }
        std::io::ErrorKind::PermissionDenied => {
            "this user may not have it: choose a port from 1024 on in NIXL_TELEMETRY_PROMETHEUS_PORT"
        }
        _ => "look at the error, and choose another port in NIXL_TELEMETRY_PROMETHEUS_PORT if that helps",
    };
    format!(
        "the metrics can't be served on port {port} of {place}: {error}; {what_to_do}; transfers go on and are counted, but nobody can scrape them"
    )
}

impl Exporter for Prometheus {
    fn export(&mut self, _events: &[Event]) -> Result<(), ExportError> {
        Ok(())
    }

    fn close(&mut self, _now_us: u64) {
        self.seat = None;
    }
}

/// One agent's share in the endpoint.
struct Seat {
    generation: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            return;
        }
        let mut endpoint = lock(ENDPOINT.get());
        if let Some(there) = &mut *endpoint {
            there.agents -= 1;
            if there.agents == 0 {
                // Under the lock: whoever comes next finds the port free. The server's thread never takes this lock.
                *endpoint = None;
            }
        }
    }
}
