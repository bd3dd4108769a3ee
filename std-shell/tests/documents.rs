//! The documents speak of things that are there.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// All sources that hold tests, in one string.
fn sources() -> String {
    let mut text = String::new();
    let mut folders: Vec<PathBuf> =
        ["core", "std-shell", "loom-tests", "bindings"].map(|name| root().join(name)).into();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("a readable folder").path()) {
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "py") {
                text += &fs::read_to_string(path).expect("a source file");
            }
        }
    }
    text
}

/// Texts between backticks, outside code blocks.
fn quoted(document: &str) -> Vec<&str> {
    let outside = document.split("```").step_by(2);
    outside.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_test_and_path_that_the_architecture_names_exists() {
    let document = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let sources = sources();
    let (mut tests, mut paths) = (0, 0);
    for name in quoted(&document) {
        let is_word = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if is_word && name.matches('_').count() > 2 {
            tests += 1;
            assert!(
                ["fn", "def"].iter().any(|keyword| sources.contains(&format!("{keyword} {name}("))),
                "docs/architecture.md names the test {name}, which is gone"
            );
        } else if name.contains('/') && !name.contains(' ') {
            paths += 1;
            let found = [root().join(name), root().join("std-shell/src").join(name)].iter().any(|path| path.exists());
            assert!(found, "docs/architecture.md names {name}, which is gone");
        }
    }
    assert!(tests > 15 && paths > 20, "{tests} tests and {paths} paths were found");
}
