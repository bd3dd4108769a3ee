//! Removing what dead writers left, and nothing else.

use super::*;
use crate::file::clean::{plan as plan_removals, remove};
use crate::file::name;

#[test]
fn only_images_of_dead_writers_are_planned_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let at = |name: &str| directory.path().join(name);
    let live = make(directory.path(), "live", &heard).unwrap();
    drop(make(directory.path(), "dead", &heard).unwrap());
    fs::write(at(&name::temporary("dead", 9, 1)), "").unwrap();
    for (name, bytes) in [("nixl", nixl_ring(4, 64, 16)), ("notes", b"text".to_vec()), ("empty", Vec::new())] {
        fs::write(at(name), bytes).unwrap();
    }
    std::os::unix::fs::symlink(at("dead"), at("link")).unwrap();
    fs::create_dir(at("below")).unwrap();
    let before = names_in(directory.path());

    let plan = plan_removals(directory.path()).unwrap();
    let planned: Vec<_> = plan.iter().map(|removal| removal.path.file_name().unwrap().to_str().unwrap()).collect();
    let mut expected = [name::hidden("dead", pid(), 1), name::temporary("dead", 9, 1), "dead".to_owned()];
    expected.sort();
    assert_eq!(planned, expected);
    assert_eq!(names_in(directory.path()), before, "a plan removes nothing");

    for removal in &plan {
        assert!(remove(removal).unwrap());
    }
    let left: Vec<_> = before.into_iter().filter(|name| !planned.contains(&name.as_str())).collect();
    assert_eq!(names_in(directory.path()), left);
    assert!(plan_removals(directory.path()).unwrap().is_empty());
    assert_eq!(live.path(), at("live"));
}

#[test]
fn a_name_that_was_taken_since_the_plan_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    drop(make(directory.path(), "agent", &heard).unwrap());
    let plan = plan_removals(directory.path()).unwrap();
    let visible = plan.iter().find(|removal| removal.path.ends_with("agent")).unwrap();
    // A restart, in between.
    let again = make(directory.path(), "agent", &heard).unwrap();
    assert!(!remove(visible).unwrap());
    assert!(again.path().exists());
    // Also if it is dead by now: it isn't what was planned.
    drop(again);
    assert!(!remove(visible).unwrap());
    fs::remove_file(&visible.path).unwrap();
    assert!(remove(visible).is_err(), "gone is said, not passed over");
}

#[test]
fn nothing_is_removed_while_the_directory_is_locked() {
    let directory = tempfile::tempdir().unwrap();
    drop(make(directory.path(), "agent", &Heard::new()).unwrap());
    let plan = plan_removals(directory.path()).unwrap();
    let holder = fs::File::open(directory.path()).unwrap();
    holder.lock().unwrap();
    assert!(remove(&plan[0]).is_err());
    assert!(plan[0].path.exists());
}
