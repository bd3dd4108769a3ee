//! `telering inspect`: what a file is, who writes it, what it holds and what it lost.

mod json;
mod look;
mod table;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Outcome;
use crate::args::InspectArguments;
use crate::terminal;
use look::{Look, Together};

pub(super) fn run(arguments: &InspectArguments) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::Done;
    let mut looks = Vec::new();
    for path in &arguments.paths {
        let (files, of_directory) = match files_of(path) {
            Ok(files) => files,
            Err(error) => {
                terminal::complain(terminal::causes(&error));
                outcome = Outcome::NotDone;
                continue;
            }
        };
        for file in files {
            // One image that is damaged doesn't hide the others.
            for looked in if arguments.scan { Look::inside(&file) } else { vec![Look::at(&file, None)] } {
                match looked {
                    Ok(seen) => looks.push(seen),
                    Err(error) => {
                        terminal::complain(terminal::causes(&error));
                        // A foreign file in a directory is nobody's fault.
                        outcome = if of_directory { outcome } else { Outcome::NotDone };
                    }
                }
            }
        }
    }
    if looks.is_empty() {
        if outcome == Outcome::Done {
            terminal::complain("there is no telemetry file. Give the directory that NIXL_TELEMETRY_DIR names");
        }
        return Ok(Outcome::NotDone);
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    if arguments.json {
        for look in &looks {
            writeln!(out, "{}", json::line(look))?;
        }
    } else {
        let mut table = table::Table::new(arguments.utc);
        for look in &looks {
            table.file(&mut out, look)?;
        }
        if let Some(together) = Together::of(&looks) {
            table.together(&mut out, &together)?;
        }
    }
    out.flush()?;
    Ok(outcome)
}

/// The file itself, or the telemetry files of a directory.
fn files_of(path: &Path) -> anyhow::Result<(Vec<PathBuf>, bool)> {
    if !path.is_dir() {
        return Ok((vec![path.to_owned()], false));
    }
    let scan = telering::source::scan(path)?;
    for ignored in scan.ignored {
        terminal::complain(format_args!("left out: {}: {}", terminal::path(&ignored.path), ignored.reason));
    }
    Ok((scan.found.into_iter().map(|found| found.path).collect(), true))
}
