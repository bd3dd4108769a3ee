//! A rank in a process of its own, set up by the environment alone, as engines are.

use std::io::{BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use telering::Telemetry;

use crate::acceptance::{Talking, order, process};
use crate::move_bytes;

/// Not a test of its own: a rank that does what it is told.
#[test]
fn a_rank() {
    let Some((name, _)) = order() else { return };
    let hear = |warning: &telering::warn::Warning| println!("\nWARNING {}", warning.message);
    let agent = Telemetry::builder(name).on_warning(hear).build();
    println!("\nREADY {:?}", agent.mode());
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("move", bytes) => {
                move_bytes(&agent, bytes.parse().unwrap());
                println!("MOVED");
            }
            ("where", _) => println!("ADDRESS {:?}", agent.prometheus_address()),
            ("fork", _) => fork(),
            other => panic!("{other:?}"),
        }
    }
    drop(agent);
    println!("ENDED");
}

/// A child that lives on for a minute and does nothing.
fn fork() {
    // SAFETY: the child calls nothing but what a signal handler may.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the same.
        unsafe {
            libc::alarm(60);
            loop {
                libc::pause();
            }
        }
    }
    println!("FORKED {child}");
}

pub(crate) struct Rank {
    pub(crate) talking: Talking,
}

/// How ranks are set up.
pub(crate) struct Job<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) port: u16,
    pub(crate) exporter: &'a str,
    pub(crate) ttl: &'a str,
}

impl<'a> Job<'a> {
    pub(crate) fn new(directory: &'a Path, port: u16) -> Job<'a> {
        Job { directory, port, exporter: "prometheus_mp", ttl: "30" }
    }

    pub(crate) fn command(&self, rank: usize) -> Command {
        let mut command = process("rank::a_rank", &format!("agent-{rank}"), self.directory);
        let foreign = |name: &str| name.starts_with("NIXL_") || name.starts_with("TELERING_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| foreign(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        command.env("NIXL_TELEMETRY_ENABLE", "y").env("NIXL_TELEMETRY_EXPORTER", self.exporter);
        command.env("NIXL_TELEMETRY_MULTIPROC_DIR", self.directory);
        command.env("NIXL_TELEMETRY_PROMETHEUS_PORT", self.port.to_string());
        command.env("NIXL_TELEMETRY_PROMETHEUS_LOCAL", "yes");
        command.env("NIXL_TELEMETRY_MP_STALE_TTL", self.ttl);
        command.env("LOCAL_RANK", rank.to_string());
        // A rank that was forgotten ends with this process.
        // SAFETY: prctl is one system call, which a child may make between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        command
    }

    pub(crate) fn start(&self, rank: usize) -> Rank {
        Rank { talking: Talking::start(self.command(rank)) }
    }
}

impl Rank {
    /// Waits until its agent is there; returns what it warned of.
    pub(crate) fn ready(&mut self) -> Vec<String> {
        let mut warnings = Vec::new();
        loop {
            let line = self.talking.hear("").expect("the rank ended early");
            if let Some(warning) = line.strip_prefix("WARNING ") {
                warnings.push(warning.to_owned());
            } else if line.starts_with("READY") {
                assert_eq!(line, "READY Exported");
                return warnings;
            }
        }
    }

    pub(crate) fn say(&mut self, words: &str, answer: &str) -> String {
        writeln!(self.talking.child.stdin.as_mut().unwrap(), "{words}").unwrap();
        self.talking.hear(answer).expect("the rank ended early")
    }

    pub(crate) fn move_bytes(&mut self, bytes: u64) {
        self.say(&format!("move {bytes}"), "MOVED");
    }

    pub(crate) fn serves(&mut self) -> bool {
        self.say("where", "ADDRESS ") != "None"
    }

    pub(crate) fn pid(&self) -> String {
        self.talking.child.id().to_string()
    }

    /// Ends it in good order.
    pub(crate) fn end(mut self) {
        drop(self.talking.child.stdin.take());
        assert!(self.talking.hear("ENDED").is_some());
        assert!(self.talking.child.wait().unwrap().success());
    }
}
