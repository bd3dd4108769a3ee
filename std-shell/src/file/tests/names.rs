//! Agent names that would leave the directory, collide, or be too long.

use super::*;
use crate::file::name::{self, NameError};

#[test]
fn every_name_stays_inside_the_directory_and_has_a_file_of_its_own() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("d");
    let heard = Heard::new();
    let names = ["a/b", "a_b", "..", "../../etc/x", "/abs", "a\nb", "a\0b", "größe", "a@1", "-", "."];
    let files: Vec<_> = names.iter().map(|agent| make(&directory, agent, &heard).unwrap()).collect();
    for (agent, file) in names.iter().zip(&files) {
        assert_eq!(file.path().parent(), Some(directory.as_path()), "{agent:?}");
        let encoded = file.path().file_name().unwrap().to_str().unwrap();
        assert_eq!(name::decode(encoded).as_deref(), Some(*agent));
    }
    let mut inodes: Vec<_> = files.iter().map(|file| inode(file.path())).collect();
    inodes.sort_unstable();
    inodes.dedup();
    assert_eq!(inodes.len(), names.len());
    assert_eq!(names_in(outer.path()), ["d"]);
    assert_eq!(names_in(&directory).len(), 2 * names.len());
    assert!(heard.take().is_empty());
}

#[test]
fn an_empty_and_a_too_long_name_make_no_file_and_no_directory() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("d");
    let heard = Heard::new();
    let error = make(&directory, "", &heard).err().unwrap();
    assert!(matches!(error, FileError::Name(NameError::Empty)), "{error}");
    let error = make(&directory, &"x".repeat(300), &heard).err().unwrap();
    assert!(error.to_string().contains("300 bytes"), "{error}");
    assert!(!directory.exists());
}
