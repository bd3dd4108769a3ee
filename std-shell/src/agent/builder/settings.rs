//! What counts: the program's settings in front of the environment's, and these in front of the defaults.

use telering_core::slot::Buckets;

use super::super::Mode;
use super::super::sink::Start;
use super::Builder;
use crate::config::{Allowlist, Config, Enable, FILE_MODES, RUN_INTERVAL_MS, buffer_capacity, staging_capacity};
use crate::warn::{Warning, WarningKind};

impl Builder {
    /// The environment's settings with the program's in their places.
    pub(super) fn settings(&self, start: &mut Start) -> Config {
        let (mut config, warnings) =
            if self.ignore_environment { (Config::default(), Vec::new()) } else { Config::from_env() };
        // Of an agent that does nothing nobody wants to hear.
        let wanted =
            self.enable != Some(false) && (self.enable.is_some() || self.capture || config.enable != Enable::Unset);
        for warning in warnings {
            if wanted {
                start.warn(warning);
            }
        }
        let mut note = |setting: &str, note: Option<String>| {
            if let Some(note) = note {
                start.warn(Warning::new(WarningKind::Config, format!("{setting}: {note}")));
            }
        };
        if let Some(dir) = &self.dir {
            config.dir = Some(dir.clone());
        }
        if let Some(dir) = &self.plugin_dir {
            config.plugin_dir = Some(dir.clone()).filter(|dir| !dir.as_os_str().is_empty());
        }
        if let Some(events) = self.buffer_size {
            let (capacity, said) = buffer_capacity(events);
            config.buffer_size = capacity;
            note("buffer_size", said);
        }
        if let Some(records) = self.staging_records {
            let (capacity, said) = staging_capacity(records);
            config.staging_records = capacity;
            note("staging_records", said);
        }
        if let Some(interval) = self.run_interval {
            let ms = interval.as_millis().min(u128::from(u64::MAX)) as u64;
            if RUN_INTERVAL_MS.contains(&ms) {
                config.run_interval = interval;
            } else {
                let range = format!("{ms} ms is not within {RUN_INTERVAL_MS:?} ms, {:?} is used", config.run_interval);
                note("run_interval", Some(range));
            }
        }
        if let Some(mode) = self.file_mode {
            if FILE_MODES.contains(&mode) {
                config.file_mode = mode;
            } else {
                note("file_mode", Some(format!("{mode:o} is not within 400 to 777, {:o} is used", config.file_mode)));
            }
        }
        if let Some(bounds) = &self.histogram_bounds {
            match Buckets::new(bounds) {
                Ok(_) => config.histogram_bounds.clone_from(bounds),
                Err(error) => note("histogram_bounds", Some(format!("{error}; the bounds before are used"))),
            }
        }
        config.prometheus_port = self.prometheus_port.unwrap_or(config.prometheus_port);
        config.prometheus_local = self.prometheus_local.unwrap_or(config.prometheus_local);
        config.stale_ttl = self.stale_ttl.unwrap_or(config.stale_ttl);
        if let Some(directory) = &self.multiproc_dir {
            config.multiproc_dir = Some(directory.clone());
        }
        if let Some(rank) = &self.rank {
            config.rank = Some(rank.clone());
        }
        if let Some(patterns) = &self.metrics {
            let (allowlist, warnings) = Allowlist::from_patterns(patterns);
            config.allowlist = allowlist;
            warnings.into_iter().for_each(|warning| start.warn(warning));
        }
        config
    }
}

/// The rules of who may turn telemetry on (docs/architecture.md, "On and off").
pub(super) fn wanted_mode(enable: Option<bool>, capture: bool, config: &Config, own_sink: bool) -> Mode {
    let enabled = match (enable, config.enable) {
        (Some(false), _) => return Mode::Off,
        (_, Enable::Off) => false,
        (Some(true), _) | (_, Enable::On) => true,
        (None, Enable::Unset) => false,
    };
    let has_sink = own_sink || config.exporter.is_some() || config.dir.is_some();
    match (enabled, capture) {
        (true, _) if has_sink => Mode::Exported,
        (true, _) | (false, true) => Mode::Captured,
        (false, false) => Mode::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(enable: Option<bool>, capture: bool, variable: Option<&str>, dir: bool) -> Mode {
        let lookup = |name: &str| match name {
            "NIXL_TELEMETRY_ENABLE" => variable.map(Into::into),
            "NIXL_TELEMETRY_DIR" if dir => Some("/dev/shm/x".into()),
            _ => None,
        };
        let (config, _) = Config::from_lookup(lookup, []);
        wanted_mode(enable, capture, &config, false)
    }

    #[test]
    fn the_environment_and_the_program_decide_together() {
        use Mode::{Captured, Exported, Off};
        for (enable, capture, variable, dir, expected) in [
            (None, false, None, true, Off),
            (None, false, Some("yes"), true, Exported),
            (None, false, Some("yes"), false, Captured),
            (None, false, Some("maybe"), true, Off),
            (None, true, None, true, Captured),
            (None, true, Some("no"), true, Captured),
            (None, true, Some("1"), true, Exported),
            (Some(true), false, None, true, Exported),
            (Some(true), false, None, false, Captured),
            (Some(true), false, Some("off"), true, Off),
            (Some(true), true, Some("off"), true, Captured),
            (Some(false), true, Some("on"), true, Off),
        ] {
            assert_eq!(mode(enable, capture, variable, dir), expected, "{enable:?} {capture} {variable:?} {dir}");
        }
    }
}
