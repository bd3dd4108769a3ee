//! What may reach a terminal, and how it looks there.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

/// Text from a file or from the environment, with every control character escaped.
///
/// Names of agents and files come from others. Printed as they are, they could move the cursor,
/// change the title or hide what stands before them.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_unsafe(character) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Control characters, and those that turn the direction of the text around them.
fn is_unsafe(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A path for a message: like [`escape`], and bytes that are no UTF-8 as `\xff`.
pub(crate) fn path(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(&escape(chunk.valid()));
        for byte in chunk.invalid() {
            // Writing into a String does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `512 B`, `1.5 KiB`, `3.2 GiB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} EiB")
}

/// An error and its causes in one line. A cause that the error already tells is not told twice.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// `1 event`, `2 events`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let many = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{many}")
}

/// One line on the error output. A closed error output is no reason to stop.
pub(crate) fn complain(message: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "telering: {message}");
}

/// Whether an error says that nobody reads the output any more.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether the standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Colours, or nothing where nobody would see them.
#[derive(Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Colours on a terminal, unless `NO_COLOR` is set (<https://no-color.org>) or the terminal is dumb.
    pub(crate) fn for_stdout() -> Paint {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Paint(is_terminal() && !refused && !dumb)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        assert_eq!(escape("plain é"), "plain é");
        assert_eq!(escape("a\x1b[2J\n\u{9b}b"), "a\\u{1b}[2J\\n\\u{9b}b");
        assert_eq!(escape("\u{202e}txt"), "\\u{202e}txt");
    }

    #[test]
    fn numbers_for_people() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        for (bytes, text) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (u64::MAX, "16.0 EiB")] {
            assert_eq!(bytes_text(bytes), text);
        }
    }

    #[test]
    fn a_path_that_is_no_text_is_shown_by_its_bytes() {
        let name = std::ffi::OsStr::from_bytes(b"/tmp/\xff\x07");
        assert_eq!(path(Path::new(name)), "/tmp/\\xff\\u{7}");
    }
}
