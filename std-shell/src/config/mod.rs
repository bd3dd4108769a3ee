//! Settings: what the environment says, read once, strictly, and without ever failing.
//!
//! Each of NIXL's variables `NIXL_TELEMETRY_X` is also read as `TELERING_X`, which wins, since NIXL itself may
//! live in the same process and be meant to do something else. An empty `TELERING_X` hides `NIXL_TELEMETRY_X`
//! as any other value does.
//!
//! | variable | value | default |
//! |---|---|---|
//! | `.._ENABLE` | y yes on true enable 1, or n no off false disable 0, in any case | off |
//! | `.._DIR` | the directory of telemetry files | none |
//! | `.._EXPORTER` | `BUFFER`, `NOP`, `prometheus`, `prometheus_mp`, or the name of another exporter; case counts | from `.._DIR` |
//! | `.._BUFFER_SIZE` | events in a telemetry file, 1 to 2^24, rounded up to a power of two, at least 64 | 4096 |
//! | `.._RUN_INTERVAL` | milliseconds between two flushes, 1 to 3,600,000 | 100 |
//! | `.._ENABLED_METRICS` | patterns of event names, separated by commas: see [`Allowlist`] | all |
//! | `.._HISTOGRAM_BUCKETS_US` | bounds, separated by commas: see [`parse_histogram_bounds`] | NIXL's 18 |
//! | `.._PROMETHEUS_PORT` | port of the metrics, 0 to 65535; 0 is any free one | 9090 |
//! | `.._PROMETHEUS_LOCAL` | whether they are served on the loopback interface only; words as for `.._ENABLE` | no |
//! | `.._RANK_ENV` | the variable that holds this process's rank | `LOCAL_RANK` |
//! | `.._MULTIPROC_DIR` | the directory that the exporter `prometheus_mp` writes and serves | none |
//! | `.._MP_STALE_TTL` | seconds for which it publishes the last numbers of an agent that is gone | 30 |
//! | `TELERING_STAGING_RECORDS` | records in each thread's staging ring, 1 to 2^20, rounded as above | 16384 |
//! | `TELERING_FILE_MODE` | permissions of telemetry files, octal, 0400 to 0777 | 0644 |
//!
//! Numbers are decimal digits, or `0x` and hexadecimal digits, and nothing else: no sign, no blanks. A value
//! that can't be used gives one [`Warning`] that names the variable, the value and what is used instead. So
//! does a variable with one of the two prefixes that doesn't exist. NIXL's configuration file is not read.

mod allowlist;
mod capacity;
mod env;
mod histogram;
mod known;
mod nearest;
mod parse;
#[cfg(test)]
mod tests;

pub use allowlist::Allowlist;
pub use capacity::{
    BUFFER_SIZE_DEFAULT, BUFFER_SIZE_MAX, BUFFER_SIZE_MIN, STAGING_RECORDS_DEFAULT, STAGING_RECORDS_MAX,
    STAGING_RECORDS_MIN, buffer_capacity, staging_capacity,
};
pub use histogram::{HISTOGRAM_BOUNDS_MAX, parse_histogram_bounds};

use crate::warn::{Warning, WarningKind};
use env::Environment;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use telering_core::slot::DEFAULT_BOUNDS;

/// The time between two flushes when nothing else is asked for.
pub const RUN_INTERVAL_DEFAULT: Duration = Duration::from_millis(100);
/// The shortest and the longest time between two flushes, in milliseconds.
pub const RUN_INTERVAL_MS: RangeInclusive<u64> = 1..=3_600_000;
/// How long the last numbers of an agent that is gone are published when nothing else is asked for.
pub const STALE_TTL_DEFAULT: Duration = Duration::from_secs(30);
/// The longest such time in seconds; a longer one counts as this.
pub const STALE_TTL_MAX_SECONDS: u64 = 9_223_372_036;
/// The permissions of a telemetry file when nothing else is asked for.
pub const FILE_MODE_DEFAULT: u32 = 0o644;
/// The permissions that a telemetry file may have: its owner can read it, no special bits.
pub const FILE_MODES: RangeInclusive<u32> = 0o400..=0o777;

/// The port of the metrics when nothing else is asked for.
pub const PROMETHEUS_PORT_DEFAULT: u16 = 9090;

/// Whether the environment wants telemetry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enable {
    /// It doesn't say: a program may turn telemetry on.
    #[default]
    Unset,
    /// It says no, or something that isn't a known yes. This is stronger than a program that says yes.
    Off,
    /// It says yes.
    On,
}

/// Which exporter publishes the events.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExporterChoice {
    /// A telemetry file in the directory: `BUFFER` in the environment.
    Shm,
    /// None; events are counted and dropped: `NOP` in the environment.
    Nop,
    /// Metrics on an HTTP endpoint: `prometheus` in the environment.
    Prometheus,
    /// Telemetry files in a directory of many processes, one of which serves them all: `prometheus_mp` in the
    /// environment.
    PrometheusMp,
    /// Another one, by its name as the environment has it, not checked yet.
    Named(String),
}

impl ExporterChoice {
    /// The choice behind a name; `None` for an empty one. Upper and lower case differ.
    ///
    /// ```
    /// use telering::config::ExporterChoice;
    /// assert_eq!(ExporterChoice::from_name("BUFFER"), Some(ExporterChoice::Shm));
    /// assert_eq!(ExporterChoice::from_name("buffer"), Some(ExporterChoice::Named("buffer".into())));
    /// assert_eq!(ExporterChoice::from_name(""), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<ExporterChoice> {
        match name {
            "" => None,
            "BUFFER" => Some(ExporterChoice::Shm),
            "NOP" => Some(ExporterChoice::Nop),
            "prometheus" => Some(ExporterChoice::Prometheus),
            "prometheus_mp" => Some(ExporterChoice::PrometheusMp),
            other => Some(ExporterChoice::Named(String::from(other))),
        }
    }

    /// The name in the environment.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            ExporterChoice::Shm => "BUFFER",
            ExporterChoice::Nop => "NOP",
            ExporterChoice::Prometheus => "prometheus",
            ExporterChoice::PrometheusMp => "prometheus_mp",
            ExporterChoice::Named(name) => name,
        }
    }
}

/// The settings of an agent. [`Config::default`] is what an empty environment gives.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Whether the environment wants telemetry.
    pub enable: Enable,
    /// The directory of telemetry files, never empty.
    pub dir: Option<PathBuf>,
    /// The exporter that was asked for by name.
    pub exporter: Option<ExporterChoice>,
    /// Events in a telemetry file's ring: a power of two, [`BUFFER_SIZE_MIN`] to [`BUFFER_SIZE_MAX`].
    pub buffer_size: u64,
    /// The longest time between two flushes, within [`RUN_INTERVAL_MS`].
    pub run_interval: Duration,
    /// Records in each thread's staging ring: a power of two, [`STAGING_RECORDS_MIN`] to
    /// [`STAGING_RECORDS_MAX`].
    pub staging_records: usize,
    /// The events that are recorded at all.
    pub allowlist: Allowlist,
    /// The rank of this process within its job, never empty, without control characters.
    pub rank: Option<String>,
    /// Permission bits of a new telemetry file, within [`FILE_MODES`].
    pub file_mode: u32,
    /// The directory of the exporter `prometheus_mp`, never empty.
    pub multiproc_dir: Option<PathBuf>,
    /// How long the exporter `prometheus_mp` publishes the last numbers of an agent that is gone, at most
    /// [`STALE_TTL_MAX_SECONDS`].
    pub stale_ttl: Duration,
    /// Upper bounds of the latency histograms in microseconds, inclusive, each larger than the one before, 1 to
    /// [`HISTOGRAM_BOUNDS_MAX`] of them.
    pub histogram_bounds: Vec<u64>,
    /// Port of the metrics, 0 for any free one.
    pub prometheus_port: u16,
    /// Whether the metrics are served on the loopback interface only.
    pub prometheus_local: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            enable: Enable::Unset,
            dir: None,
            exporter: None,
            buffer_size: BUFFER_SIZE_DEFAULT,
            run_interval: RUN_INTERVAL_DEFAULT,
            staging_records: STAGING_RECORDS_DEFAULT,
            allowlist: Allowlist::all(),
            rank: None,
            file_mode: FILE_MODE_DEFAULT,
            multiproc_dir: None,
            stale_ttl: STALE_TTL_DEFAULT,
            histogram_bounds: DEFAULT_BOUNDS.to_vec(),
            prometheus_port: PROMETHEUS_PORT_DEFAULT,
            prometheus_local: false,
        }
    }
}

impl Config {
    /// Reads the settings from any environment. `lookup` gives the value of a variable, `names` are all
    /// variables that are set, to tell misspelt ones. Nothing else is looked at: the same environment always
    /// gives the same settings and warnings.
    ///
    /// ```
    /// use telering::config::{Config, Enable};
    /// let lookup = |name: &str| (name == "NIXL_TELEMETRY_ENABLE").then(|| "yes".into());
    /// let (config, warnings) = Config::from_lookup(lookup, ["NIXL_TELEMETRY_ENABLE".to_string()]);
    /// assert_eq!(config.enable, Enable::On);
    /// assert!(warnings.is_empty());
    /// ```
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<OsString>,
        names: impl IntoIterator<Item = String>,
    ) -> (Config, Vec<Warning>) {
        let mut env = Environment::new(&lookup);
        let interval_default = RUN_INTERVAL_DEFAULT.as_millis() as u64;
        let rank_variable = rank_variable(&mut env);
        let config = Config {
            enable: enable(&mut env),
            dir: directory(&mut env, known::DIR),
            exporter: exporter(&mut env),
            buffer_size: env.capacity(known::BUFFER_SIZE, capacity::BUFFER),
            run_interval: Duration::from_millis(env.number(
                known::RUN_INTERVAL,
                RUN_INTERVAL_MS,
                "milliseconds",
                interval_default,
            )),
            staging_records: env.capacity(known::STAGING_RECORDS, capacity::STAGING) as usize,
            allowlist: allowlist(&mut env),
            rank: rank_variable.as_deref().and_then(|variable| rank(&mut env, variable)),
            file_mode: file_mode(&mut env),
            multiproc_dir: directory(&mut env, known::MULTIPROC_DIR),
            stale_ttl: stale_ttl(&mut env),
            histogram_bounds: histogram_bounds(&mut env),
            prometheus_port: prometheus_port(&mut env),
            prometheus_local: prometheus_local(&mut env),
        };
        let unknown = known::unknown(names, rank_variable.as_deref());
        env.warnings.extend(limited(unknown, "variables like these"));
        (config, env.warnings)
    }

    /// Reads the settings from the environment of this process.
    #[must_use]
    pub fn from_env() -> (Config, Vec<Warning>) {
        let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        Config::from_lookup(|name| std::env::var_os(name), names)
    }
}

/// The most warnings of one kind; what is more is counted in one last warning.
const LIKE_WARNINGS_MAX: usize = 16;

fn limited(mut messages: Vec<String>, noun: &str) -> Vec<Warning> {
    let more = messages.len().saturating_sub(LIKE_WARNINGS_MAX);
    if more > 0 {
        messages.truncate(LIKE_WARNINGS_MAX);
        messages.push(format!("{noun}: {more} more, not shown"));
    }
    messages.into_iter().map(|message| Warning::new(WarningKind::Config, message)).collect()
}

fn enable(env: &mut Environment<'_>) -> Enable {
    let Some(setting) = env.setting(known::ENABLE) else { return Enable::Unset };
    match setting.value.to_str().and_then(parse::yes_or_no) {
        Some(true) => Enable::On,
        Some(false) => Enable::Off,
        None => {
            env.warn_of(&setting, &format!("that is none of {}; telemetry is off", parse::WORDS));
            Enable::Off
        }
    }
}

/// Paths are bytes: one that isn't UTF-8 is as good as any.
fn directory(env: &mut Environment<'_>, suffix: &str) -> Option<PathBuf> {
    let setting = env.setting(suffix)?;
    if setting.value.is_empty() {
        env.warn_of(&setting, "an empty directory counts as none; unset the variable or name a directory");
        return None;
    }
    Some(PathBuf::from(setting.value))
}

fn stale_ttl(env: &mut Environment<'_>) -> Duration {
    let default = STALE_TTL_DEFAULT.as_secs();
    let instead = format!("the range is 0 to {STALE_TTL_MAX_SECONDS} seconds; the default, {default}, is used instead");
    let Some((setting, text)) = env.text(known::MP_STALE_TTL, &instead) else { return STALE_TTL_DEFAULT };
    match parse::whole_number(&text) {
        Ok(seconds) => Duration::from_secs(seconds.min(STALE_TTL_MAX_SECONDS)),
        Err(fault) => {
            env.warn_of_fault(&setting, fault, &instead);
            STALE_TTL_DEFAULT
        }
    }
}

fn exporter(env: &mut Environment<'_>) -> Option<ExporterChoice> {
    let (_, name) = env.text(known::EXPORTER, "the choice of an exporter is left out")?;
    ExporterChoice::from_name(&name)
}

fn allowlist(env: &mut Environment<'_>) -> Allowlist {
    let Some((setting, list)) = env.text(known::ENABLED_METRICS, "all metrics are enabled") else {
        return Allowlist::all();
    };
    let (allowlist, warnings) = Allowlist::from_setting(&setting.variable, &list);
    env.warnings.extend(warnings);
    allowlist
}

/// The variable that holds the rank; `None` when the user wants no rank.
fn rank_variable(env: &mut Environment<'_>) -> Option<String> {
    match env.setting(known::RANK_ENV) {
        None => Some(String::from("LOCAL_RANK")),
        Some(setting) => {
            let (_, name) = env.text_of(setting, "no rank is told")?;
            (!name.is_empty()).then_some(name)
        }
    }
}

fn rank(env: &mut Environment<'_>, variable: &str) -> Option<String> {
    let setting = env.exactly(variable)?;
    let (setting, rank) = env.text_of(setting, "no rank is told")?;
    if rank.contains(char::is_control) {
        env.warn_of(&setting, "a rank can't have control characters; no rank is told");
        return None;
    }
    (!rank.is_empty()).then_some(rank)
}

fn file_mode(env: &mut Environment<'_>) -> u32 {
    let instead = format!(
        "the range is {:04o} to {:04o}, octal, so that the owner can read; the default, {FILE_MODE_DEFAULT:04o}, is used instead",
        FILE_MODES.start(),
        FILE_MODES.end(),
    );
    let Some((setting, text)) = env.text(known::FILE_MODE, &instead) else { return FILE_MODE_DEFAULT };
    match parse::octal_number(&text).map(u32::try_from) {
        Ok(Ok(mode)) if FILE_MODES.contains(&mode) => return mode,
        Err(parse::NumberFault::NotANumber) => env.warn_of(&setting, &format!("that is not octal; {instead}")),
        Err(fault) => env.warn_of_fault(&setting, fault, &instead),
        Ok(_) => env.warn_of(&setting, &instead),
    }
    FILE_MODE_DEFAULT
}

fn prometheus_port(env: &mut Environment<'_>) -> u16 {
    let default = PROMETHEUS_PORT_DEFAULT;
    let port = env.number(known::PROMETHEUS_PORT, 0..=65535, "(0 is any free port)", default.into());
    u16::try_from(port).unwrap_or(default)
}

/// A word that is not known keeps strangers out.
fn prometheus_local(env: &mut Environment<'_>) -> bool {
    let Some(setting) = env.setting(known::PROMETHEUS_LOCAL) else { return false };
    setting.value.to_str().and_then(parse::yes_or_no).unwrap_or_else(|| {
        let words = parse::WORDS;
        env.warn_of(
            &setting,
            &format!("that is none of {words}; only this machine can scrape the metrics, as for yes"),
        );
        true
    })
}

fn histogram_bounds(env: &mut Environment<'_>) -> Vec<u64> {
    let default = || DEFAULT_BOUNDS.to_vec();
    let Some((setting, list)) = env.text(known::HISTOGRAM_BUCKETS_US, "the default bounds are used instead") else {
        return default();
    };
    if list.is_empty() {
        return default();
    }
    parse_histogram_bounds(&list).unwrap_or_else(|fault| {
        env.warn_of(&setting, &format!("{fault}; the default bounds are used instead"));
        default()
    })
}
