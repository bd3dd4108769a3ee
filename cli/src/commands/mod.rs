//! One file per command.

mod clean;
mod completions;
mod demo;
mod inspect;
mod man;
mod read;

use std::process::ExitCode;

use crate::args::Command;

/// How a command ended. What the numbers mean stands in the help texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// All is well.
    Done,
    /// It ran, and found something wrong.
    Wrong,
    /// Something could not be done; the error output says what.
    NotDone,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome as u8)
    }
}

pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Read(arguments) => read::run(arguments),
        Command::Tail(mut arguments) => {
            arguments.follow = true;
            read::run(arguments)
        }
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Clean(arguments) => clean::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}
