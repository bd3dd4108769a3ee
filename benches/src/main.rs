//! `cargo run --release -p telering-benches`: prints the table.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use telering_benches::harness::Effort;

/// What telering costs, as ratios measured in one run.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Slices of each benchmark; more of them forget more disturbances
    #[arg(long, default_value_t = 91, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: u32,
    /// Only the benchmark of this name, or those with it in their name
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    /// Three rounds of short slices: shows that everything runs, not how fast
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let effort = if arguments.quick {
        Effort { rounds: 3, slice: Duration::from_micros(50) }
    } else {
        Effort { rounds: arguments.rounds as usize, slice: Duration::from_micros(500) }
    };
    match telering_benches::run(arguments.filter.as_deref(), effort) {
        Ok(report) if arguments.json => println!("{:#}", report.to_json()),
        Ok(report) => print!("{report}"),
        Err(error) => {
            eprintln!("telering-benches: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
