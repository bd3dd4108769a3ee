//! Warnings: the one way in which trouble with telemetry is told.
//!
//! Telemetry is a guest in other people's processes. Whatever goes wrong here ends in one clear sentence and
//! in less telemetry, never in an error, a panic or a stop of the host.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A setting has a value that can't be used as it stands.
    Config,
    /// A telemetry file couldn't be made, or somebody changed it.
    File,
    /// An exporter couldn't start or publish.
    Exporter,
    /// The clock is slower or less exact than hoped.
    Clock,
    /// The process forked; the child records nothing with its parent's agents.
    Fork,
    /// Something that was recorded had to be changed or refused.
    Recording,
}

impl WarningKind {
    /// The kind as a word: `config`, `file`, `exporter`, `clock`, `fork`, `recording`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            WarningKind::Config => "config",
            WarningKind::File => "file",
            WarningKind::Exporter => "exporter",
            WarningKind::Clock => "clock",
            WarningKind::Fork => "fork",
            WarningKind::Recording => "recording",
        }
    }
}

/// One warning: what it is about, and a sentence that says what happened and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// What the warning is about.
    pub kind: WarningKind,
    /// One line of text without control characters.
    pub message: String,
}

impl Warning {
    /// A warning. Control characters in the message are escaped.
    #[must_use]
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Warning {
        Warning { kind, message: escaped(message.into()) }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

/// What a program gives to hear of warnings itself.
pub type OnWarning = Arc<dyn Fn(&Warning) + Send + Sync>;

/// Tells warnings: to the program's callback, else to the `log` crate if a logger is installed, else as one
/// line on stderr. Clones share what was said already.
///
/// It takes no lock of its own, so a forked child may use it too.
#[derive(Clone, Default)]
pub struct Warner {
    callback: Option<OnWarning>,
    said: Arc<Said>,
}

impl fmt::Debug for Warner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Warner").field("callback", &self.callback.is_some()).finish_non_exhaustive()
    }
}

thread_local! {
    /// Set while this thread tells a warning: a callback whose own doing leads to another warning would
    /// otherwise call itself without end.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

impl Warner {
    /// A warner for one agent, with the program's callback if it gave one.
    #[must_use]
    pub fn new(callback: Option<OnWarning>) -> Warner {
        Warner { callback, said: Arc::default() }
    }

    /// Tells a warning. Never panics, whatever the callback or the logger does.
    pub fn warn(&self, kind: WarningKind, message: impl Into<String>) {
        self.tell(&Warning::new(kind, message));
    }

    /// Tells a warning the first time that it is called with this kind and key. Says whether it did.
    pub fn once(&self, kind: WarningKind, key: &'static str, message: impl Into<String>) -> bool {
        let first = self.said.first_time(kind, key);
        if first {
            self.warn(kind, message);
        }
        first
    }

    /// Tells good news to the `log` crate. What is `needed` goes to stderr when no logger is installed.
    pub(crate) fn note(&self, message: &str, needed: bool) {
        if log::max_level() != log::LevelFilter::Off {
            // A logger's panic must not reach the host.
            let told = catch_unwind(|| log::info!(target: "telering", "{message}"));
            std::mem::forget(told);
        } else if needed {
            to_stderr(message);
        }
    }

    /// Tells a warning that exists already, such as those of [`Config::from_env`](crate::config::Config::from_env).
    pub fn tell(&self, warning: &Warning) {
        if TELLING.replace(true) {
            return to_stderr(&warning.message);
        }
        // Nothing of ours is half changed when the callback or the logger panics.
        let told = catch_unwind(AssertUnwindSafe(|| match &self.callback {
            Some(callback) => callback(warning),
            None if log::max_level() != log::LevelFilter::Off => {
                log::warn!(target: "telering", "{}", warning.message);
            }
            None => to_stderr(&warning.message),
        }));
        TELLING.set(false);
        if let Err(panic) = told {
            to_stderr(&warning.message);
            // What was thrown may throw again when dropped.
            std::mem::forget(panic);
        }
    }
}

/// One line in one write. Not through std's lock: a child forked while another thread held it would hang.
fn to_stderr(message: &str) {
    let line = format!("telering: {message}\n");
    // Nobody is left to tell when stderr is closed.
    let _ = rustix::io::write(std::io::stderr().as_fd(), line.as_bytes());
}

/// Which warnings were told, as hashes of kind and key. 0 is a free place.
struct Said([AtomicU64; 64]);

impl Default for Said {
    fn default() -> Said {
        Said([const { AtomicU64::new(0) }; 64])
    }
}

impl Said {
    /// Notes a key. True for one caller only; true for all when there is no more room.
    fn first_time(&self, kind: WarningKind, key: &str) -> bool {
        let hash = hash_of(kind, key);
        for place in &self.0 {
            match place.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(there) if there == hash => return false,
                Err(_) => {}
            }
        }
        true
    }
}

/// FNV-1a, never 0. Keys are a handful of constants of ours: 64 bits tell them apart.
fn hash_of(kind: WarningKind, key: &str) -> u64 {
    let bytes = kind.as_str().bytes().chain([0]).chain(key.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)).max(1)
}

/// Characters that move a cursor, start a line or turn the direction of the text around them.
fn disturbs_a_terminal(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text with its control characters written as escapes.
pub(crate) fn escaped(text: String) -> String {
    if !text.contains(disturbs_a_terminal) {
        return text;
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        push_escaped(&mut safe, character);
    }
    safe
}

fn push_escaped(text: &mut String, character: char) {
    if disturbs_a_terminal(character) {
        text.extend(character.escape_default());
    } else {
        text.push(character);
    }
}

/// The most characters of a value that a warning shows.
const SHOWN_MAX: usize = 64;

/// A value from outside as a warning shows it: in quotes, escaped, and cut when it is long.
pub(crate) fn shown(value: impl AsRef<OsStr>) -> String {
    let bytes = value.as_ref().as_encoded_bytes();
    let mut text = String::from("\"");
    let mut pieces = 0;
    // Each piece is a character, or a byte that belongs to none.
    let mut push = |piece: Result<char, u8>| {
        pieces += 1;
        match piece {
            _ if pieces > SHOWN_MAX => return false,
            Ok(special @ ('"' | '\\')) => text.extend(['\\', special]),
            Ok(character) => push_escaped(&mut text, character),
            // Writing to a String can't fail.
            Err(byte) => drop(write!(text, "\\x{byte:02x}")),
        }
        true
    };
    let whole = bytes.utf8_chunks().all(|chunk| {
        chunk.valid().chars().all(|character| push(Ok(character)))
            && chunk.invalid().iter().all(|byte| push(Err(*byte)))
    });
    text.push('"');
    if !whole {
        let _ = write!(text, "... ({} bytes)", bytes.len());
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a poisoned lock fails the test")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt as _;
    use std::sync::Mutex;

    fn collecting() -> (Warner, Arc<Mutex<Vec<Warning>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&heard);
        (Warner::new(Some(Arc::new(move |warning: &Warning| sink.lock().unwrap().push(warning.clone())))), heard)
    }

    #[test]
    fn a_callback_hears_each_warning() {
        let (warner, heard) = collecting();
        warner.clone().warn(WarningKind::File, "no room\nin /dev/shm\u{1b}[31m\u{202e}");
        let heard = heard.lock().unwrap();
        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].kind, WarningKind::File);
        assert_eq!(heard[0].to_string(), "no room\\nin /dev/shm\\u{1b}[31m\\u{202e}");
    }

    #[test]
    fn once_is_once_per_kind_and_key_over_all_clones() {
        let (warner, heard) = collecting();
        let other = warner.clone();
        assert!(warner.once(WarningKind::Clock, "slow", "a"));
        assert!(!other.once(WarningKind::Clock, "slow", "b"));
        assert!(other.once(WarningKind::File, "slow", "c"));
        assert!(other.once(WarningKind::Clock, "jump", "d"));
        let said: Vec<_> = heard.lock().unwrap().iter().map(|warning| warning.message.clone()).collect();
        assert_eq!(said, ["a", "c", "d"]);
    }

    #[test]
    fn once_is_told_by_exactly_one_of_many_threads() {
        let (warner, heard) = collecting();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| warner.once(WarningKind::Fork, "child", "said"));
            }
        });
        assert_eq!(heard.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_panicking_callback_does_not_reach_the_host() {
        let warner = Warner::new(Some(Arc::new(|_: &Warning| panic!("the callback's own fault"))));
        warner.warn(WarningKind::Exporter, "first");
        warner.warn(WarningKind::Exporter, "second");
    }

    #[test]
    fn a_callback_that_warns_does_not_call_itself() {
        let calls = Arc::new(AtomicU64::new(0));
        let inner = Arc::clone(&calls);
        let slot: Arc<Mutex<Option<Warner>>> = Arc::default();
        let itself = Arc::clone(&slot);
        let warner = Warner::new(Some(Arc::new(move |_: &Warning| {
            inner.fetch_add(1, Ordering::Relaxed);
            let again = itself.lock().unwrap().clone();
            again.expect("set below").warn(WarningKind::Recording, "from within a callback");
        })));
        *slot.lock().unwrap() = Some(warner.clone());
        warner.warn(WarningKind::Recording, "from outside");
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn values_are_shown_quoted_escaped_and_cut() {
        assert_eq!(shown(""), r#""""#);
        assert_eq!(shown("a\"b\\c\n"), r#""a\"b\\c\n""#);
        assert_eq!(shown(OsStr::from_bytes(b"a\xff\x1bz")), r#""a\xff\u{1b}z""#);
        assert_eq!(shown("\n".repeat(64)), format!("\"{}\"", "\\n".repeat(64)));
        assert_eq!(shown("\n".repeat(65)), format!("\"{}\"... (65 bytes)", "\\n".repeat(64)));
        let long = shown("x".repeat(100_000));
        assert_eq!(long, format!("\"{}\"... (100000 bytes)", "x".repeat(64)));
    }

    proptest! {
        #[test]
        fn no_value_brings_control_characters_or_length(bytes: Vec<u8>) {
            let text = shown(OsStr::from_bytes(&bytes));
            prop_assert!(!text.contains(disturbs_a_terminal));
            prop_assert!(text.len() < 64 * 10 + 40, "{}", text.len());
        }

        #[test]
        fn no_message_brings_control_characters(message: String) {
            let warning = Warning::new(WarningKind::Config, message.clone());
            prop_assert!(!warning.message.contains(disturbs_a_terminal));
            prop_assert!(message.contains(disturbs_a_terminal) || message == warning.message);
        }
    }
}
