//! Values of the environment: two names for each, and a warning for each that can't be used.

use super::capacity::Limits;
use super::known::{self, NIXL, OURS};
use super::parse::{NumberFault, whole_number};
use crate::warn::{Warning, WarningKind, shown};
use std::ffi::OsString;
use std::ops::RangeInclusive;

/// A variable that is set.
pub(super) struct Setting {
    /// Its whole name.
    pub(super) variable: String,
    pub(super) value: OsString,
}

/// The environment, and what was found wrong with it so far.
pub(super) struct Environment<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
    pub(super) warnings: Vec<Warning>,
}

impl<'a> Environment<'a> {
    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<OsString>) -> Environment<'a> {
        Environment { lookup, warnings: Vec::new() }
    }

    pub(super) fn warn(&mut self, message: String) {
        self.warnings.push(Warning::new(WarningKind::Config, message));
    }

    /// Warns of a value: what is wrong with it, and what happens instead.
    pub(super) fn warn_of(&mut self, setting: &Setting, text: &str) {
        self.warn(format!("{}={}: {text}", setting.variable, shown(&setting.value)));
    }

    /// A variable under the name given.
    pub(super) fn exactly(&self, variable: &str) -> Option<Setting> {
        let value = (self.lookup)(variable)?;
        Some(Setting { variable: String::from(variable), value })
    }

    /// A setting: our variable if it is set, else NIXL's. What ours says hides NIXL's even when it is empty or
    /// wrong: nobody who sets it means the other.
    pub(super) fn setting(&self, suffix: &str) -> Option<Setting> {
        let ours = self.exactly(&format!("{OURS}{suffix}"));
        if known::is_ours_alone(suffix) {
            return ours;
        }
        ours.or_else(|| self.exactly(&format!("{NIXL}{suffix}")))
    }

    /// A setting that has to be text; else a warning that says what happens instead.
    pub(super) fn text(&mut self, suffix: &str, instead: &str) -> Option<(Setting, String)> {
        let setting = self.setting(suffix)?;
        self.text_of(setting, instead)
    }

    /// The value as text; else a warning that says what happens instead.
    pub(super) fn text_of(&mut self, setting: Setting, instead: &str) -> Option<(Setting, String)> {
        match setting.value.to_str().map(String::from) {
            Some(text) => Some((setting, text)),
            None => {
                self.warn_of(&setting, &format!("that is not UTF-8; {instead}"));
                None
            }
        }
    }

    /// A number within a range, else the default.
    pub(super) fn number(&mut self, suffix: &str, range: RangeInclusive<u64>, unit: &str, default: u64) -> u64 {
        let (from, to) = (range.start(), range.end());
        let instead = format!("the range is {from} to {to} {unit}; the default, {default}, is used instead");
        let Some((setting, text)) = self.text(suffix, &instead) else { return default };
        match whole_number(&text) {
            Ok(number) if range.contains(&number) => return number,
            Ok(_) => self.warn_of(&setting, &instead),
            Err(fault) => self.warn_of_fault(&setting, fault, &instead),
        }
        default
    }

    /// The size of a ring.
    pub(super) fn capacity(&mut self, suffix: &str, limits: Limits) -> u64 {
        let Limits { noun, max, default, .. } = limits;
        let instead = format!("the range is 1 to {max} {noun}; the default, {default}, is used instead");
        let Some((setting, text)) = self.text(suffix, &instead) else { return default };
        match whole_number(&text) {
            Ok(requested) => {
                let (capacity, note) = limits.fit(requested);
                if let Some(note) = note {
                    self.warn_of(&setting, &note);
                }
                capacity
            }
            Err(fault) => {
                self.warn_of_fault(&setting, fault, &instead);
                default
            }
        }
    }

    pub(super) fn warn_of_fault(&mut self, setting: &Setting, fault: NumberFault, instead: &str) {
        self.warn_of(setting, &format!("{}; {instead}", fault.as_str()));
    }
}
