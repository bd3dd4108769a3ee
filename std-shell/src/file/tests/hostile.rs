//! Directories and names that don't want a telemetry file.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use super::*;

/// A file is refused at once, with an error that names the path, and nothing is left in the directory.
fn is_refused(directory: &Path, what: &str) {
    let heard = Heard::new();
    let before = names_in(directory);
    let started = Instant::now();
    let error = make(directory, "agent", &heard).err().expect("refused").to_string();
    assert!(started.elapsed() < Duration::from_secs(1), "no hang");
    assert!(error.contains(what) && error.contains(directory.join("agent").to_str().unwrap()), "{error}");
    assert_eq!(names_in(directory), before);
    assert!(heard.take().is_empty(), "the caller tells the error, nobody else");
}

#[test]
fn a_symbolic_link_is_refused_and_its_target_untouched() {
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("victim");
    // The worst targets: an empty file, and one that would be replaced under its own name.
    for content in [String::new(), "precious".to_owned()] {
        fs::write(&victim, &content).unwrap();
        let link = directory.path().join("agent");
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        is_refused(directory.path(), "a symbolic link");
        assert_eq!(fs::read_to_string(&victim).unwrap(), content);
        fs::remove_file(link).unwrap();
    }
    std::os::unix::fs::symlink(directory.path().join("nowhere"), directory.path().join("agent")).unwrap();
    is_refused(directory.path(), "a symbolic link");
}

#[test]
fn a_fifo_is_refused_without_waiting_for_its_other_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = CString::new(directory.path().join("agent").as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is a NUL-terminated string that lives through the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o644) }, 0);
    is_refused(directory.path(), "a FIFO");
}

#[test]
fn a_directory_a_socket_and_a_foreign_file_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    fs::create_dir(&path).unwrap();
    is_refused(directory.path(), "a directory");
    fs::remove_dir(&path).unwrap();
    let socket = UnixListener::bind(&path).unwrap();
    is_refused(directory.path(), "a socket");
    drop(socket);
    fs::remove_file(&path).unwrap();
    for foreign in [&b"x"[..], &[b'#'; 40], &[0xff; 9000]] {
        fs::write(&path, foreign).unwrap();
        is_refused(directory.path(), "no telemetry file");
        assert_eq!(fs::read(&path).unwrap(), foreign);
    }
}

#[test]
fn a_directory_that_is_a_file_is_an_error_that_names_it() {
    let outer = tempfile::tempdir().unwrap();
    let path = outer.path().join("file");
    fs::write(&path, "x").unwrap();
    let error = make(&path, "agent", &Heard::new()).err().unwrap().to_string();
    assert!(error.contains(path.to_str().unwrap()) && error.contains("NIXL_TELEMETRY_DIR"), "{error}");
    let error = make(&path.join("below"), "agent", &Heard::new()).err().unwrap().to_string();
    assert!(error.contains("can't be made"), "{error}");
}

#[test]
fn a_read_only_directory_is_an_error_and_stays_as_it_was() {
    let heard = Heard::new();
    let check = |directory: &Path| {
        let error = make(directory, "agent", &heard).err().unwrap().to_string();
        assert!(error.contains(directory.to_str().unwrap()), "{error}");
        assert!(names_in(directory).is_empty());
    };
    if rustix::process::geteuid().is_root() {
        // Permissions don't stop root; a read-only mount does.
        check(Tmpfs::new("size=1m,ro").path());
    } else {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
        check(directory.path());
    }
    assert!(heard.take().is_empty());
}

#[test]
fn a_full_tmpfs_is_an_error_that_names_path_and_bytes_and_leaves_nothing() {
    if !may_mount("a_full_tmpfs_is_an_error") {
        return;
    }
    let tmpfs = Tmpfs::new("size=64k");
    let heard = Heard::new();
    let large = ImagePlan::new(1 << 20, PartSet::ALL, TimeBase::Unix).unwrap().image_len();
    let error = create(tmpfs.path(), "agent", large, FILE_MODE_DEFAULT, &heard.warner, |_| panic!("never mapped"));
    let error = error.err().unwrap();
    assert!(matches!(error, FileError::NoRoom { wanted, .. } if wanted == large));
    let error = error.to_string();
    assert!(
        error.contains(&large.to_string()) && error.contains(tmpfs.path().join("agent").to_str().unwrap()),
        "{error}"
    );
    assert!(names_in(tmpfs.path()).is_empty());
    // There is room for a small one, and it is there to the last byte.
    let file = make(tmpfs.path(), "agent", &heard).unwrap();
    file.words().iter().for_each(|word| _ = word.fetch_add(0, telering_core::sync::Ordering::Relaxed));
}

#[test]
fn a_file_over_the_limit_of_the_process_is_an_error_and_no_signal() {
    if let Some((_, directory)) = order() {
        let error = make(&directory, "agent", &Heard::new()).err().unwrap().to_string();
        assert!(error.contains("ulimit -f") && error.contains(&plan().image_len().to_string()), "{error}");
        assert!(names_in(&directory).is_empty());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -f 8 && exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    set_order(
        &mut shell,
        "hostile::a_file_over_the_limit_of_the_process_is_an_error_and_no_signal",
        "go",
        directory.path(),
    );
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
fn where_fallocate_does_not_work_zeros_are_written() {
    let file = tempfile::tempfile().unwrap();
    crate::file::create::reserve(&file, 200_000, false).unwrap();
    let metadata = file.metadata().unwrap();
    assert_eq!(metadata.len(), 200_000);
    assert!(metadata.blocks() * 512 >= 200_000, "not sparse");
}
