//! One file per command.

mod clean;
mod completions;
mod demo;
mod inspect;
mod man;
mod read;
pub(crate) mod serve;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;

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

pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Read(arguments) => read::run(arguments),
        Command::Tail(mut arguments) => {
            arguments.follow = true;
            read::run(arguments)
        }
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Clean(arguments) => clean::run(&arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// The first Ctrl-C ends a command in good order, the second at once.
pub(crate) fn watch_signals(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(stop)))
            .context("cannot watch for signals")?;
    }
    Ok(())
}
