//! What is no plug-in for this host is refused before any of it runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use telering::Mode;

use crate::building::hostile;
use crate::{agent, transfers};

/// Chooses an exporter and returns the one warning.
fn warning_of(plugin: &str, folder: &Path) -> String {
    let (builder, warnings) = agent("host", plugin, folder);
    let agent = builder.build();
    assert_eq!(agent.mode(), Mode::Captured, "{plugin}");
    transfers(&agent, 1000);
    agent.close();
    let warnings = warnings.lock().expect("unpoisoned");
    assert_eq!(warnings.len(), 1, "{plugin}: {warnings:?}");
    assert!(
        warnings[0].ends_with("nothing is exported, and the transfers go on")
            || warnings[0].ends_with("nothing is exported")
    );
    warnings[0].clone()
}

#[test]
fn what_does_not_fit_is_refused_without_running_any_of_it() {
    let folder = tempfile::tempdir().expect("made");
    let path = |name: &str| folder.path().join(format!("libtelering_exporter_{name}.so"));
    fs::write(path("text"), "no library, but long enough to hold the header of one, if it were one").expect("written");
    fs::write(path("empty"), "").expect("written");
    fs::create_dir(path("folder")).expect("made");
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, path(name)).expect("made");
    link("nowhere", "dangling");
    link("libtelering_exporter_circle.so", "circle");
    link("/dev/zero", "device");
    assert!(Command::new("mkfifo").arg(path("pipe")).status().expect("runs").success());
    // Each would end this process if it was loaded.
    let aborts = |name: &str, options: &[&str]| hostile(folder.path(), name, &[options, &["-DABORTS"]].concat());
    aborts("old", &["-DVERSION=0"]);
    aborts("new", &["-DVERSION=99"]);
    aborts("small", &["-DSIZE=24"]);
    aborts("lying", &["-DSIZE=4096"]);
    aborts("neither", &["-DSIZE=8"]);
    aborts("nothing", &["-DSYMBOL=something_else"]);
    aborts("function", &["-DFUNCTION", "-Wno-unused-function"]);
    aborts("nixl", &["-DSYMBOL=something_else", "-DNIXL"]);
    let whole = fs::read(aborts("whole", &[])).expect("read");
    let changed = |name: &str, at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        fs::write(path(name), bytes).expect("written");
    };
    changed("machine", 18, 8);
    changed("order", 5, 3);
    changed("program", 16, 2);
    fs::write(path("cut"), &whole[..whole.len() / 2]).expect("written");
    fs::write(path("header"), &whole[..64]).expect("written");

    for (plugin, expected) in [
        ("text", "is no library"),
        ("empty", "is no library"),
        ("folder", "is no file"),
        ("pipe", "is no file"),
        ("dangling", "can't be read: No such file or directory"),
        ("circle", "can't be read: Too many levels of symbolic links"),
        ("device", "is no file"),
        ("old", "version 0 of the plug-in interface"),
        ("new", "version 99 of the plug-in interface, and this host has version 1"),
        ("small", "has a table of 24 bytes"),
        ("neither", "has a table of 8 bytes"),
        ("lying", "says that its table has 4096 bytes, and it has 64"),
        ("nothing", "does not define telering_exporter_plugin"),
        ("function", "something other than a constant table"),
        ("nixl", "is a telemetry exporter of NIXL's"),
        ("machine", "another kind of machine"),
        ("order", "another kind of machine"),
        ("program", "is no shared library"),
        ("cut", "is a damaged library"),
        ("header", "is a damaged library"),
    ] {
        let warning = warning_of(plugin, folder.path());
        assert!(warning.contains(expected), "{plugin}: {warning}");
        assert!(warning.contains(&format!("libtelering_exporter_{plugin}.so")), "{plugin}: {warning}");
    }
}

#[test]
fn only_the_file_of_the_name_is_opened() {
    // Known case 51.
    let folder = tempfile::tempdir().expect("made");
    hostile(folder.path(), "aborts", &["-DABORTS"]);
    hostile(folder.path(), "good", &[]);
    fs::write(folder.path().join("libtelering_exporter_text.so"), "text").expect("written");
    let (builder, warnings) = agent("host", "good", folder.path());
    let agent = builder.build();
    assert_eq!(agent.mode(), Mode::Exported);
    transfers(&agent, 1000);
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported), (4000, 4000));
    assert!(warnings.lock().expect("unpoisoned").is_empty());
}

#[test]
fn an_unknown_name_is_one_warning_that_lists_what_there_is() {
    let folder = tempfile::tempdir().expect("made");
    fs::write(folder.path().join("libtelering_exporter_csv.so"), "").expect("written");
    fs::write(folder.path().join("libtelemetry_exporter_doca2.so"), "").expect("written");
    let warning = warning_of("cvs", folder.path());
    for part in ["\"cvs\"", "BUFFER, NOP, prometheus, prometheus_mp, csv", "no libtelering_exporter_cvs.so in"] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    assert!(warning_of("doca2", folder.path()).contains("only a plug-in of NIXL's"));
    // A name is never a path, not even one that would lead to a file.
    fs::create_dir_all(folder.path().join("libtelering_exporter_a")).expect("made");
    fs::write(folder.path().join("libtelering_exporter_a/x.so"), "text").expect("written");
    fs::write(folder.path().join("libtelering_exporter_x.so"), "text").expect("written");
    assert!(warning_of("a/x", folder.path()).starts_with("there is no exporter"));
    for name in ["../x", "./x", "/etc/passwd", "a/../x", "x.so", "x\0", "x\n", "é", &"x".repeat(1000)] {
        let warning = warning_of(name, &folder.path().join("a"));
        assert!(warning.starts_with("there is no exporter"), "{warning}");
        assert!(warning.len() < 700 && !warning.contains('\n'), "{warning}");
    }
}

#[test]
fn a_folder_that_is_none_is_told_as_what_it_is() {
    let folder = tempfile::tempdir().expect("made");
    let missing = folder.path().join("missing");
    assert!(warning_of("csv", &missing).contains(&format!("there is no folder {}", missing.display())));
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let warning = warning_of("csv", &file);
    assert!(warning.contains(&format!("{} can't be looked into: Not a directory", file.display())), "{warning}");
}

#[test]
fn a_plug_in_may_lack_what_is_needed_and_bring_more_than_is_known() {
    let folder = tempfile::tempdir().expect("made");
    for (name, options) in [("opens-not", "-DOPEN=NULL"), ("takes-not", "-DEXPORT=NULL")] {
        hostile(folder.path(), name, &[options, "-DNO_CALLS", "-Wno-unused-function"]);
    }
    assert!(warning_of("opens-not", folder.path()).contains("its table has no function open"));
    assert!(warning_of("takes-not", folder.path()).contains("its table has no function export_events"));
    // Of a later version 1, whose table has grown at its end; and with no function that may be left out.
    hostile(folder.path(), "longer", &["-DLONGER"]);
    hostile(folder.path(), "shortest", &["-DNO_CALLS", "-Wno-unused-function"]);
    // A library of which this one needs a part that is not there.
    let part = folder.path().join("libpart.so");
    fs::rename(hostile(folder.path(), "part", &["-DSYMBOL=part"]), &part).expect("moved");
    hostile(folder.path(), "half", &["-Wl,--no-as-needed", part.to_str().expect("UTF-8")]);
    fs::remove_file(&part).expect("removed");
    assert!(warning_of("half", folder.path()).contains("can't be loaded: "));
    for name in ["longer", "shortest"] {
        let (builder, warnings) = agent(name, name, folder.path());
        let agent = builder.build();
        transfers(&agent, 1000);
        assert_eq!(agent.close().exported, 4000, "{name}");
        assert!(warnings.lock().expect("unpoisoned").is_empty());
    }
}

#[test]
fn a_folder_of_plug_ins_can_be_none() {
    let (builder, warnings) = agent("host", "csv", Path::new(""));
    let agent = builder.build();
    transfers(&agent, 10);
    let warnings = warnings.lock().expect("unpoisoned");
    assert!(warnings.len() == 1 && warnings[0].contains("TELERING_PLUGIN_DIR is set to no folder"), "{warnings:?}");
}

#[test]
fn a_strict_agent_does_not_start_without_its_plug_in() {
    let folder = tempfile::tempdir().expect("made");
    fs::write(folder.path().join("libtelering_exporter_text.so"), "text").expect("written");
    for name in ["text", "missing"] {
        let (builder, _) = agent("host", name, folder.path());
        let error = builder.strict(true).try_build().expect_err("nothing to load");
        assert!(error.to_string().contains(name), "{error}");
    }
}
