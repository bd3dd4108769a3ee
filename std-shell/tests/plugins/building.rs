//! Builds plug-ins in C for the tests, each into a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A folder with `libtelering_exporter_NAME.so`, built from a file of this project.
pub(crate) fn built(folder: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let library = folder.join(format!("libtelering_exporter_{name}.so"));
    let status = Command::new("cc")
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"])
        .args(options)
        .arg("-I")
        .arg(root().join("bindings/c/include"))
        .arg(root().join(source))
        .arg("-o")
        .arg(&library)
        .status()
        .expect("a C compiler, cc, is there");
    assert!(status.success(), "{name} compiles");
    library
}

pub(crate) fn hostile(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    built(folder, name, "std-shell/tests/plugins/hostile.c", options)
}

/// The plug-in of examples/telering_exporter_panics.rs, which cargo built beside this test.
pub(crate) fn panics(folder: &Path) {
    let test = std::env::current_exe().expect("known");
    let profile = test.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST");
    let library = profile.join("examples/libtelering_exporter_panics.so");
    std::fs::copy(&library, folder.join("libtelering_exporter_panics.so"))
        .unwrap_or_else(|error| panic!("{}: {error}: run the tests without --test", library.display()));
}
