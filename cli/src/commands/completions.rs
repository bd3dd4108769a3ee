//! `telering completions`.

use std::io::{self, Write as _};

use clap::CommandFactory as _;

use super::Outcome;
use crate::args::{Arguments, CompletionsArguments};

pub(super) fn run(arguments: &CompletionsArguments) -> anyhow::Result<Outcome> {
    // Made in memory first: the generator panics on an output that fails.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "telering", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Outcome::Done)
}
