//! The exporter of an agent: what was asked for, or a warning that says why there is none.

use std::net::SocketAddr;
use std::sync::Arc;

use super::builder::StartError;
use super::{Agent, Telemetry};
use crate::config::{Config, ExporterChoice};
use crate::exporter::{Exporter, Nop, Prometheus, PrometheusSettings, Shm, ShmSettings, Who};
use crate::warn::{Warner, Warning, WarningKind};

/// Where events go, as the program wants it.
pub(super) enum Sink {
    Nop,
    Prometheus,
    Own(Box<dyn Exporter>),
}

/// What happened while an agent starts.
pub(super) struct Start {
    pub(super) warner: Warner,
    pub(super) strict: bool,
    pub(super) failed: Option<Warning>,
}

impl Start {
    pub(super) fn warn(&mut self, warning: Warning) {
        if !self.strict {
            self.warner.tell(&warning);
        } else if self.failed.is_none() {
            self.failed = Some(warning);
        }
    }

    pub(super) fn end(self, agent: Agent) -> Result<Telemetry, StartError> {
        match self.failed {
            Some(warning) => Err(StartError { warning }),
            None => Ok(Telemetry(Arc::new(agent))),
        }
    }
}

/// The exporter, and where it shows the agent to Prometheus.
pub(super) fn make_exporter(
    sink: Option<Sink>,
    config: &Config,
    name: &str,
    instance: u64,
    start: &mut Start,
) -> Option<(Box<dyn Exporter>, Option<SocketAddr>)> {
    let choice = match sink {
        Some(Sink::Own(exporter)) => return Some((exporter, None)),
        Some(Sink::Nop) => ExporterChoice::Nop,
        Some(Sink::Prometheus) => ExporterChoice::Prometheus,
        None => config.exporter.clone().unwrap_or(ExporterChoice::Shm),
    };
    let problem = match (choice, &config.dir) {
        (ExporterChoice::Nop, _) => return Some((Box::new(Nop), None)),
        (ExporterChoice::Prometheus, _) => {
            let settings = PrometheusSettings { port: config.prometheus_port, local: config.prometheus_local };
            match Prometheus::new(settings, &start.warner) {
                Ok(exporter) => {
                    let address = exporter.address();
                    return Some((Box::new(exporter), Some(address)));
                }
                Err(message) => Warning::new(WarningKind::Exporter, message),
            }
        }
        (ExporterChoice::Shm, Some(directory)) => {
            let settings = ShmSettings {
                directory: directory.clone(),
                capacity: config.buffer_size,
                file_mode: config.file_mode,
                bounds: config.histogram_bounds.clone(),
                who: Who::of_this_process(name, instance, config.rank.as_deref().unwrap_or_default()),
            };
            match Shm::new(settings, &start.warner) {
                Ok(exporter) => return Some((Box::new(exporter), None)),
                Err(error) => Warning::new(WarningKind::File, error.to_string()),
            }
        }
        (ExporterChoice::Shm, None) => Warning::new(
            WarningKind::Config,
            "the exporter BUFFER needs a directory and there is none: set NIXL_TELEMETRY_DIR; nothing is exported",
        ),
        (ExporterChoice::Named(other), _) => Warning::new(
            WarningKind::Config,
            format!(
                "there is no exporter '{other}': BUFFER, NOP and prometheus are known (case counts); nothing is exported"
            ),
        ),
    };
    start.warn(problem);
    None
}
