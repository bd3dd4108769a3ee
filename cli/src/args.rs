//! The command line: every command and flag, documented where it is defined.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use telering_core::Category;

const STYLES: Styles =
    Styles::styled().header(AnsiColor::Green.on_default().bold()).literal(AnsiColor::Cyan.on_default().bold());

/// Watch, read and inspect telemetry files of data-transfer agents.
///
/// Reads what telering's agents write and the rings of every NIXL release (0.5.1 to 1.5.1).
#[derive(Parser)]
#[command(name = "telering", version, styles = STYLES, max_term_width = 100, after_help = "\
Examples:
  telering demo                               move data, watch it being recorded
  telering read DIR                           every event of every agent in DIR, by time
  telering tail DIR/agent                     go on with new events as they come
  telering read DIR --transfers               one line per finished transfer
  telering inspect DIR                        what the files are, and who lives
  telering serve DIR                          the numbers of all agents in DIR for Prometheus

Exit status:
  0  done; also when the reader of the output went away, or a followed file was left by Ctrl-C
  1  ran, and found something wrong: numbers that don't add up, a file that broke while it was read
  2  not done: a wrong command line, or something that is no telemetry file")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

// What a command does stands with its arguments.
#[derive(Subcommand)]
pub(crate) enum Command {
    Read(ReadArguments),
    /// Print events and go on with new ones: `read --follow`.
    ///
    /// The same as `telering read --follow`, with all its options.
    Tail(ReadArguments),
    Inspect(InspectArguments),
    Clean(CleanArguments),
    Serve(ServeArguments),
    Demo(DemoArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// Examples of `read`, for -h and --help.
macro_rules! read_examples {
    () => {
        "\
Examples:
  telering read /tmp/telemetry/agent              events as the guide prints them
  telering read DIR --format jsonl | jq .value    one JSON object a line
  telering read DIR --transfers --since 5m        the transfers of the last five minutes
  telering read DIR --event 'agent_*x_bytes' --event 'NIXL_ERR_*'
  telering read DIR --category error --follow
  telering tail DIR/initiator --consume           empty NIXL's own ring, so that it never fills
  telering read --scan ram.bin                    images in a dump of a device's memory"
    };
}

/// What --help of `read` adds to that.
const READ_HELP: &str = concat!(
    read_examples!(),
    "

Formats:
  text   NIXL's block per event. Where the layout has no time (NIXL 1.1 and later) a line
         `Observed:` stands in place of `Timestamp:`. Several files add a line `Agent:`.
  jsonl  Keys: seq, instance, timestamp_us (or observed_us), category, event, value, agent.
         Numbers are exact up to 2^64-1. JavaScript and old versions of jq round numbers over
         2^53: --strings prints every 64-bit number as a string. `instance` is hexadecimal text,
         null in NIXL's own rings.
  csv    RFC 4180 with a header row. Fields are written as they are, so that they read back
         exactly: nothing is put before a leading '='. A spreadsheet program may take such a
         name for a formula: import the columns as text.

What is no event has its own line, in its place:
  {\"lost\":N}         N events were overwritten before they were read
  {\"unverified\":N}   N records fail their check: torn by a copy, or damaged
  {\"interrupted\":N}  N events were begun and never finished
  {\"reset\":true}     the file started over: a new run of the agent
In csv the column `kind` tells what a row is, N is its value. Several files add `agent`.

Exit status:
  0  done; with --follow also when it is interrupted, or nobody reads the output (| head)
  1  a file broke while it was read; what was printed is right
  2  something is no telemetry file; the others were read"
);

/// Print the events of telemetry files.
///
/// Several files, and all files of a directory, are merged by time. Reading looks without taking
/// ("peek"): it changes nothing, and any number of readers may do it at once.
///
/// A ring that NIXL itself writes is emptied only by a consumer: nobody consuming, it fills up and then
/// drops the NEWEST events. `--consume` is that consumer. A telering file always keeps the newest.
#[derive(Args)]
#[command(after_help = read_examples!(), after_long_help = READ_HELP)]
pub(crate) struct ReadArguments {
    /// Telemetry files, or directories of them.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Go on with new events, new files and restarted agents, until interrupted.
    ///
    /// A file that is not there yet is waited for.
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Where to start: with the oldest event that is still there, or after the newest (with --follow).
    #[arg(long, value_enum, default_value_t = Start::Oldest)]
    pub(crate) from: Start,

    /// Times in UTC, not in the zone of this machine; also for --since and --until.
    #[arg(long)]
    pub(crate) utc: bool,

    /// Only from this time on: `2026-11-30 14:00:00`, RFC 3339, or `5m` for five minutes ago.
    ///
    /// `2026-11-30T14:00:00Z` says its zone; `2026-11-30 14:00:00` and `2026-11-30` are local, or UTC with --utc.
    /// Relative are `5m`, `-5m` (the same), `1h30m`, `250ms`, and `+10s` for ten seconds from now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) since: Option<String>,

    /// Only before this time; `+10s` is in ten seconds. With --follow, reading ends then.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) until: Option<String>,

    /// End after so many events (transfers, with --transfers).
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,

    /// Only this category: memory, transfer, connection, backend, error, performance, system, custom.
    /// May be given more than once.
    #[arg(long, value_name = "CATEGORY", value_parser = category)]
    pub(crate) category: Vec<Category>,

    /// Only events whose name matches, with `*`, `?` and `[a-z]`. May be given more than once.
    ///
    /// An error matches by both of its names, NIXL_ERR_CANCELED and agent_err_canceled.
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,

    /// Take the events out of NIXL's own rings, which makes room for new ones.
    ///
    /// What is filtered out is taken too. There may be one consumer per file. Telering's files need none and are only looked at.
    #[arg(long, conflicts_with = "limit")]
    pub(crate) consume: bool,

    /// One line per finished transfer, not per event.
    ///
    /// Start, end, operation, bytes, time to post and time in all (in microseconds), agent. Transfers of which not all four events are there (at the oldest edge of a ring,
    /// or switched off) are left out and counted. Rings of NIXL 1.1 and later have no times: they are refused.
    /// NIXL before that doesn't mark what belongs together: with several threads per agent its lines may mix
    /// two transfers.
    #[arg(long, conflicts_with_all = ["category", "event"])]
    pub(crate) transfers: bool,

    /// Find images inside larger files: dumps of a device's memory, core files.
    ///
    /// Each is read as a file of its own, named by its offset: ram.bin+0x1f40.
    #[arg(long, conflicts_with_all = ["follow", "consume"])]
    pub(crate) scan: bool,

    /// In jsonl, print every 64-bit number as a string.
    #[arg(long)]
    pub(crate) strings: bool,
}

fn category(word: &str) -> Result<Category, String> {
    Category::from_word(word).ok_or_else(|| {
        let known: Vec<_> = Category::ALL.iter().filter_map(|known| known.as_str()).collect();
        format!("known are {}", known.join(", ").to_lowercase())
    })
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// NIXL's block per event; one line per transfer.
    Text,
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header row.
    Csv,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Start {
    Oldest,
    Newest,
}

/// Say what a file is, who writes it, and what it lost.
///
/// Layout and version, whether its writer is alive, how many events were written and lost and why, totals,
/// and how much time the ring covers. Changes nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  telering inspect /tmp/telemetry
  telering inspect /tmp/telemetry/agent --json | jq .losses
  telering inspect --scan ram.bin                images in a device's memory dump

Exit status: 0 all are telemetry files, 2 something is not (it says what is wrong).")]
pub(crate) struct InspectArguments {
    /// Files, or directories of them.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Find images inside larger files: dumps of a device's memory, core files.
    #[arg(long)]
    pub(crate) scan: bool,

    /// One JSON object per file and line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Times in UTC, not in the zone of this machine.
    #[arg(long)]
    pub(crate) utc: bool,
}

/// Remove the files of dead agents.
///
/// Only telering's own images of this user are ever removed, and only if no process holds their lock. NIXL's own
/// files have no lock, so nobody can say whether their writer lives: they stay.
#[derive(Args)]
#[command(after_help = "\
Examples:
  telering clean /tmp/telemetry          say what would go, and why
  telering clean /tmp/telemetry --yes    remove it

Exit status: 0 done, 1 something could not be removed, 2 the directory can't be read.")]
pub(crate) struct CleanArguments {
    /// Directory of telemetry files.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Remove; without it nothing is touched.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Serve the numbers of all telemetry files of a directory to Prometheus.
///
/// One endpoint for any number of processes. Files of telering keep their totals themselves, also when their process is
/// dead, and are only read. NIXL's own rings keep none: serve takes the events out of them ("consumes") and adds them
/// up for as long as it runs, so nobody else may consume them meanwhile (a second serve leaves them to the first); it
/// needs write permission for them. Rings that it may not consume are named once and counted. Nothing of NIXL's is ever
/// removed.
///
/// Pages are at /metrics, in the text format 0.0.4; /healthz says whether it runs. What each metric means stands in
/// docs/prometheus.md and docs/serve.md.
#[derive(Args)]
#[command(after_help = "\
Examples:
  telering serve /dev/shm/telemetry
  telering serve /dev/shm/telemetry --listen '[::]:9464' --labels stable
  telering serve /dev/shm/telemetry --ttl 5m --remove-dead
  telering serve /dev/shm/telemetry --once | grep agent_errors_total

Environment: NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US, as the engines have it, gives the histograms of NIXL's rings
their bounds.

Exit status: 0 ended by SIGTERM or Ctrl-C, or --once is done; 2 the address or the directory can't be used.")]
pub(crate) struct ServeArguments {
    /// Directory of telemetry files. One that is not there yet is waited for.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Where to listen. `:9464` and `[::]:9464` are all interfaces, IPv4 included; port 0 is any free one.
    ///
    /// There are no passwords and no encryption: whoever reaches the address reads the numbers.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9464", value_parser = crate::commands::serve::address)]
    pub(crate) listen: crate::commands::serve::Addresses,

    /// The labels of the series.
    #[arg(long, value_enum, default_value_t = Labels::Full)]
    pub(crate) labels: Labels,

    /// How long the last numbers of an agent that is gone are shown: `30s`, `5m`. Whatever it is, they are shown once.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::commands::serve::ttl)]
    pub(crate) ttl: std::time::Duration,

    /// Remove the files of dead agents after that: telering's own images of this user alone, as `telering clean` does.
    #[arg(long)]
    pub(crate) remove_dead: bool,

    /// Print one page and end. Takes nothing out of NIXL's rings, and so has no numbers of them.
    #[arg(long, conflicts_with_all = ["remove_dead", "listen"])]
    pub(crate) once: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Labels {
    /// hostname, agent_name, pid, agent_instance, local_rank: one series per agent.
    Full,
    /// hostname, local_rank: sums over agents, which never step back while serve runs.
    Stable,
}

/// Move real data between agents and watch it being recorded.
///
/// Each thread copies memory between registered regions and sends bytes through a loopback socket, some transfers
/// fail on purpose. At the end the moved bytes, counted apart, must equal the recorded ones, and
/// recorded = exported + lost.
#[derive(Args)]
#[command(after_help = "\
Examples:
  telering demo
  telering demo --seconds 10 --agents 4 --threads 2
  telering demo --rate 0 --seconds 3             flat out
  telering demo --dir /tmp/telemetry --json
  NIXL_TELEMETRY_EXPORTER=prometheus telering demo --environment --hold 60

Exit status: 0 all numbers agree, 1 they don't, 2 the demo can't run.")]
pub(crate) struct DemoArguments {
    /// Where the telemetry files go. Made if missing; a new one under the temporary directory if not given,
    /// or what the environment says with --environment.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// How long data is moved.
    #[arg(long, value_name = "N", default_value = "5", value_parser = seconds)]
    pub(crate) seconds: f64,

    /// How many agents.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) agents: u32,

    /// How many threads per agent.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) threads: u32,

    /// Bytes of one transfer at the most; half to all of it are moved.
    #[arg(long, value_name = "BYTES", default_value_t = 262_144, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub(crate) size: u64,

    /// Transfers per second and thread; 0 is flat out.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) rate: u64,

    /// How long the agents stay after the last transfer, so that somebody can look at their last numbers.
    #[arg(long, value_name = "N", default_value = "0", value_parser = hold)]
    pub(crate) hold: f64,

    /// Take the exporter, its settings and the rank from the environment, as a program of yours would.
    #[arg(long)]
    pub(crate) environment: bool,

    /// Print one JSON object of what was moved and recorded, nothing else.
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err("write a number of seconds over 0, at most 86400".to_owned()),
    }
}

fn hold(text: &str) -> Result<f64, String> {
    if text == "0" { Ok(0.0) } else { seconds(text) }
}

/// Print the completion script of a shell.
#[derive(Args)]
#[command(after_help = "\
Examples:
  telering completions bash > ~/.local/share/bash-completion/completions/telering
  telering completions fish > ~/.config/fish/completions/telering.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual page.
#[derive(Args)]
#[command(after_help = "\
Examples:
  telering man | man -l -
  telering man --dir ~/.local/share/man/man1    one page per command")]
pub(crate) struct ManArguments {
    /// Write telering.1 and one page per command into this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples() {
        for command in Arguments::command().get_subcommands() {
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("Examples:"), "{help}");
        }
    }
}
