//! Which exporter an agent gets.

use super::builder::Start;
use crate::config::{Config, ExporterChoice};
use crate::exporter::{self, Exporter, Linked, Nop, Shm, ShmSettings, Who};
use crate::warn::{Warning, WarningKind};

/// Where events go, as the program wants it.
pub(super) enum Sink {
    Own(Box<dyn Exporter>),
    Chosen(ExporterChoice),
}

/// The exporter that program and environment choose; one warning if there is none.
pub(super) fn make_exporter(
    sink: Option<Sink>,
    config: &Config,
    who: &Who,
    start: &mut Start,
) -> Option<Box<dyn Exporter>> {
    let choice = match sink {
        Some(Sink::Own(exporter)) => return Some(exporter),
        Some(Sink::Chosen(choice)) => choice,
        None => config.exporter.clone().unwrap_or(ExporterChoice::Shm),
    };
    let problem = match (choice, &config.dir) {
        (ExporterChoice::Nop, _) => return Some(Box::new(Nop)),
        (ExporterChoice::Shm, Some(directory)) => {
            let settings = ShmSettings {
                directory: directory.clone(),
                capacity: config.buffer_size,
                file_mode: config.file_mode,
                bounds: config.histogram_bounds.clone(),
                who: who.clone(),
            };
            match Shm::new(settings, &start.warner) {
                Ok(exporter) => return Some(Box::new(exporter)),
                Err(error) => Warning::new(WarningKind::File, error.to_string()),
            }
        }
        (ExporterChoice::Shm, None) => Warning::new(
            WarningKind::Config,
            "the exporter BUFFER needs a directory and there is none: set NIXL_TELEMETRY_DIR; nothing is exported",
        ),
        (ExporterChoice::Named(name), _) => {
            if let Some(factory) = exporter::find(&name) {
                return Some(Box::new(Linked::new(factory)));
            }
            match exporter::plugin::find(&name, config.plugin_dir.as_deref()) {
                Ok(plugin) => return Some(Box::new(plugin)),
                Err(message) => Warning::new(WarningKind::Config, format!("{message}; nothing is exported")),
            }
        }
    };
    start.warn(problem);
    None
}
