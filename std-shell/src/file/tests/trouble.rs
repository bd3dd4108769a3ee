//! Files that others unlink, replace, truncate and resize under a living writer.

use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use telering_core::sync::Ordering;

use super::*;
use crate::file::life::{Check, Loss};
use crate::file::name;
use crate::file::probe::{Inode, is_nixl_size};
use crate::file::upkeep::Housekeeping;

const LONG: Duration = Duration::from_secs(61);

#[test]
fn a_name_unlinked_200_times_comes_back_as_the_same_inode_with_one_warning() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let mut file = make(directory.path(), "agent", &heard).unwrap();
    let (before, path) = (inode(file.path()), file.path().to_owned());
    let mut now = Instant::now();
    for _ in 0..200 {
        fs::remove_file(&path).unwrap();
        assert_eq!(file.check(), Check::Unlinked);
        assert_eq!(file.housekeep_at(now), Housekeeping::LinkedBack);
        assert_eq!(inode(&path), before);
        assert_eq!(file.check(), Check::Sound);
        now += LONG;
        assert_eq!(file.housekeep_at(now), Housekeeping::Nothing);
    }
    assert!(heard.only().contains("unlinked"));
}

#[test]
fn a_name_unlinked_again_and_again_is_linked_back_ten_times_ever_more_slowly() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let mut file = make(directory.path(), "agent", &heard).unwrap();
    let (before, path) = (inode(file.path()), file.path().to_owned());
    let mut now = Instant::now();
    let mut waited = Vec::new();
    for _ in 0..10 {
        fs::remove_file(&path).unwrap();
        let gone = now;
        while file.housekeep_at(now) != Housekeeping::LinkedBack {
            now += Duration::from_secs(1);
        }
        waited.push((now - gone).as_secs());
        now += Duration::from_millis(1);
    }
    assert_eq!(waited[..5], [0, 0, 1, 3, 7]);
    assert!(waited.is_sorted(), "{waited:?}");
    assert!(heard.only().contains("10 times"));
    // Then it moves to a name that nobody unlinks.
    fs::remove_file(&path).unwrap();
    assert_eq!(file.housekeep_at(now), Housekeeping::Moved);
    assert_eq!(file.path(), directory.path().join(format!("agent@{}", pid())));
    assert_eq!(inode(file.path()), before);
    assert!(!path.exists());
    assert!(heard.only().contains("agent@"));
}

#[test]
fn a_name_that_another_file_took_is_never_taken_back() {
    for other in [nixl_ring(4, 64, 16), b"notes".to_vec(), Vec::new()] {
        let directory = tempfile::tempdir().unwrap();
        let heard = Heard::new();
        let mut file = make(directory.path(), "agent", &heard).unwrap();
        let (before, path) = (inode(file.path()), file.path().to_owned());
        fs::write(directory.path().join("new"), &other).unwrap();
        fs::rename(directory.path().join("new"), &path).unwrap();
        // Somebody's file stands under the next name too.
        fs::write(directory.path().join(format!("agent@{}", pid())), "x").unwrap();
        assert_eq!(file.check(), Check::Unlinked);
        assert_eq!(file.housekeep(), Housekeeping::Moved);
        assert_eq!(file.path(), directory.path().join(format!("agent@{}@2", pid())));
        assert_eq!(inode(file.path()), before);
        assert_eq!(fs::read(&path).unwrap(), other);
        assert!(heard.only().contains("took its name"));
        assert_eq!(file.check(), Check::Sound);
        assert_eq!(file.housekeep(), Housekeeping::Nothing);
    }
}

#[test]
fn the_second_link_comes_back_too() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let mut file = make(directory.path(), "agent", &heard).unwrap();
    let hidden = directory.path().join(name::hidden("agent", pid(), 1));
    fs::remove_file(&hidden).unwrap();
    assert_eq!(file.check(), Check::Unlinked);
    assert_eq!(file.housekeep(), Housekeeping::Nothing);
    assert_eq!(inode(&hidden), inode(file.path()));
    assert_eq!(file.check(), Check::Sound);
    // Each of the two brings the other back; without both only the descriptor is left.
    fs::remove_file(file.path()).unwrap();
    fs::rename(&hidden, directory.path().join("elsewhere")).unwrap();
    assert_eq!(file.housekeep(), Housekeeping::LinkedBack);
    assert_eq!(inode(file.path()), inode(&directory.path().join("elsewhere")));
}

#[test]
fn a_file_without_any_name_is_made_anew() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("d");
    let heard = Heard::new();
    let mut file = make(&directory, "agent", &heard).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(file.check(), Check::Lost(Loss::Nameless));
    file.publish_anew(Loss::Nameless, |words| _ = format(words)).unwrap();
    assert_eq!(file.path(), directory.join("agent"));
    assert_eq!(file.check(), Check::Sound);
    assert!(heard.only().contains("removed"));
}

#[test]
fn a_file_truncated_or_resized_200_times_is_made_anew_and_its_host_lives() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let mut file = make(directory.path(), "agent", &heard).unwrap();
    let len = file.len;
    for round in 0..200 {
        let size = [0, 100, 4096, len - 1, len + 1, 1 << 20][round % 6];
        let path = file.path().to_owned();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size).unwrap();
        assert_eq!(file.check(), Check::Lost(Loss::Resized(size)));
        file.publish_anew(Loss::Resized(size), |words| _ = format(words)).unwrap();
        assert_eq!(file.path(), path, "nobody else has the name");
        assert_eq!(file.check(), Check::Sound);
        file.words().iter().for_each(|word| _ = word.fetch_add(0, Ordering::Relaxed));
    }
    assert!(heard.only().contains("changed its size"));
    let hidden = names_in(directory.path()).iter().filter(|name| name.starts_with('.')).count();
    assert_eq!(hidden, 1, "the second links of the lost ones are gone");
}

#[test]
fn a_nixl_agent_of_the_same_name_keeps_the_inode_that_it_resized() {
    for (version, capacity, event) in [(1, CAPACITY, 56), (1, 4096, 56), (2, 1024, 48), (4, 4096, 16), (4, 2, 16)] {
        for header in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let heard = Heard::new();
            let mut file = make(directory.path(), "agent", &heard).unwrap();
            let path = file.path().to_owned();
            // As NIXL does it: the same inode, resized, its header written a moment later.
            let theirs = fs::OpenOptions::new().write(true).read(true).open(&path).unwrap();
            theirs.set_len(40 + capacity * event).unwrap();
            if header {
                use std::os::unix::fs::FileExt as _;
                theirs.write_all_at(&nixl_ring(version, capacity, event)[..40], 0).unwrap();
            }
            let Check::Lost(loss) = file.check() else { panic!("the size is another") };
            file.publish_anew(loss, |words| _ = format(words)).unwrap();
            assert_eq!(file.path(), directory.path().join(format!("agent@{}", pid())));
            assert_eq!(Inode::of(&theirs.metadata().unwrap()), Inode::at(&path).unwrap().unwrap());
            assert_eq!(theirs.metadata().unwrap().nlink(), 1, "our second link is gone from it");
            let said = heard.only();
            assert!(said.contains("changed its size") && said.contains("NIXL agent of the same name"), "{said}");
        }
    }
}

/// The size alone tells that NIXL took an image's inode, so the two must never be as long as each other.
#[test]
fn no_ring_of_nixl_is_as_long_as_an_image() {
    for exponent in 0..=40 {
        for event in [56_u64, 48, 16] {
            let ring = 40 + (event << exponent);
            assert!(!ring.is_multiple_of(64), "{ring}");
            assert!(exponent > 24 || is_nixl_size(ring), "{ring}");
        }
    }
    for exponent in 1..=24 {
        let image = ImagePlan::new(1 << exponent, PartSet::ALL, TimeBase::Unix).unwrap().image_len();
        assert!(image.is_multiple_of(64) && !is_nixl_size(image), "{image}");
    }
}

#[test]
fn a_lost_file_whose_name_is_a_strangers_by_now_is_made_anew_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let mut file = make(directory.path(), "agent", &heard).unwrap();
    let plain = file.path().to_owned();
    // As a rotation of logs does it: the file is moved away, and something else comes under its name.
    fs::rename(&plain, directory.path().join("agent.1")).unwrap();
    fs::write(&plain, "notes").unwrap();
    fs::OpenOptions::new().write(true).open(directory.path().join("agent.1")).unwrap().set_len(0).unwrap();
    assert_eq!(file.check(), Check::Lost(Loss::Resized(0)));
    file.publish_anew(Loss::Resized(0), |words| _ = format(words)).unwrap();
    assert_eq!(file.path(), directory.path().join(format!("agent@{}", pid())));
    assert_eq!(file.check(), Check::Sound);
    assert_eq!(fs::read_to_string(plain).unwrap(), "notes");
    let said = heard.only();
    assert!(said.contains("no telemetry file") && said.contains("agent@"), "{said}");
}

#[test]
fn a_file_that_cannot_be_made_anew_is_tried_again_later() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("d");
    let heard = Heard::new();
    let mut file = make(&directory, "agent", &heard).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    fs::write(&directory, "in the way").unwrap();
    assert!(file.publish_anew(Loss::Nameless, |_| ()).is_err());
    assert_eq!(file.check(), Check::Lost(Loss::Nameless));
    assert_eq!(file.housekeep(), Housekeeping::Nothing);
    fs::remove_file(&directory).unwrap();
    file.publish_anew(Loss::Nameless, |words| _ = format(words)).unwrap();
    assert_eq!(file.check(), Check::Sound);
}

#[test]
fn a_descriptor_that_the_host_closed_is_noticed_and_its_number_left_alone() {
    // In a process of its own: a child that another test forks just now would share the lock for a moment.
    let Some((_, directory)) = order() else {
        let directory = tempfile::tempdir().unwrap();
        let test = "trouble::a_descriptor_that_the_host_closed_is_noticed_and_its_number_left_alone";
        let output = in_process(test, "go", directory.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    };
    let heard = Heard::new();
    let mut file = make(&directory, "agent", &heard).unwrap();
    let number = file.holding.as_ref().unwrap().file.file().as_raw_fd();
    let other = tempfile::tempfile().unwrap();
    // The host closes what it didn't open, and the number becomes another file's.
    // SAFETY: dup2 on two open descriptors; the number's owner is told below that it lost it.
    assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), number) }, number);
    assert_eq!(file.check(), Check::Lost(Loss::DescriptorClosed));
    assert!(file.words().is_empty());
    file.publish_anew(Loss::DescriptorClosed, |words| _ = format(words)).unwrap();
    assert_eq!(file.path(), directory.join("agent"));
    drop(file);
    // SAFETY: asks whether a number is open.
    assert_ne!(unsafe { libc::fcntl(number, libc::F_GETFD) }, -1, "still the other file's");
    // SAFETY: opened by dup2 above, closed once.
    unsafe { libc::close(number) };
}
