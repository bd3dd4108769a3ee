//! The variables that exist, so that a misspelt one can be told.

use super::nearest::nearest;
use crate::warn::shown;
use std::collections::BTreeSet;

/// The prefix of NIXL's variables.
pub(super) const NIXL: &str = "NIXL_TELEMETRY_";
/// The prefix of our own; it wins over [`NIXL`].
pub(super) const OURS: &str = "TELERING_";

pub(super) const ENABLE: &str = "ENABLE";
pub(super) const DIR: &str = "DIR";
pub(super) const EXPORTER: &str = "EXPORTER";
pub(super) const BUFFER_SIZE: &str = "BUFFER_SIZE";
pub(super) const RUN_INTERVAL: &str = "RUN_INTERVAL";
pub(super) const ENABLED_METRICS: &str = "ENABLED_METRICS";
pub(super) const HISTOGRAM_BUCKETS_US: &str = "HISTOGRAM_BUCKETS_US";
pub(super) const RANK_ENV: &str = "RANK_ENV";
pub(super) const MULTIPROC_DIR: &str = "MULTIPROC_DIR";
pub(super) const MP_STALE_TTL: &str = "MP_STALE_TTL";
pub(super) const PROMETHEUS_PORT: &str = "PROMETHEUS_PORT";
pub(super) const PROMETHEUS_LOCAL: &str = "PROMETHEUS_LOCAL";
pub(super) const STAGING_RECORDS: &str = "STAGING_RECORDS";
pub(super) const FILE_MODE: &str = "FILE_MODE";

/// What may follow either prefix. Some belong to exporters that read them themselves, or to NIXL alone: they
/// are set for a reason, and no mistake.
const SHARED: [&str; 16] = [
    ENABLE,
    DIR,
    EXPORTER,
    BUFFER_SIZE,
    RUN_INTERVAL,
    ENABLED_METRICS,
    HISTOGRAM_BUCKETS_US,
    RANK_ENV,
    PROMETHEUS_PORT,
    PROMETHEUS_LOCAL,
    MULTIPROC_DIR,
    MP_STALE_TTL,
    "DOCA_PROMETHEUS_PORT",
    "DOCA_PROMETHEUS_LOCAL",
    "DOCA_BACKENDS",
    "DOCA_IPC_SOCKETS_DIR",
];

/// What may follow [`OURS`] only.
const OURS_ALONE: [&str; 3] = [STAGING_RECORDS, FILE_MODE, "PLUGIN_DIR"];

/// Whether a setting has no twin with NIXL's prefix.
pub(super) fn is_ours_alone(suffix: &str) -> bool {
    OURS_ALONE.contains(&suffix)
}

/// One message for each variable with one of the two prefixes that doesn't exist, in alphabetical order.
/// `also` is a name that exists because the user says so.
pub(super) fn unknown(names: impl IntoIterator<Item = String>, also: Option<&str>) -> Vec<String> {
    let names: BTreeSet<String> = names.into_iter().filter(|name| Some(name.as_str()) != also).collect();
    names.iter().filter_map(|name| complaint(name)).collect()
}

fn complaint(name: &str) -> Option<String> {
    let (prefix, suffix) = [NIXL, OURS].iter().find_map(|prefix| Some((*prefix, name.strip_prefix(prefix)?)))?;
    if SHARED.contains(&suffix) || (prefix == OURS && is_ours_alone(suffix)) {
        return None;
    }
    let hint = match nearest(suffix, SHARED.into_iter().chain(OURS_ALONE)) {
        Some(meant) => format!("did you mean {}{meant}?", if is_ours_alone(meant) { OURS } else { prefix }),
        None => String::from("is it meant for another program, or another version?"),
    };
    Some(format!("the variable {} is not known and has no effect; {hint}", shown(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(names: &[&str]) -> Vec<String> {
        unknown(names.iter().map(|name| name.to_string()), None)
    }

    #[test]
    fn every_variable_that_exists_is_known_under_its_prefixes() {
        for suffix in SHARED {
            assert!(messages(&[&format!("{NIXL}{suffix}"), &format!("{OURS}{suffix}")]).is_empty(), "{suffix}");
        }
        for suffix in OURS_ALONE {
            assert!(messages(&[&format!("{OURS}{suffix}")]).is_empty(), "{suffix}");
        }
        assert!(messages(&["PATH", "NIXL_PLUGIN_DIR", "NIXL_CONFIG_FILE", "nixl_telemetry_enable", ""]).is_empty());
    }

    #[test]
    fn a_misspelt_variable_is_told_with_the_one_that_was_meant() {
        for (name, meant) in [
            ("NIXL_TELEMETRY_ENABLED", "NIXL_TELEMETRY_ENABLE?"),
            ("TELERING_ENABLED", "TELERING_ENABLE?"),
            ("NIXL_TELEMETRY_BUFFERSIZE", "NIXL_TELEMETRY_BUFFER_SIZE?"),
            ("NIXL_TELEMETRY_enable", "NIXL_TELEMETRY_ENABLE?"),
            ("NIXL_TELEMETRY_PORT", "NIXL_TELEMETRY_PROMETHEUS_PORT?"),
            ("NIXL_TELEMETRY_STAGING_RECORDS", "TELERING_STAGING_RECORDS?"),
            ("NIXL_TELEMETRY_FILE_MODES", "TELERING_FILE_MODE?"),
            ("TELERING_RUN_INTERVAL_MS", "TELERING_RUN_INTERVAL?"),
        ] {
            let told = messages(&[name]);
            assert_eq!(told.len(), 1, "{name}");
            assert!(told[0].contains(&format!("\"{name}\"")) && told[0].contains(meant), "{}", told[0]);
        }
        for name in ["NIXL_TELEMETRY_COLOUR", "TELERING_", "NIXL_TELEMETRY_"] {
            assert!(!messages(&[name])[0].contains("did you mean"), "{name}");
        }
    }

    #[test]
    fn a_variable_set_twice_is_told_once_and_a_named_one_never() {
        assert_eq!(messages(&["TELERING_X", "TELERING_X"]).len(), 1);
        assert!(unknown([String::from("TELERING_MY_RANK")], Some("TELERING_MY_RANK")).is_empty());
    }
}
