//! The headers and the code say the same: every function with its arguments, every structure with its fields, every
//! status.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use telering::exporter::plugin::abi;
use telering_c::Status;
use telering_c::exports::{agent, backend, numbers, transfer};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The header without its comments.
fn header() -> String {
    let mut text = fs::read_to_string(here("include/telering.h")).expect("read");
    while let Some(start) = text.find("/*") {
        let end = start + text[start..].find("*/").expect("every comment ends") + 2;
        text.replace_range(start..end, " ");
    }
    text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// Name and type of an argument of C, as Rust has it.
fn of_c(argument: &str) -> (String, String) {
    let argument = argument.trim();
    let name: String = argument.chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let name: String = name.chars().rev().collect();
    let mut kind = argument[..argument.len() - name.len()].trim().to_owned();
    let pointers = kind.matches('*').count();
    let constant = kind.starts_with("const ");
    kind = kind.replace("const ", "").replace('*', "").trim().to_owned();
    let kind = match kind.as_str() {
        "uint64_t" | "telering_agent" | "telering_transfer" | "telering_backend" => "u64",
        "uint32_t" => "u32",
        "telering_status" => "i32",
        "size_t" => "usize",
        "char" => "c_char",
        "telering_options" => "Options",
        "telering_counts" => "Counts",
        "telering_total" => "Total",
        "telering_transfer_telemetry" => "TransferTelemetry",
        "telering_backend_event" => "BackendEvent",
        other => panic!("a type that this test doesn't know: {other}"),
    };
    let pointer = if constant { "*const " } else { "*mut " }.repeat(pointers);
    (name, format!("{pointer}{kind}"))
}

type Functions = BTreeMap<String, (Vec<(String, String)>, String)>;

fn functions_of_c() -> Functions {
    let text = header();
    let mut functions = Functions::new();
    for statement in text.split(';') {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let statement = statement.rsplit(['{', '}']).next().unwrap_or_default().trim();
        let Some((before, arguments)) = statement.split_once('(') else { continue };
        if before.contains("typedef") {
            continue;
        }
        let (name, result) = of_c(before);
        let arguments = arguments.trim_end_matches(')');
        let arguments = if arguments == "void" { Vec::new() } else { arguments.split(',').map(of_c).collect() };
        functions.insert(name, (arguments, result));
    }
    functions
}

fn functions_of_rust() -> Functions {
    let mut functions = Functions::new();
    for entry in fs::read_dir(here("src/exports")).expect("a folder") {
        let text = fs::read_to_string(entry.expect("read").path()).expect("read");
        for part in text.split("#[unsafe(no_mangle)]").skip(1) {
            let part = part.split('{').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            let part = part.strip_prefix("pub ").expect("public").trim_start_matches("unsafe ");
            let part = part.strip_prefix("extern \"C\" fn ").expect("of C");
            let (name, rest) = part.split_once('(').expect("arguments");
            let (arguments, result) = rest.rsplit_once(") -> ").expect("a result");
            let argument = |argument: &str| {
                let (name, kind) = argument.split_once(": ").expect("a type");
                (name.trim().to_owned(), kind.trim().to_owned())
            };
            let arguments = arguments.split(',').map(str::trim).filter(|text| !text.is_empty()).map(argument).collect();
            functions.insert(name.to_owned(), (arguments, result.trim().replace("Status", "i32")));
        }
    }
    functions
}

#[test]
fn the_header_declares_exactly_the_functions_that_there_are() {
    let (c, rust) = (functions_of_c(), functions_of_rust());
    assert!(c.len() > 30, "{}", c.len());
    for (name, signature) in &rust {
        assert_eq!(c.get(name), Some(signature), "{name}: telering.h and the code differ");
    }
    let only_c: Vec<_> = c.keys().filter(|name| !rust.contains_key(*name)).collect();
    assert!(only_c.is_empty(), "declared and not there: {only_c:?}");
}

/// Lines of C that compile only if a structure is laid out as ours.
macro_rules! layout {
    ($out:ident, $c:literal, $rust:ty, $($field:ident)*) => {
        let _ = writeln!($out, "_Static_assert(sizeof({}) == {}, \"size of {}\");", $c, size_of::<$rust>(), $c);
        $(
            let (name, offset) = (stringify!($field), offset_of!($rust, $field));
            let _ = writeln!($out, "_Static_assert(offsetof({}, {name}) == {offset}, \"{}.{name}\");", $c, $c);
        )*
    };
}

fn compiles(source: &str) -> bool {
    let folder = tempfile::tempdir().expect("made");
    let file = folder.path().join("layout.c");
    fs::write(&file, source).expect("written");
    let compiler = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(here("include"))
        .arg(&file)
        .status();
    compiler.expect("cc is there").success()
}

#[test]
fn every_structure_is_laid_out_as_the_headers_say() {
    let mut c = String::from("#include \"telering.h\"\n#include \"telering_plugin.h\"\n");
    layout!(c, "telering_options", agent::Options, size enable capture_telemetry ignore_environment strict dir exporter
        plugin_dir metrics rank buffer_size run_interval_ms staging_records close_patience_ms file_mode reserved
        on_warning on_warning_user);
    layout!(c, "telering_counts", numbers::Counts, recorded exported lost_staging lost_exporter lost_interrupted
        lost_backend lost_closing);
    layout!(c, "telering_total", numbers::Total, sum count last last_us);
    layout!(c, "telering_transfer_telemetry", transfer::TransferTelemetry, start_us post_duration_us xfer_duration_us
        total_bytes descriptor_count);
    layout!(c, "telering_backend_event", backend::BackendEvent, timestamp_us value name);
    layout!(c, "telering_plugin_event", abi::Event, timestamp_us value id category group reserved name);
    layout!(c, "telering_plugin_agent", abi::Agent, size name rank hostname host instance pid started_us
        histogram_bounds histogram_bounds_count warn warn_context);
    layout!(c, "telering_plugin_total", abi::Total, sum count last last_us id category name);
    layout!(c, "telering_plugin_histogram", abi::Histogram, sum buckets id reserved);
    layout!(c, "telering_plugin_totals", abi::Totals, size now_us recorded exported lost_staging lost_exporter
        lost_interrupted lost_backend lost_closing names_changed dynamic_overflow refused file_trouble totals
        totals_count histograms histograms_count errors errors_count);
    layout!(c, "telering_plugin_failure", abi::Failure, size lost message);
    layout!(c, "telering_plugin", abi::Table, abi_version size name version open export_events publish housekeep close);
    let _ = writeln!(c, "_Static_assert(TELERING_PLUGIN_ABI_VERSION == {}, \"version\");", abi::ABI_VERSION);
    let _ = writeln!(c, "_Static_assert(TELERING_PLUGIN_GONE == {}, \"gone\");", abi::GONE);
    for (name, status) in [
        ("OK", Status::OK),
        ("IN_PROGRESS", Status::IN_PROGRESS),
        ("NIXL_ERR_INVALID_PARAM", Status::INVALID_PARAM),
        ("NIXL_ERR_NO_TELEMETRY", Status::NO_TELEMETRY),
        ("ERR_INVALID_HANDLE", Status::INVALID_HANDLE),
        ("ERR_FORKED", Status::FORKED),
        ("ERR_LIMIT", Status::LIMIT),
        ("ERR_INTERNAL", Status::INTERNAL),
        ("ERR_NOT_STARTED", Status::NOT_STARTED),
        ("ERR_TIMEOUT", Status::TIMEOUT),
        ("ERR_BUFFER_TOO_SMALL", Status::BUFFER_TOO_SMALL),
    ] {
        let _ = writeln!(c, "_Static_assert(TELERING_{name} == {}, \"{name}\");", status.0);
        assert_ne!(status.text(), c"unknown status", "{name}");
    }
    for failure in telering::Status::ALL {
        let name = failure.text();
        let _ = writeln!(c, "_Static_assert(TELERING_{name} == {}, \"{name}\");", failure.code());
        let text = Status::of(failure).text().to_str().expect("ASCII");
        assert!(text == name || text.starts_with(&format!("{name}:")), "{text}");
    }
    assert!(compiles(&c), "the compiler says where");
    assert!(!compiles(&format!("{c}_Static_assert(sizeof(telering_total) == 33, \"planted\");\n")));
}
