//! Agent names as file names.
//!
//! A name may hold anything: `/`, `..`, a newline. Bytes outside `[A-Za-z0-9._-]`, and a dot in front, are
//! written as `%` and two upper-case hexadecimal digits. So a file never leaves its directory, two names never
//! share a file, and the name can be had back from the file. `@` and a leading dot never occur in an encoded
//! name: they are free for the names that we add to.

use std::fmt::Write as _;

/// Bytes of an encoded name at the most. With what we add it stays under 255, the limit of file systems.
pub const ENCODED_MAX: usize = 200;

/// Ending of the second link that every image has.
const HIDDEN: &str = ".telering";
/// Ending of a file that is being made.
const TEMPORARY: &str = ".telering-new";

/// Why an agent's name can't be a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    #[error("the agent name is empty; give the agent a name")]
    Empty,
    /// The name is too long.
    #[error(
        "the agent name takes {encoded} bytes as a file name, {ENCODED_MAX} are allowed; choose a shorter one \
         (letters, digits, '.', '_' and '-' take one byte, any other byte takes three)"
    )]
    TooLong {
        /// Bytes that the name takes.
        encoded: usize,
    },
}

/// The file name of an agent's telemetry file.
///
/// # Errors
/// [`NameError`] if the name is empty or takes more than [`ENCODED_MAX`] bytes.
///
/// # Example
/// ```
/// use telering::file::name::encode;
///
/// assert_eq!(encode("decode-3.worker_1").unwrap(), "decode-3.worker_1");
/// assert_eq!(encode("../etc/x").unwrap(), "%2E.%2Fetc%2Fx");
/// assert!(encode("").is_err());
/// ```
pub fn encode(agent: &str) -> Result<String, NameError> {
    if agent.is_empty() {
        return Err(NameError::Empty);
    }
    let plain =
        |at: usize, byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || (byte == b'.' && at > 0);
    // The length is counted first: a name of a gigabyte costs nothing.
    let encoded = agent.bytes().enumerate().map(|(at, byte)| if plain(at, byte) { 1 } else { 3 }).sum();
    if encoded > ENCODED_MAX {
        return Err(NameError::TooLong { encoded });
    }
    let mut name = String::with_capacity(encoded);
    for (at, byte) in agent.bytes().enumerate() {
        if plain(at, byte) {
            name.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    Ok(name)
}

/// The agent name behind an encoded one; `None` where [`encode`] would not have written it so.
#[must_use]
pub fn decode(encoded: &str) -> Option<String> {
    if encoded.len() > ENCODED_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
        } else if let [high, low, after @ ..] = rest {
            bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
            rest = after;
        } else {
            return None;
        }
    }
    let agent = String::from_utf8(bytes).ok()?;
    // One name, one spelling.
    (encode(&agent).as_deref() == Ok(encoded)).then_some(agent)
}

/// What a file name of ours says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileName {
    /// An image's name that readers look for.
    Visible {
        /// The agent.
        agent: String,
        /// The writer's process, where the plain name belonged to somebody else.
        pid: Option<u32>,
    },
    /// The second link of an image.
    Hidden {
        /// The agent.
        agent: String,
        /// The writer's process.
        pid: u32,
    },
    /// An image that is being made, or whose maker died.
    Temporary {
        /// The agent.
        agent: String,
        /// The writer's process.
        pid: u32,
    },
}

impl FileName {
    /// Reads a file name; `None` where no file of ours is named so.
    #[must_use]
    pub fn parse(name: &str) -> Option<FileName> {
        let Some(hidden) = name.strip_prefix('.') else {
            return match name.split_once('@') {
                Some((agent, owner)) => Some(FileName::Visible { agent: decode(agent)?, pid: Some(owner_pid(owner)?) }),
                None => Some(FileName::Visible { agent: decode(name)?, pid: None }),
            };
        };
        let parts = |rest: &str| {
            let (agent, owner) = rest.rsplit_once('.')?;
            Some((decode(agent)?, owner_pid(owner)?))
        };
        if let Some(rest) = hidden.strip_suffix(HIDDEN) {
            return parts(rest).map(|(agent, pid)| FileName::Hidden { agent, pid });
        }
        let (agent, pid) = parts(hidden.strip_suffix(TEMPORARY)?)?;
        Some(FileName::Temporary { agent, pid })
    }

    /// The agent whose file this is.
    #[must_use]
    pub fn agent(&self) -> &str {
        match self {
            FileName::Visible { agent, .. } | FileName::Hidden { agent, .. } | FileName::Temporary { agent, .. } => {
                agent
            }
        }
    }
}

/// Reads `PID` or `PID@N`.
fn owner_pid(owner: &str) -> Option<u32> {
    let number = |text: &str| {
        let canonical = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        canonical.then(|| text.parse::<u64>().ok()).flatten()
    };
    let (pid, count) = match owner.split_once('@') {
        Some((pid, count)) => (pid, Some(count)),
        None => (owner, None),
    };
    if let Some(count) = count {
        number(count)?;
    }
    u32::try_from(number(pid)?).ok()
}

/// `PID`, and from the second try on `PID@N`.
fn owner(pid: u32, attempt: u64) -> String {
    if attempt < 2 { pid.to_string() } else { format!("{pid}@{attempt}") }
}

/// The visible names of an agent, in the order in which they are tried: NAME, `NAME@PID`, `NAME@PID@2`, ...
pub(crate) fn visible(encoded: &str, pid: u32, attempt: u64) -> String {
    if attempt == 0 { encoded.to_owned() } else { format!("{encoded}@{}", owner(pid, attempt)) }
}

/// The second link of an image; attempts count from 1.
pub(crate) fn hidden(encoded: &str, pid: u32, attempt: u64) -> String {
    format!(".{encoded}.{}{HIDDEN}", owner(pid, attempt))
}

/// The name while an image is being made; attempts count from 1.
pub(crate) fn temporary(encoded: &str, pid: u32, attempt: u64) -> String {
    format!(".{encoded}.{}{TEMPORARY}", owner(pid, attempt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::path::{Component, Path};

    #[test]
    fn unsafe_names_stay_inside_the_directory_and_apart() {
        let names = [
            "a/b",
            "a_b",
            "..",
            "../../etc/x",
            "/abs",
            "a\nb",
            "a\0b",
            "über",
            "a@b",
            "a%2Fb",
            ".",
            "...",
            ".a",
            "%2Ea",
        ];
        let mut seen = HashSet::new();
        for agent in names {
            let encoded = encode(agent).unwrap();
            let components: Vec<_> = Path::new(&encoded).components().collect();
            assert!(matches!(components[..], [Component::Normal(_)]), "{agent:?} -> {encoded}");
            assert!(!encoded.starts_with('.') && !encoded.contains(['@', '/', '\0']), "{encoded}");
            assert_eq!(decode(&encoded).as_deref(), Some(agent));
            assert!(seen.insert(encoded), "two names share a file");
        }
    }

    #[test]
    fn empty_and_too_long_names_are_errors() {
        assert_eq!(encode(""), Err(NameError::Empty));
        assert!(encode(&"x".repeat(200)).is_ok());
        assert_eq!(encode(&"x".repeat(201)), Err(NameError::TooLong { encoded: 201 }));
        assert_eq!(encode(&"/".repeat(67)), Err(NameError::TooLong { encoded: 201 }));
        assert_eq!(encode(&"x".repeat(300)), Err(NameError::TooLong { encoded: 300 }));
    }

    #[test]
    fn the_longest_name_fits_into_a_file_system() {
        let longest = encode(&"x".repeat(200)).unwrap();
        for name in [
            visible(&longest, u32::MAX, u64::MAX),
            hidden(&longest, u32::MAX, u64::MAX),
            temporary(&longest, u32::MAX, u64::MAX),
        ] {
            assert!(name.len() <= 255, "{}", name.len());
        }
    }

    #[test]
    fn names_of_ours_are_told_from_names_of_others() {
        let agent = || "a.7".to_owned();
        assert_eq!(FileName::parse(&visible("a.7", 9, 0)), Some(FileName::Visible { agent: agent(), pid: None }));
        assert_eq!(FileName::parse(&visible("a.7", 9, 1)), Some(FileName::Visible { agent: agent(), pid: Some(9) }));
        assert_eq!(FileName::parse(&visible("a.7", 9, 3)), Some(FileName::Visible { agent: agent(), pid: Some(9) }));
        assert_eq!(FileName::parse(&hidden("a.7", 9, 1)), Some(FileName::Hidden { agent: agent(), pid: 9 }));
        assert_eq!(FileName::parse(&hidden("a.7", 9, 12)), Some(FileName::Hidden { agent: agent(), pid: 9 }));
        assert_eq!(FileName::parse(&temporary("a.7", 9, 2)), Some(FileName::Temporary { agent: agent(), pid: 9 }));
        for other in [
            ".bashrc",
            ".a.telering",
            ".a.x.telering",
            ".a.1.telering-old",
            "a@b",
            "a@",
            "a@1@",
            "a@01",
            "a b",
            "",
            ".",
            "..",
            ".a.1@0.telering",
            "%2e",
            "%41",
            "a%",
            "a%4",
            ".1.telering",
        ] {
            assert_eq!(FileName::parse(other), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_comes_back_from_its_file(agent in "\\PC{1,60}") {
            let encoded = encode(&agent);
            prop_assume!(encoded.is_ok());
            let encoded = encoded.unwrap();
            prop_assert!(encoded.len() <= ENCODED_MAX);
            prop_assert_eq!(decode(&encoded), Some(agent));
        }

        #[test]
        fn different_names_never_share_a_file(one in any::<String>(), other in any::<String>()) {
            if let (Ok(a), Ok(b)) = (encode(&one), encode(&other)) {
                prop_assert_eq!(one == other, a == b);
            }
        }

        #[test]
        fn no_file_name_makes_the_parser_panic(name in any::<String>()) {
            if let Some(parsed) = FileName::parse(&name) {
                prop_assert!(encode(parsed.agent()).is_ok());
            }
        }
    }
}
