//! No file makes the look into it panic, read past its end or take memory by its numbers.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use super::{look_at, plugins_in};

fn library(folder: &Path) -> Vec<u8> {
    let source = folder.join("table.c");
    let text = "#include \"telering_plugin.h\"\nTELERING_PLUGIN_EXPORT const telering_plugin telering_exporter_plugin = \
                {1, sizeof(telering_plugin), \"n\", \"v\", 0, 0, 0, 0, 0};\n";
    fs::write(&source, text).expect("written");
    let out = folder.join("table.so");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings/c/include");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-s", "-I"]).arg(include).arg(&source).arg("-o").arg(&out);
    assert!(compiler.status().expect("cc is there").success());
    fs::read(out).expect("read")
}

fn look(bytes: &[u8]) -> Result<(), super::Refusal> {
    let mut file = tempfile::tempfile().expect("made");
    file.write_all(bytes).expect("written");
    look_at(file)
}

#[test]
fn damaged_libraries_are_refused_or_read_and_never_more() {
    let folder = tempfile::tempdir().expect("made");
    let whole = library(folder.path());
    assert_eq!(look(&whole), Ok(()));
    for cut in (0..whole.len()).step_by(97) {
        assert!(look(&whole[..cut]).is_err(), "{cut} bytes");
    }
    // Every byte of the header, and every eighth of the rest, with values that are extremes of what they could mean.
    let places = (0..64).chain((64..whole.len()).step_by(8));
    for place in places {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            let end = (place + 8).min(bytes.len());
            bytes[place..end].fill(value);
            let _ = look(&bytes);
        }
    }
}

#[test]
fn only_names_of_plug_ins_are_listed() {
    let folder = tempfile::tempdir().expect("made");
    for name in ["libtelering_exporter_b.so", "libtelering_exporter_a.so", "libtelering_exporter_.so", "other.so"] {
        fs::write(folder.path().join(name), "").expect("written");
    }
    fs::write(folder.path().join("libtelering_exporter_a b.so"), "").expect("written");
    assert_eq!(plugins_in(folder.path()), ["a", "b"]);
    assert!(plugins_in(&folder.path().join("missing")).is_empty());
}
