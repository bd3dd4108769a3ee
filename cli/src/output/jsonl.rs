//! One JSON object per line. Numbers are exact; with `strings` every 64-bit one is text.

use std::fmt::Write as _;
use std::io;

use telering::reader::Event;

use super::transfers::FinishedTransfer;
use super::{Notice, Output};
use crate::source::Label;

pub(super) struct Jsonl {
    several: bool,
    strings: bool,
    line: String,
}

impl Jsonl {
    pub(super) fn new(several: bool, strings: bool) -> Jsonl {
        Jsonl { several, strings, line: String::new() }
    }

    fn key(&mut self, key: &str) {
        self.line.push(if self.line.is_empty() { '{' } else { ',' });
        // Writing into a String does not fail, here and below.
        let _ = write!(self.line, "\"{key}\":");
    }

    fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        let _ = if self.strings { write!(self.line, "\"{value}\"") } else { write!(self.line, "{value}") };
    }

    /// An instance is a name, not a number to count with, and as a number most would be over 2^53.
    fn instance(&mut self, instance: Option<u64>) {
        self.key("instance");
        let _ = match instance {
            Some(instance) => write!(self.line, "\"{instance:016x}\""),
            None => write!(self.line, "null"),
        };
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        put_string(&mut self.line, text);
    }

    fn agent(&mut self, label: &Label) {
        self.text("agent", &label.agent);
    }

    fn end(&mut self, to: &mut dyn io::Write) -> io::Result<()> {
        self.line.push_str("}\n");
        let result = to.write_all(self.line.as_bytes());
        self.line.clear();
        result
    }
}

impl Output for Jsonl {
    fn begin(&mut self, _: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, to: &mut dyn io::Write, event: &Event, label: &Label) -> io::Result<()> {
        self.number("seq", event.seq);
        self.instance((event.instance != 0).then_some(event.instance));
        if let Some(us) = event.timestamp_us {
            self.number("timestamp_us", us);
            if label.since_boot {
                self.text("clock", "boot");
            }
        }
        if let Some(us) = event.observed_us {
            self.number("observed_us", us);
        }
        match event.known_category() {
            Some(category) => {
                self.key("category");
                let _ = write!(self.line, "\"{category}\"");
            }
            None => {
                self.key("category");
                self.line.push_str("null");
            }
        }
        self.text("event", event.name.as_str());
        self.number("value", event.value);
        self.agent(label);
        self.end(to)
    }

    fn notice(&mut self, to: &mut dyn io::Write, notice: Notice, label: &Label) -> io::Result<()> {
        match notice {
            Notice::Lost(count) => self.number("lost", count),
            Notice::Unverified(count) => self.number("unverified", count),
            Notice::Interrupted(count) => self.number("interrupted", count),
            Notice::Reset { instance } => {
                self.key("reset");
                self.line.push_str("true");
                self.instance(instance);
            }
        }
        if self.several {
            self.agent(label);
        }
        self.end(to)
    }

    fn transfer(&mut self, to: &mut dyn io::Write, transfer: &FinishedTransfer, label: &Label) -> io::Result<()> {
        self.number("start_us", transfer.start_us());
        self.number("end_us", transfer.end_us);
        if label.since_boot {
            self.text("clock", "boot");
        }
        self.text("op", transfer.operation);
        self.number("bytes", transfer.bytes);
        self.number("post_us", transfer.post_us);
        self.number("xfer_us", transfer.xfer_us);
        self.agent(label);
        self.end(to)
    }
}

/// A JSON string. Every control character is escaped, also those that JSON would allow (0x7f to 0x9f):
/// terminals obey some of them.
pub(crate) fn put_string(line: &mut String, text: &str) {
    line.push('"');
    for character in text.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            control if control.is_control() => {
                let _ = write!(line, "\\u{:04x}", u32::from(control));
            }
            plain => line.push(plain),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_reads_back_and_holds_no_control_character() {
        let all: String = (0..0x300).filter_map(char::from_u32).chain("\u{2028}\u{1f600}".chars()).collect();
        let mut line = String::new();
        put_string(&mut line, &all);
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), all);
        assert!(!line.chars().any(char::is_control));
    }
}
