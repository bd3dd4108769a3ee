//! What `source::scan` makes of a directory.

#![allow(clippy::unwrap_used)]

mod material;

use std::fs;
use std::os::unix::fs::symlink;

use material::{AGENT, NixlFile, TestImage};
use telering::reader::{Layout, Liveness, NixlLayout};
use telering::source::scan;

#[test]
fn telemetry_is_found_and_everything_else_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    NixlFile::new(NixlLayout::L3, 64).write_to(&at("b ring"));
    fs::write(at("a_image"), TestImage::new(64, 9).bytes()).unwrap();
    fs::write(at(".a_image.1.telering"), TestImage::new(64, 9).bytes()).unwrap();
    fs::write(at("notes.txt"), "some text that is longer than a header of forty bytes").unwrap();
    fs::write(at("empty"), "").unwrap();
    fs::create_dir(at("inside")).unwrap();
    NixlFile::new(NixlLayout::L3, 64).write_to(&at("inside/ring"));
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    symlink(at("b ring"), at("link")).unwrap();
    symlink(at("fifo"), at("link_to_fifo")).unwrap();
    symlink(at("nothing"), at("loose")).unwrap();

    let scan = scan(directory.path()).unwrap();
    let found: Vec<_> = scan.found.iter().map(|found| (found.agent.as_str(), found.kind, found.liveness)).collect();
    assert_eq!(
        found,
        [
            (AGENT, Layout::Image { major: 1, minor: 0 }, Liveness::Dead),
            ("b ring", Layout::Nixl(NixlLayout::L3), Liveness::Unknown),
        ]
    );
    let ignored: Vec<_> = scan
        .ignored
        .iter()
        .map(|ignored| (ignored.path.file_name().unwrap().to_str().unwrap(), ignored.reason.as_str()))
        .collect();
    assert_eq!(
        ignored,
        [
            ("empty", "the file is empty"),
            ("fifo", "a FIFO"),
            ("link", "a symbolic link"),
            ("link_to_fifo", "a symbolic link"),
            ("loose", "a symbolic link"),
            ("notes.txt", "no telemetry header"),
        ]
    );
}

#[test]
fn a_directory_that_is_not_there_is_an_error_with_its_name() {
    let error = scan("/nowhere/at/all").unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/at/all: cannot list"), "{error}");
}
