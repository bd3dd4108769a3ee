//! The rules of each variable, and what holds for any environment.

use super::*;
use proptest::prelude::*;
use std::os::unix::ffi::OsStringExt as _;
use telering_core::slot::Buckets;

type Variables = Vec<(String, OsString)>;

fn read(variables: &[(String, OsString)]) -> (Config, Vec<String>) {
    let lookup = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let (config, warnings) = Config::from_lookup(lookup, variables.iter().map(|(name, _)| name.clone()));
    assert!(warnings.iter().all(|warning| warning.kind == WarningKind::Config));
    (config, warnings.into_iter().map(|warning| warning.message).collect())
}

fn config(variables: &[(&str, &str)]) -> (Config, Vec<String>) {
    let owned: Variables = variables.iter().map(|(name, value)| (name.to_string(), OsString::from(value))).collect();
    read(&owned)
}

/// Reads one variable whose value is fine.
fn quiet(name: &str, value: &str) -> Config {
    let (config, warnings) = config(&[(name, value)]);
    assert!(warnings.is_empty(), "{name}={value}: {warnings:?}");
    config
}

/// Reads one variable whose value isn't; the one warning names both.
fn warned(name: &str, value: &str) -> (Config, String) {
    let (config, mut warnings) = config(&[(name, value)]);
    assert_eq!(warnings.len(), 1, "{name}={value}: {warnings:?}");
    let message = warnings.remove(0);
    assert!(message.contains(name) && message.contains(&crate::warn::shown(value)), "{message}");
    (config, message)
}

#[test]
fn an_empty_environment_gives_the_defaults() {
    assert_eq!(config(&[]), (Config::default(), vec![]));
    let config = Config::default();
    assert_eq!((config.enable, config.dir, config.exporter), (Enable::Unset, None, None));
    assert_eq!((config.buffer_size, config.run_interval), (4096, Duration::from_millis(100)));
    assert_eq!((config.staging_records, config.file_mode), (16_384, 0o644));
    assert!(config.allowlist.is_all() && config.rank.is_none());
    assert_eq!(config.histogram_bounds.len(), 18);
}

#[test]
fn enable_takes_known_words_and_is_off_for_all_others() {
    for word in ["y", "Yes", "ON", "true", "enable", "1"] {
        assert_eq!(quiet("NIXL_TELEMETRY_ENABLE", word).enable, Enable::On, "{word}");
    }
    for word in ["", "n", "No", "OFF", "false", "disable", "0"] {
        assert_eq!(quiet("NIXL_TELEMETRY_ENABLE", word).enable, Enable::Off, "{word}");
    }
    for word in ["maybe", "2", " yes", "enabled"] {
        let (config, message) = warned("NIXL_TELEMETRY_ENABLE", word);
        assert_eq!(config.enable, Enable::Off, "{word}");
        assert!(message.contains("y, yes, on, true, enable, 1"), "{message}");
    }
}

#[test]
fn buffer_size_is_right_or_told() {
    for (value, size) in [("64", 64), ("4096", 4096), ("0x40", 64), ("16777216", 1 << 24)] {
        assert_eq!(quiet("NIXL_TELEMETRY_BUFFER_SIZE", value).buffer_size, size, "{value}");
    }
    for (value, size, said) in [
        ("0", 4096, "not within 1 to 16777216"),
        ("1", 64, "64 are used"),
        ("2", 64, "64 are used"),
        ("3", 64, "64 are used"),
        ("5", 64, "64 are used"),
        ("65", 128, "rounded up to 128"),
        ("1000", 1024, "rounded up to 1024"),
        ("4095", 4096, "rounded up to 4096"),
        ("4097", 8192, "rounded up to 8192"),
        ("16777215", 1 << 24, "rounded up to 16777216"),
        ("16777217", 4096, "4096, is used instead"),
        ("9223372036854775809", 4096, "4096, is used instead"),
        ("18446744073709551615", 4096, "4096, is used instead"),
        ("18446744073709551616", 4096, "too large"),
        ("", 4096, "it is empty"),
        ("-1", 4096, "not a whole number"),
        ("abc", 4096, "not a whole number"),
        (" 4096 ", 4096, "not a whole number"),
        ("4096x", 4096, "not a whole number"),
        ("1e3", 4096, "not a whole number"),
    ] {
        let (config, message) = warned("NIXL_TELEMETRY_BUFFER_SIZE", value);
        assert_eq!(config.buffer_size, size, "{value}");
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn staging_records_follow_the_same_rules_under_our_name_only() {
    assert_eq!(quiet("TELERING_STAGING_RECORDS", "1048576").staging_records, 1 << 20);
    for (value, records) in [("0", 16_384), ("1", 64), ("100", 128), ("1048577", 16_384), ("many", 16_384)] {
        assert_eq!(warned("TELERING_STAGING_RECORDS", value).0.staging_records, records, "{value}");
    }
    let (config, warnings) = config(&[("NIXL_TELEMETRY_STAGING_RECORDS", "64")]);
    assert_eq!(config.staging_records, 16_384);
    assert!(warnings[0].contains("TELERING_STAGING_RECORDS?"), "{warnings:?}");
}

#[test]
fn run_interval_stays_within_a_millisecond_and_an_hour() {
    for (value, milliseconds) in [("1", 1), ("250", 250), ("0xff", 255), ("3600000", 3_600_000)] {
        let config = quiet("NIXL_TELEMETRY_RUN_INTERVAL", value);
        assert_eq!(config.run_interval, Duration::from_millis(milliseconds), "{value}");
    }
    for value in ["0", "3600001", "18446744073709551616", "", "-1", "abc", " 100", "100ms", "1e3", "0.5"] {
        let (config, message) = warned("NIXL_TELEMETRY_RUN_INTERVAL", value);
        assert_eq!(config.run_interval, Duration::from_millis(100), "{value}");
        assert!(message.contains("1 to 3600000 milliseconds") && message.contains("100"), "{message}");
    }
}

#[test]
fn a_directory_is_any_path_but_an_empty_one() {
    assert_eq!(quiet("NIXL_TELEMETRY_DIR", "/dev/shm/x y").dir, Some(PathBuf::from("/dev/shm/x y")));
    let bytes = OsString::from_vec(b"/tmp/\xff".to_vec());
    let (config, warnings) = read(&[(String::from("NIXL_TELEMETRY_DIR"), bytes.clone())]);
    assert_eq!((config.dir, warnings.len()), (Some(PathBuf::from(bytes)), 0));
    assert_eq!(warned("NIXL_TELEMETRY_DIR", "").0.dir, None);
}

#[test]
fn an_exporter_is_named_exactly() {
    let exporter = |name| quiet("NIXL_TELEMETRY_EXPORTER", name).exporter;
    assert_eq!(exporter("BUFFER"), Some(ExporterChoice::Shm));
    assert_eq!(exporter("NOP"), Some(ExporterChoice::Nop));
    assert_eq!(exporter("prometheus"), Some(ExporterChoice::Prometheus));
    assert_eq!(exporter("buffer").as_ref().map(ExporterChoice::name), Some("buffer"));
    assert_eq!(exporter(""), None);
}

#[test]
fn our_variable_wins_even_when_it_is_empty_or_wrong() {
    let both = |name: &str, ours: &str, nixl: &str| {
        config(&[(&format!("NIXL_TELEMETRY_{name}"), nixl), (&format!("TELERING_{name}"), ours)])
    };
    assert_eq!(both("ENABLE", "no", "yes").0.enable, Enable::Off);
    assert_eq!(both("DIR", "/ours", "/nixl").0.dir, Some(PathBuf::from("/ours")));
    assert_eq!(both("DIR", "", "/nixl").0.dir, None);
    assert_eq!(both("EXPORTER", "", "BUFFER").0.exporter, None);
    let (config, warnings) = both("BUFFER_SIZE", "x", "64");
    assert_eq!(config.buffer_size, 4096);
    assert!(warnings[0].contains("TELERING_BUFFER_SIZE=\"x\""), "{warnings:?}");
}

#[test]
fn the_rank_is_in_the_variable_that_is_named() {
    assert_eq!(config(&[("LOCAL_RANK", "3")]).0.rank.as_deref(), Some("3"));
    assert_eq!(config(&[("LOCAL_RANK", "")]).0.rank, None);
    let named = |name| config(&[("NIXL_TELEMETRY_RANK_ENV", name), ("LOCAL_RANK", "3"), ("MY_RANK", "7")]);
    assert_eq!(named("MY_RANK").0.rank.as_deref(), Some("7"));
    assert_eq!(named(""), (Config::default(), vec![]));
    assert_eq!(named("NO_SUCH_VARIABLE"), (Config::default(), vec![]));
    let (config, warnings) = config(&[("TELERING_RANK_ENV", "TELERING_MINE"), ("TELERING_MINE", "5")]);
    assert_eq!((config.rank.as_deref(), warnings.len()), (Some("5"), 0));
    assert_eq!(warned("LOCAL_RANK", "3\n").0.rank, None);
}

#[test]
fn the_file_mode_is_octal_and_lets_the_owner_read() {
    for (value, mode) in [("600", 0o600), ("0640", 0o640), ("0o444", 0o444), ("777", 0o777), ("0400", 0o400)] {
        assert_eq!(quiet("TELERING_FILE_MODE", value).file_mode, mode, "{value}");
    }
    for value in ["", "0", "0377", "1000", "4755", "888", "0x1ff", "-600", "rw-r--r--", "7777777777777777777777777"] {
        let (config, message) = warned("TELERING_FILE_MODE", value);
        assert_eq!(config.file_mode, 0o644, "{value}");
        assert!(message.contains("0400 to 0777") && message.contains("0644"), "{message}");
    }
}

#[test]
fn histogram_bounds_are_read_or_the_defaults_stay() {
    assert_eq!(quiet("NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US", "1, 2.5,1e3").histogram_bounds, [1, 2, 1000]);
    assert_eq!(quiet("NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US", "").histogram_bounds, DEFAULT_BOUNDS);
    for (value, token) in [("10,5", "\"5\""), ("10,,20", "\"\""), ("nan", "\"nan\""), (" ", "\"\"")] {
        let (config, message) = warned("NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US", value);
        assert_eq!(config.histogram_bounds, DEFAULT_BOUNDS, "{value}");
        assert!(message.contains(&format!("the bound {token}")), "{message}");
    }
}

#[test]
fn enabled_metrics_become_the_allowlist_and_mistakes_name_the_variable() {
    let config_of = quiet("NIXL_TELEMETRY_ENABLED_METRICS", "agent_tx_bytes,agent_rx_bytes");
    assert_eq!(config_of.allowlist.mask(), 0b11);
    assert!(quiet("NIXL_TELEMETRY_ENABLED_METRICS", "").allowlist.is_all());
    warned("TELERING_ENABLED_METRICS", "agent_tx_byte");
}

#[test]
fn variables_of_parts_not_read_here_are_known() {
    for name in ["DOCA_PROMETHEUS_PORT", "DOCA_IPC_SOCKETS_DIR", "DOCA_BACKENDS"] {
        assert_eq!(quiet(&format!("NIXL_TELEMETRY_{name}"), "anything"), Config::default());
    }
    quiet("TELERING_PLUGIN_DIR", "/opt/plugins");
}

#[test]
fn the_place_of_the_metrics_is_a_port_and_a_word() {
    let place = |config: &Config| (config.prometheus_port, config.prometheus_local);
    assert_eq!(place(&Config::default()), (9090, false));
    for (value, port) in [("0", 0), ("1", 1), ("65535", 65535), ("0x2328", 9000)] {
        assert_eq!(place(&quiet("NIXL_TELEMETRY_PROMETHEUS_PORT", value)), (port, false));
    }
    for value in ["", "65536", "-1", "+1", "abc", " 9090 ", "9090x", "1e3", "90.5"] {
        let (got, warnings) = config(&[("NIXL_TELEMETRY_PROMETHEUS_PORT", value)]);
        assert_eq!((place(&got), warnings.len()), ((9090, false), 1), "{value}");
        assert!(warnings[0].contains(&format!("NIXL_TELEMETRY_PROMETHEUS_PORT=\"{value}\"")), "{warnings:?}");
    }
    assert_eq!(place(&quiet("NIXL_TELEMETRY_PROMETHEUS_LOCAL", "On")), (9090, true));
    assert_eq!(place(&quiet("NIXL_TELEMETRY_PROMETHEUS_LOCAL", "disable")), (9090, false));
    // A word that nobody knows keeps strangers out.
    let (got, warnings) = config(&[("NIXL_TELEMETRY_PROMETHEUS_LOCAL", "jes")]);
    assert_eq!((place(&got), warnings.len()), ((9090, true), 1));
}

#[test]
fn the_directory_and_the_patience_of_many_processes_are_as_nixl_has_them() {
    let config = quiet("NIXL_TELEMETRY_MULTIPROC_DIR", "/dev/shm/job");
    assert_eq!(config.multiproc_dir, Some(PathBuf::from("/dev/shm/job")));
    assert_eq!(warned("NIXL_TELEMETRY_MULTIPROC_DIR", "").0.multiproc_dir, None);
    for (value, seconds) in [("0", 0), ("30", 30), ("0x10", 16), ("18446744073709551615", 9_223_372_036)] {
        assert_eq!(quiet("NIXL_TELEMETRY_MP_STALE_TTL", value).stale_ttl, Duration::from_secs(seconds), "{value}");
    }
    for value in ["", "-1", "soon", "30s", " 30", "18446744073709551616"] {
        assert_eq!(warned("NIXL_TELEMETRY_MP_STALE_TTL", value).0.stale_ttl, Duration::from_secs(30), "{value}");
    }
}

#[test]
fn an_unknown_variable_is_told_once_and_changes_nothing() {
    let (got, warnings) = config(&[("NIXL_TELEMETRY_ENABLED", "1"), ("NIXL_TELEMETRY_BUFFERSIZE", "1")]);
    assert_eq!(got, Config::default());
    assert_eq!(warnings.len(), 2);
    assert!(warnings[0].contains("did you mean NIXL_TELEMETRY_BUFFER_SIZE?"), "{warnings:?}");
    assert!(warnings[1].contains("did you mean NIXL_TELEMETRY_ENABLE?"), "{warnings:?}");
    let many: Variables = (0..100).map(|number| (format!("TELERING_Z{number}"), OsString::new())).collect();
    let (_, warnings) = read(&many);
    assert_eq!(warnings.len(), 17);
    assert!(warnings[16].contains("84 more"), "{}", warnings[16]);
}

#[test]
fn values_that_are_not_utf8_are_told() {
    let bad = OsString::from_vec(b"4\xff".to_vec());
    for name in
        ["ENABLE", "EXPORTER", "BUFFER_SIZE", "RUN_INTERVAL", "ENABLED_METRICS", "HISTOGRAM_BUCKETS_US", "RANK_ENV"]
    {
        let (config, warnings) = read(&[(format!("NIXL_TELEMETRY_{name}"), bad.clone())]);
        let expected = if name == "ENABLE" { Enable::Off } else { Enable::Unset };
        assert_eq!(config, Config { enable: expected, ..Config::default() });
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        assert!(warnings[0].contains(r#""4\xff""#), "{warnings:?}");
    }
}

#[test]
fn long_and_wild_values_are_cut_and_escaped_in_warnings() {
    let (_, message) = warned("NIXL_TELEMETRY_ENABLE", &"\u{1b}[2J".repeat(10_000));
    assert!(message.len() < 1000 && !message.contains('\u{1b}'), "{message}");
}

const SUFFIXES: [&str; 12] = [
    "ENABLE",
    "DIR",
    "EXPORTER",
    "BUFFER_SIZE",
    "RUN_INTERVAL",
    "ENABLED_METRICS",
    "HISTOGRAM_BUCKETS_US",
    "RANK_ENV",
    "STAGING_RECORDS",
    "FILE_MODE",
    "PROMETHEUS_PORT",
    "NO_SUCH",
];

fn any_value() -> impl Strategy<Value = OsString> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40).prop_map(OsString::from_vec),
        "\\PC{0,40}".prop_map(OsString::from),
        any::<u64>().prop_map(|number| OsString::from(number.to_string())),
        "[0-9]{0,5}|0x[0-9a-f]{0,17}|[0-9.,e+ -]{0,20}|LOCAL_RANK|[a-z_*,]{0,20}".prop_map(OsString::from),
    ]
}

proptest! {
    #[test]
    fn any_environment_gives_settings_within_their_limits(
        set in prop::collection::vec((any::<bool>(), 0..SUFFIXES.len(), any_value()), 0..20),
        rank in any_value(),
        others in prop::collection::vec("(NIXL_TELEMETRY_|TELERING_|)\\PC{0,12}", 0..4),
    ) {
        let name = |ours, suffix: usize| format!("{}{}", if ours { "TELERING_" } else { "NIXL_TELEMETRY_" }, SUFFIXES[suffix]);
        let mut variables: Variables = set.into_iter().map(|(ours, suffix, value)| (name(ours, suffix), value)).collect();
        variables.push((String::from("LOCAL_RANK"), rank));
        variables.extend(others.into_iter().map(|name| (name, OsString::new())));
        let (config, warnings) = read(&variables);

        prop_assert!(config.buffer_size.is_power_of_two());
        prop_assert!((BUFFER_SIZE_MIN..=BUFFER_SIZE_MAX).contains(&config.buffer_size));
        prop_assert!(config.staging_records.is_power_of_two());
        prop_assert!((STAGING_RECORDS_MIN..=STAGING_RECORDS_MAX).contains(&config.staging_records));
        prop_assert!(RUN_INTERVAL_MS.contains(&(config.run_interval.as_millis() as u64)));
        prop_assert!(FILE_MODES.contains(&config.file_mode));
        prop_assert!(!config.histogram_bounds.is_empty() && Buckets::new(&config.histogram_bounds).is_ok());
        prop_assert!(config.dir.is_none_or(|dir| !dir.as_os_str().is_empty()));
        prop_assert!(config.rank.is_none_or(|rank| !rank.is_empty() && !rank.contains(char::is_control)));
        for message in warnings {
            prop_assert!(message.len() < 1000 && !message.contains(char::is_control), "{}", message);
        }
    }
}
