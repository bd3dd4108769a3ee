//! Labels: the names and values that tell one series from another.

use std::fmt::{self, Write};

/// The labels of one agent's series, in the order in which they are written.
///
/// Names are constants of ours; values are any text. Order counts for comparisons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels(Vec<(&'static str, String)>);

impl Labels {
    /// No labels.
    #[must_use]
    pub const fn new() -> Labels {
        Labels(Vec::new())
    }

    /// The same with one label more, behind the others. A name that is there already gets the new value.
    ///
    /// # Panics
    /// If the name is none that Prometheus takes: letters, digits and `_`, no digit first.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Labels {
        assert!(is_label_name(name), "{name:?} can't be the name of a label");
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(label) => label.1 = value,
            None => self.0.push((name, value)),
        }
        self
    }

    /// The value of a label.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The labels as they stand between the braces of a line, without them.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.iter() {
            if !text.is_empty() {
                text.push(',');
            }
            // Writing to a String can't fail.
            let _ = write_label(&mut text, name, value);
        }
        text
    }
}

fn is_label_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// One label: `name="value"`.
pub(super) fn write_label(out: &mut (impl Write + ?Sized), name: &str, value: &str) -> fmt::Result {
    out.write_str(name)?;
    out.write_str("=\"")?;
    write_escaped(out, value)?;
    out.write_char('"')
}

/// The text format escapes three characters of a value and takes all others as they are, control characters too.
fn write_escaped(out: &mut (impl Write + ?Sized), value: &str) -> fmt::Result {
    let mut rest = value;
    while let Some(at) = rest.find(['\\', '"', '\n']) {
        out.write_str(&rest[..at])?;
        out.write_str(match rest.as_bytes()[at] {
            b'\\' => "\\\\",
            b'"' => "\\\"",
            _ => "\\n",
        })?;
        rest = &rest[at + 1..];
    }
    out.write_str(rest)
}
