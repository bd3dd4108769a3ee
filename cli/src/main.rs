//! The program: the command with the arguments and the exit status of this process.

use std::process::ExitCode;

fn main() -> ExitCode {
    telering_cli::run(std::env::args_os()).into()
}
