//! `telering clean`.

use std::io::{self, Write as _};

use anyhow::Context as _;
use telering::file::clean;

use super::Outcome;
use crate::args::CleanArguments;
use crate::terminal;

pub(super) fn run(arguments: &CleanArguments) -> anyhow::Result<Outcome> {
    let directory = &arguments.directory;
    let plan =
        clean::plan(directory).with_context(|| format!("cannot read the directory {}", terminal::path(directory)))?;
    let mut out = io::stdout().lock();
    if plan.is_empty() {
        writeln!(out, "nothing to clean in {}", terminal::path(directory))?;
        return Ok(Outcome::Done);
    }
    let mut outcome = Outcome::Done;
    for removal in &plan {
        let (path, reason) = (terminal::path(&removal.path), removal.reason);
        if !arguments.yes {
            writeln!(out, "would remove {path}: {reason}")?;
            continue;
        }
        match clean::remove(removal) {
            Ok(true) => writeln!(out, "removed {path}: {reason}")?,
            Ok(false) => writeln!(out, "kept {path}: it changed since it was looked at")?,
            Err(error) => {
                terminal::complain(format_args!("cannot remove {path}: {error}"));
                outcome = Outcome::Wrong;
            }
        }
    }
    if !arguments.yes {
        writeln!(out, "\nNothing was touched. To remove {}: add --yes", count(plan.len()))?;
    }
    Ok(outcome)
}

fn count(files: usize) -> String {
    if files == 1 { "this file".to_owned() } else { format!("these {files} files") }
}
