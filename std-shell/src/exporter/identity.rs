//! Who writes a telemetry file: what this process knows about itself.

use std::fs;

use telering_core::image::Identity;

/// Name and version of this library, as images carry it.
pub(crate) const WRITER: &str = concat!("telering ", env!("CARGO_PKG_VERSION"));

/// One agent of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub(crate) agent: String,
    /// Counter of agents within the process.
    pub(crate) agent_instance: u64,
    /// Empty where there is none.
    pub(crate) rank: String,
    pub(crate) hostname: String,
    pub(crate) pid: u64,
    /// Clock ticks between the boot and the start of the process, 0 unknown.
    pub(crate) process_start: u64,
    /// The boot's UUID, 0 unknown.
    pub(crate) boot_id: [u8; 16],
    pub(crate) uid: u64,
}

impl Who {
    /// An agent of this process. What the operating system doesn't tell stays empty or 0.
    pub(crate) fn of_this_process(agent: &str, agent_instance: u64, rank: &str) -> Who {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Who {
            agent: agent.to_owned(),
            agent_instance,
            rank: rank.to_owned(),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id().into(),
            process_start: start_of(&read("/proc/self/stat")).unwrap_or(0),
            boot_id: uuid_of(&read("/proc/sys/kernel/random/boot_id")).unwrap_or_default(),
            uid: rustix::process::getuid().as_raw().into(),
        }
    }

    pub(crate) fn as_identity(&self) -> Identity<'_> {
        Identity {
            pid: self.pid,
            process_start: self.process_start,
            boot_id: self.boot_id,
            agent_instance: self.agent_instance,
            uid: self.uid,
            writer: WRITER,
            hostname: &self.hostname,
            agent: &self.agent,
            rank: &self.rank,
        }
    }
}

/// Field 22 of `/proc/PID/stat`. The second field is the program's name in brackets and may hold anything.
fn start_of(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn uuid_of(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().chars().filter(|&character| character != '-').collect();
    (digits.len() == 32).then(|| u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_behind_any_program_name() {
        let rest = " S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 0 0";
        assert_eq!(start_of(&format!("7 (sh){rest}")), Some(123_456));
        assert_eq!(start_of(&format!("7 (a b) c) 9 (){rest}")), Some(123_456));
        assert_eq!(start_of("7 (sh) S 1"), None);
        assert_eq!(start_of(""), None);
    }

    #[test]
    fn a_boot_id_is_a_uuid_or_unknown() {
        assert_eq!(uuid_of("00112233-4455-6677-8899-aabbccddeeff\n").unwrap()[..3], [0, 0x11, 0x22]);
        assert_eq!(uuid_of("no uuid"), None);
        assert_eq!(uuid_of(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_knows_itself() {
        let who = Who::of_this_process("a", 3, "");
        assert_eq!(who.pid, u64::from(std::process::id()));
        assert!(who.process_start > 0 && who.boot_id != [0; 16] && !who.hostname.is_empty());
    }
}
