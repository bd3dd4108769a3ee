//! The command `telering`: watch, read and inspect telemetry files.

mod args;
mod commands;
mod filter;
mod merge;
mod output;
mod source;
mod terminal;
mod time;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match commands::run(args::Arguments::parse().command) {
        Ok(outcome) => outcome.into(),
        // Who reads the output has seen enough: telering read DIR | head.
        Err(error) if terminal::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(terminal::causes(&error));
            commands::Outcome::NotDone.into()
        }
    }
}
