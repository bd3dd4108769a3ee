//! Producers killed at any moment: their files open, hold nothing that was not recorded, and the next run
//! takes the name.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod acceptance;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use acceptance::{Dice, Judge, Talking, agent, drain, names_in, order, process, transfer};
use telering::core::names;
use telering::file::clean;
use telering::reader::{Follower, Item, Liveness, Positions, Reader};

/// Not a test of its own: the busy producer that the others kill. Before it records a transfer it writes down
/// its number where the kill can't undo it.
#[test]
fn a_busy_producer() {
    let Some((settings, directory)) = order() else { return };
    let (buffer, interval) = settings.split_once(' ').unwrap();
    let agent = agent("busy")
        .dir(directory.join("files"))
        .buffer_size(buffer.parse().unwrap())
        .run_interval(Duration::from_millis(interval.parse().unwrap()))
        .build();
    println!("\nPATH {}", agent.path().unwrap().display());
    let log = fs::File::options().write(true).create(true).truncate(true).open(directory.join("log")).unwrap();
    // Ends by itself, should nobody kill it.
    let start = Instant::now();
    for number in 1.. {
        log.write_all_at(&u64::to_le_bytes(number), 0).unwrap();
        agent.record_transfer(&transfer(number));
        if number == 1000 {
            assert!(agent.flush_now(Duration::from_secs(60)));
            println!("FLUSHED");
        }
        if number % 65536 == 0 && start.elapsed() > Duration::from_secs(60) {
            return;
        }
    }
}

/// A directory with a producer that is started again and again under one name.
struct Scene {
    outer: tempfile::TempDir,
    dice: Dice,
    kills: u64,
    events: u64,
    follower: Option<Follower>,
    followed: Judge,
    resets: Vec<u64>,
    lives: BTreeSet<u64>,
}

impl Scene {
    fn files(&self) -> PathBuf {
        self.outer.path().join("files")
    }

    fn name(&self) -> PathBuf {
        self.files().join("busy")
    }

    fn recorded(&self) -> u64 {
        let bytes = fs::read(self.outer.path().join("log")).unwrap_or_default();
        bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// What a half-done clean-up leaves.
    fn remove_some(&mut self) {
        match self.dice.below(6) {
            0 => _ = fs::remove_file(self.name()),
            1 => {
                for name in names_in(&self.files()).iter().filter(|name| name.starts_with('.')) {
                    fs::remove_file(self.files().join(name)).unwrap();
                }
            }
            2 => {
                for removal in clean::plan(&self.files()).unwrap() {
                    if self.dice.below(2) == 0 {
                        assert!(clean::remove(&removal).unwrap());
                    }
                }
            }
            _ => {}
        }
    }

    /// One life of the producer. `early` kills it at any moment from its very start on.
    fn round(&mut self, early: bool) {
        let buffer = [64, 256, 4096, 1 << 16][self.dice.below(4) as usize];
        let interval = [1, 5, 100][self.dice.below(3) as usize];
        // Told apart from the last life's by its inode: a life that is killed early makes no file.
        let inode = |path: &Path| fs::metadata(path).map(|metadata| metadata.ino()).ok();
        let before = inode(&self.name());
        let _ = fs::remove_file(self.outer.path().join("log"));
        let mut producer =
            Talking::start(process("a_busy_producer", &format!("{buffer} {interval}"), self.outer.path()));
        if !early {
            let path = producer.hear("PATH ").expect("the producer starts");
            assert_eq!(Path::new(&path), self.name(), "the dead one's name is free");
            producer.hear("FLUSHED").expect("the producer goes on");
        }
        let life = Duration::from_micros(self.dice.below(if early { 8_000 } else { 30_000 }));
        let born = Instant::now();
        while born.elapsed() < life {
            self.follow(true);
            std::thread::sleep(Duration::from_micros(500));
        }
        producer.kill();
        self.kills += 1;
        self.follow(false);
        if !early {
            assert_ne!(inode(&self.name()), before, "a file of its own");
        }
        if inode(&self.name()).is_some() {
            self.look(early || inode(&self.name()) == before);
        }
    }

    /// The file that the dead producer left.
    fn look(&mut self, early: bool) {
        let mut reader = Reader::open(self.name()).unwrap();
        let mut judge = Judge::new();
        drain(&mut judge, |items| reader.read(items)).unwrap();
        assert_eq!(judge.foreign, 0, "{:?}", judge.first_foreign);
        assert_eq!(reader.counts().unverified, 0);
        let info = reader.info().unwrap();
        assert_eq!(info.liveness, Liveness::Dead);
        let Positions::Image { committed, .. } = info.positions else { panic!("an image") };
        assert_eq!(reader.counts().total(), committed - reader.start());
        self.lives.insert(info.instance.unwrap());
        if early {
            return;
        }
        let recorded = self.recorded();
        assert!(judge.highest <= recorded, "{} was read, {recorded} were recorded", judge.highest);
        assert!(judge.events > 0 && committed >= 4000, "what was flushed is there");
        self.events += judge.events;
        let flow = info.flow.unwrap();
        assert!(flow.recorded >= 4000 && flow.recorded <= 4 * recorded, "{flow:?}");
        let metrics = info.metrics.expect("totals survive their producer");
        let bytes = metrics.entry(names::TX_BYTES).unwrap();
        assert!((1000..=recorded).contains(&bytes.count) && bytes.last <= recorded, "{bytes:?} of {recorded}");
        assert!(bytes.sum <= recorded * (recorded + 1) / 2, "{bytes:?} of {recorded}");
    }

    /// Goes on with the follower that has been attached since the first life.
    fn follow(&mut self, living: bool) {
        if self.follower.is_none() {
            self.follower = Follower::open(self.name()).ok();
        }
        let Some(follower) = &mut self.follower else { return };
        follower.set_patience(Duration::from_secs(600));
        // A living producer may be as fast as we are.
        let mut looks = if living { 4 } else { u64::MAX };
        let others = drain(&mut self.followed, |items| {
            looks -= 1;
            if looks == 0 { Ok(0) } else { follower.poll(items) }
        });
        self.resets.extend(others.unwrap().iter().filter_map(|item| match item {
            Item::Reset { instance } => Some(instance.unwrap()),
            _ => None,
        }));
        assert_eq!(self.followed.foreign, 0, "{:?}", self.followed.first_foreign);
        assert_eq!(follower.counts().unverified, 0);
    }
}

fn kill_so_often(kills: u64) {
    let mut scene = Scene {
        outer: tempfile::tempdir().unwrap(),
        dice: Dice(0x9e37_79b9_7f4a_7c15),
        kills: 0,
        events: 0,
        follower: None,
        followed: Judge::new(),
        resets: Vec::new(),
        lives: BTreeSet::new(),
    };
    fs::create_dir(scene.files()).unwrap();
    let mut instances = BTreeSet::new();
    while scene.kills < kills {
        scene.remove_some();
        // Every fourth is killed while it starts.
        scene.round(scene.kills % 4 == 3);
        let now = scene.follower.as_ref().and_then(|follower| follower.reader().instance());
        instances.extend(now);
    }
    // One more, whose leavings nobody clears away.
    scene.round(false);
    instances.extend(scene.follower.as_ref().and_then(|follower| follower.reader().instance()));
    println!(
        "{} kills, {} events read, {} by the follower over {} files",
        scene.kills,
        scene.events,
        scene.followed.events,
        scene.resets.len() + 1
    );
    // The follower went on with each life that left a file, and said so once.
    let said: BTreeSet<u64> = scene.resets.iter().copied().collect();
    assert_eq!(said.len(), scene.resets.len(), "each new file is said once");
    assert!(scene.lives.is_subset(&instances), "the follower missed a file");
    assert!(scene.resets.len() as u64 >= kills / 2 && scene.followed.events > 0);

    // A restart that lives, then: what the dead left is planned for removal, all of it and nothing else.
    let living = agent("busy").dir(scene.files()).buffer_size(128).build();
    assert_eq!(living.path().unwrap(), scene.name());
    living.record_transfer(&transfer(1));
    assert!(living.flush_now(Duration::from_secs(60)));
    scene.follow(false);
    assert_eq!(scene.resets.last().copied(), Reader::open(scene.name()).unwrap().instance());
    fs::write(scene.files().join("notes"), "somebody's").unwrap();
    let mine = fs::metadata(scene.name()).unwrap().ino();
    let dead: Vec<_> = names_in(&scene.files())
        .into_iter()
        .filter(|name| name != "notes" && fs::metadata(scene.files().join(name)).unwrap().ino() != mine)
        .collect();
    let plan = clean::plan(&scene.files()).unwrap();
    let planned: Vec<_> = plan.iter().map(|removal| removal.path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(planned, dead);
    assert!(!dead.is_empty(), "the last lives left their second links");
    plan.iter().for_each(|removal| assert!(clean::remove(removal).unwrap()));
    assert_eq!(names_in(&scene.files()).len(), 3, "the living one's two names and the notes");
}

#[test]
fn a_killed_producers_file_holds_only_what_was_recorded_and_its_name_is_free() {
    kill_so_often(8);
}

#[test]
#[ignore = "takes half a minute: a hundred kills"]
fn a_hundred_killed_producers() {
    kill_so_often(100);
}
