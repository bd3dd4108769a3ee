//! `cargo run --release -p telering-benches`: prints the table.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use telering_benches::bars;
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
    /// Measures the bars of these names, all if none is given; the exit status is 1 if one is not reached
    #[arg(long, value_name = "NAME", num_args = 0.., conflicts_with_all = ["filter", "json"])]
    bars: Option<Vec<String>>,
    /// With all bars: writes the tables and the plot into the documents of this source tree
    #[arg(long, requires = "bars")]
    write: bool,
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
    if let Some(names) = &arguments.bars {
        return match judge(names, arguments.write, effort) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => fail(&*error),
        };
    }
    match telering_benches::run(arguments.filter.as_deref(), effort) {
        Ok(report) if arguments.json => println!("{:#}", report.to_json()),
        Ok(report) => print!("{report}"),
        Err(error) => return fail(&*error),
    }
    ExitCode::SUCCESS
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("telering-benches: {error}");
    ExitCode::from(2)
}

/// Prints a line for each bar; whether all are reached.
fn judge(names: &[String], write: bool, effort: Effort) -> Result<bool, Box<dyn std::error::Error>> {
    if write && !names.is_empty() {
        return Err("--write needs all bars: leave the names out".into());
    }
    let outcomes = bars::run(&bars::chosen(names)?, write, effort)?;
    for outcome in &outcomes.outcomes {
        println!("{outcome}");
    }
    if write {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        eprintln!("written: {}", bars::table::write(&outcomes, root)?.join(", "));
    }
    Ok(outcomes.all_reached())
}
