//! `telering man`.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_mangen::Man;

use super::Outcome;
use crate::args::{Arguments, ManArguments};
use crate::terminal;

pub(super) fn run(arguments: &ManArguments) -> anyhow::Result<Outcome> {
    match &arguments.dir {
        Some(directory) => write_pages(directory)?,
        None => io::stdout().write_all(&page(Arguments::command())?)?,
    }
    Ok(Outcome::Done)
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}

fn write_pages(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", terminal::path(directory)))?;
    let mut command = Arguments::command();
    // Gives every command its full name, telering-read.
    command.build();
    let parts: Vec<_> = command.get_subcommands().filter(|part| part.get_name() != "help").cloned().collect();
    for page_of in std::iter::once(command).chain(parts) {
        let name = page_of.get_display_name().unwrap_or("telering").to_owned();
        let path = directory.join(format!("{name}.1"));
        fs::write(&path, page(page_of)?).with_context(|| format!("cannot write {}", terminal::path(&path)))?;
    }
    Ok(())
}
