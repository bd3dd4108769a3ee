//! The exporter of an agent: what was asked for, or a warning that says why there is none.

use std::sync::Arc;

use super::builder::StartError;
use super::view::Place;
use super::{Agent, Telemetry};
use crate::config::{Config, ExporterChoice};
use crate::exporter::{Exporter, Nop, Prometheus, PrometheusSettings, Shm, ShmSettings, Who};
use crate::prometheus::http::addresses;
use crate::prometheus::multiproc::MultiProc;
use crate::warn::{Warner, Warning, WarningKind};

/// Where events go, as the program wants it.
pub(super) enum Sink {
    Nop,
    Prometheus,
    PrometheusMp,
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

type Made = (Box<dyn Exporter>, Option<Place>);

fn who(config: &Config, name: &str, instance: u64) -> Who {
    Who::of_this_process(name, instance, config.rank.as_deref().unwrap_or_default())
}

fn prometheus(config: &Config, start: &Start) -> Result<Made, Warning> {
    let settings = PrometheusSettings { port: config.prometheus_port, local: config.prometheus_local };
    match Prometheus::new(settings, &start.warner) {
        Ok(exporter) => {
            let address = exporter.address();
            Ok((Box::new(exporter), Some(Place::Process(address))))
        }
        Err(message) => Err(Warning::new(WarningKind::Exporter, message)),
    }
}

/// Where the directory can't be used, this process still serves its own numbers if nobody else has the address.
fn prometheus_mp(config: &Config, name: &str, instance: u64, start: &mut Start) -> Result<Made, Warning> {
    let Some(directory) = &config.multiproc_dir else {
        return Err(Warning::new(
            WarningKind::Config,
            "the exporter prometheus_mp needs a directory and there is none: set NIXL_TELEMETRY_MULTIPROC_DIR; nothing \
             is exported",
        ));
    };
    let places = addresses(config.prometheus_port, config.prometheus_local);
    match MultiProc::new(directory, places, config, who(config, name, instance), &start.warner) {
        Ok(exporter) => {
            let seat = exporter.seat();
            Ok((Box::new(exporter), Some(Place::Directory(seat))))
        }
        Err(error) => {
            let message = format!(
                "the exporter prometheus_mp can't use its directory: {error}. Only the agents of this process are served; \
                 name another directory in NIXL_TELEMETRY_MULTIPROC_DIR"
            );
            start.warn(Warning::new(WarningKind::File, message));
            prometheus(config, start)
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
) -> Option<Made> {
    let choice = match sink {
        Some(Sink::Own(exporter)) => return Some((exporter, None)),
        Some(Sink::Nop) => ExporterChoice::Nop,
        Some(Sink::Prometheus) => ExporterChoice::Prometheus,
        Some(Sink::PrometheusMp) => ExporterChoice::PrometheusMp,
        None => config.exporter.clone().unwrap_or(ExporterChoice::Shm),
    };
    let problem = match (choice, &config.dir) {
        (ExporterChoice::Nop, _) => return Some((Box::new(Nop), None)),
        (ExporterChoice::Prometheus, _) => match prometheus(config, start) {
            Ok(made) => return Some(made),
            Err(problem) => problem,
        },
        (ExporterChoice::PrometheusMp, _) => match prometheus_mp(config, name, instance, start) {
            Ok(made) => return Some(made),
            Err(problem) => problem,
        },
        (ExporterChoice::Shm, Some(directory)) => {
            let settings = ShmSettings {
                directory: directory.clone(),
                capacity: config.buffer_size,
                file_mode: config.file_mode,
                bounds: config.histogram_bounds.clone(),
                who: who(config, name, instance),
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
                "there is no exporter '{other}': BUFFER, NOP, prometheus and prometheus_mp are known (case counts); nothing is exported"
            ),
        ),
    };
    start.warn(problem);
    None
}
