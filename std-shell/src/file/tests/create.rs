//! Making files where all is well, or where telemetry stands already.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use super::*;
use crate::file::lock::{LockState, lock_state};
use crate::file::name;
use crate::file::probe::{Content, content};

#[test]
fn a_new_file_is_whole_owned_and_has_two_names() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("made/for/you");
    let heard = Heard::new();
    let file = make(&directory, "agent", &heard).unwrap();
    assert_eq!(file.path(), directory.join("agent"));
    assert_eq!(names_in(&directory), [format!(".agent.{}.telering", pid()), "agent".to_owned()]);
    let metadata = file.path().symlink_metadata().unwrap();
    assert_eq!((metadata.len(), metadata.nlink()), (plan().image_len(), 2));
    assert!(metadata.blocks() * 512 >= metadata.len(), "every block is reserved: {}", metadata.blocks());
    assert_eq!(file.words().len() as u64, plan().image_len() / 8);
    let opened = fs::File::open(file.path()).unwrap();
    assert!(matches!(content(&opened, metadata.len()).unwrap(), Content::Image(head) if head.instance == 77));
    assert!(matches!(lock_state(file.path()).unwrap(), LockState::Held));
    drop(file);
    assert!(matches!(lock_state(&directory.join("agent")).unwrap(), LockState::Free));
    assert!(heard.take().is_empty());
}

#[test]
fn chosen_permissions_are_set_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    for (agent, mode) in [("a", 0o666), ("b", 0o600), ("c", 0o400)] {
        let initialise = |words: &[AtomicU64]| _ = format(words);
        let file = create(directory.path(), agent, plan().image_len(), mode, &heard.warner, initialise).unwrap();
        assert_eq!(file.path().metadata().unwrap().permissions().mode() & 0o7777, mode);
    }
}

#[test]
fn a_restart_takes_the_name_and_the_predecessor_keeps_its_hidden_one() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let first = make(directory.path(), "agent", &heard).unwrap();
    let before = inode(first.path());
    drop(first);
    let second = make(directory.path(), "agent", &heard).unwrap();
    assert_eq!(second.path(), directory.path().join("agent"));
    assert_ne!(inode(second.path()), before);
    let hidden = directory.path().join(name::hidden("agent", pid(), 1));
    assert_eq!(inode(&hidden), before, "what the first one recorded is still there");
    assert_eq!(inode(&directory.path().join(name::hidden("agent", pid(), 2))), inode(second.path()));
    assert!(heard.take().is_empty());
}

#[test]
fn an_empty_file_of_the_same_user_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    fs::write(directory.path().join("agent"), "").unwrap();
    let file = make(directory.path(), "agent", &heard).unwrap();
    assert_eq!(file.path(), directory.path().join("agent"));
    assert!(heard.take().is_empty());
}

#[test]
fn two_writers_of_one_name_in_one_process_get_two_files() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let first = make(directory.path(), "agent", &heard).unwrap();
    assert!(heard.take().is_empty());
    let second = make(directory.path(), "agent", &heard).unwrap();
    assert_eq!(second.path(), directory.path().join(format!("agent@{}", pid())));
    let said = heard.only();
    assert!(said.contains(second.path().to_str().unwrap()) && said.contains("another agent of this name"), "{said}");
    let third = make(directory.path(), "agent", &heard).unwrap();
    assert_eq!(third.path(), directory.path().join(format!("agent@{}@2", pid())));
    assert!(inode(first.path()) != inode(second.path()) && inode(second.path()) != inode(third.path()));
    // The name of a writer that left is free again.
    drop(second);
    let fourth = make(directory.path(), "agent", &heard).unwrap();
    assert_eq!(fourth.path(), directory.path().join(format!("agent@{}", pid())));
}

#[test]
fn eight_threads_that_make_one_name_at_once_get_eight_files() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let files: Vec<_> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| make(directory.path(), "agent", &heard).unwrap())).collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    let mut inodes: Vec<_> = files.iter().map(|file| inode(file.path())).collect();
    inodes.sort_unstable();
    inodes.dedup();
    assert_eq!(inodes.len(), 8);
    assert!(names_in(directory.path()).contains(&"agent".to_owned()));
}

#[test]
fn any_ring_of_nixl_keeps_its_name_and_its_bytes() {
    let rings = [
        nixl_ring(1, 64, 56),
        nixl_ring(2, 64, 48),
        nixl_ring(2, 64, 16),
        nixl_ring(3, 2, 16),
        nixl_ring(4, 4096, 16),
        // A version to come, a ring that is being made, and one that somebody cut.
        nixl_ring(5, 64, 24),
        vec![0; 40 + 64 * 16],
        nixl_ring(1, 64, 56)[..1000].to_vec(),
    ];
    for ring in rings {
        let directory = tempfile::tempdir().unwrap();
        let heard = Heard::new();
        let path = directory.path().join("agent");
        fs::write(&path, &ring).unwrap();
        let file = make(directory.path(), "agent", &heard).unwrap();
        assert_eq!(file.path(), directory.path().join(format!("agent@{}", pid())));
        assert_eq!(fs::read(&path).unwrap(), ring);
        assert!(heard.only().contains("telemetry file of NIXL's"));
    }
}

#[test]
fn an_image_of_another_version_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let path = make(directory.path(), "agent", &heard).unwrap().path().to_owned();
    let mut bytes = fs::read(&path).unwrap();
    let extension = telering_core::layout::image::extension_offset(CAPACITY).unwrap() as usize;
    bytes[extension + 8] = 2;
    fs::write(&path, &bytes).unwrap();
    let file = make(directory.path(), "agent", &heard).unwrap();
    assert_ne!(file.path(), path);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert!(heard.only().contains("another version"));
}

#[test]
fn what_a_dead_maker_left_is_removed_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let at = |name: String| directory.path().join(name);
    let stale = [at(name::temporary("agent", 1, 1)), at(name::temporary("other", 4_000_000, 7))];
    fs::write(&stale[0], "").unwrap();
    fs::write(&stale[1], vec![0; 5000]).unwrap();
    let live = at(name::temporary("agent", 2, 1));
    fs::write(&live, "").unwrap();
    let holder = fs::File::open(&live).unwrap();
    holder.lock().unwrap();
    let foreign = at(name::temporary("agent", 3, 1));
    fs::write(&foreign, "somebody else's notes").unwrap();
    let similar = at(".agent.telering-new".to_owned());
    fs::write(&similar, "").unwrap();
    let link = at(name::temporary("agent", 5, 1));
    std::os::unix::fs::symlink(&similar, &link).unwrap();

    let _file = make(directory.path(), "agent", &heard).unwrap();
    assert!(stale.iter().all(|path| !path.exists()));
    assert!(live.exists() && foreign.exists() && similar.exists() && link.is_symlink());
    assert!(heard.take().is_empty());
}

#[test]
fn a_directory_whose_lock_is_held_is_waited_for_one_second_at_the_most() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let holder = fs::File::open(directory.path()).unwrap();
    holder.lock().unwrap();
    let started = Instant::now();
    let file = make(directory.path(), "agent", &heard).unwrap();
    assert!(started.elapsed() >= Duration::from_millis(950), "{:?}", started.elapsed());
    assert_eq!(file.path(), directory.path().join("agent"));
    assert!(heard.only().contains("over a second"));
    drop(holder);
    let started = Instant::now();
    let _file = make(directory.path(), "b", &heard).unwrap();
    assert!(started.elapsed() < Duration::from_millis(900), "free again: {:?}", started.elapsed());
}
