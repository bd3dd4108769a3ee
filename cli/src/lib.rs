//! The command `telering`: watch, read and inspect telemetry files.

mod args;
mod commands;
mod filter;
mod merge;
mod output;
mod source;
mod terminal;
mod time;

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::Parser as _;

/// Runs the command with these arguments, the first of which is its own name. Returns the exit status.
///
/// Arguments, output and signals are those of the process: call it as the last thing of one.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match args::Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        // Also a request for help or the version, which is no failure.
        Err(told) => {
            let _ = told.print();
            return told.exit_code() as u8;
        }
    };
    let outcome = match commands::run(arguments.command) {
        Ok(outcome) => outcome,
        // Who reads the output has seen enough: telering read DIR | head.
        Err(error) if terminal::is_broken_pipe(&error) => return commands::Outcome::Done as u8,
        Err(error) => {
            terminal::complain(terminal::causes(&error));
            commands::Outcome::NotDone
        }
    };
    // Only a program of Rust's own does this at its end.
    let _ = io::stdout().flush();
    outcome as u8
}
