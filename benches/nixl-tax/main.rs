//! One process of the comparison with NIXL: moves bytes between two real NIXL agents, with nothing, with telering or
//! with NIXL's own telemetry beside it, and prints what a transfer took. `tax` beside this file starts it.

mod capi;

use std::error::Error;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use capi::{IN_PROGRESS, Pair, SUCCESS};
use clap::{Parser, ValueEnum};
use serde_json::json;
use telering::{Operation, Telemetry};
use telering_benches::harness::{median, quantile};
use telering_benches::machine;

/// Moves bytes between two real NIXL agents and says what a transfer took.
#[derive(Parser)]
struct Arguments {
    /// NIXL's libnixl_capi.so
    #[arg(long, value_name = "FILE")]
    library: PathBuf,
    /// What telering does around each transfer
    #[arg(long, value_enum)]
    around: Around,
    /// Bytes of a transfer
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    bytes: u32,
    /// Slices, each timed for itself
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    slices: u32,
    /// Transfers of a slice
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    transfers: u32,
    /// Asks NIXL's Prometheus exporter on this port afterwards how many transfers it counted
    #[arg(long, value_name = "PORT")]
    scrape: Option<u16>,
    /// How long to wait before that: NIXL flushes by a timer
    #[arg(long, default_value_t = 300, value_name = "MS")]
    settle: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Around {
    /// Nothing: NIXL alone
    Nothing,
    /// begin, posted, finish, with telering off
    Off,
    /// The same with telering on, at its default settings
    On,
    /// As `on`, without `posted` where the transfer completes inside the post, as our documentation advises
    OnInPost,
}

/// What a run counted.
#[derive(Default)]
struct Account {
    made: u64,
    /// Transfers that were not complete after the post.
    polled: u64,
    /// Nanoseconds of a transfer, one number a slice.
    slices: Vec<f64>,
}

fn poll(pair: &Pair, mut status: i32) -> i32 {
    while status == IN_PROGRESS {
        status = pair.status();
    }
    status
}

/// Runs the slices; `one` makes one transfer and says whether it had to be asked for, or how it failed.
fn measure(arguments: &Arguments, one: impl Fn() -> Result<bool, i32>) -> Result<Account, Box<dyn Error>> {
    let mut account = Account::default();
    // The first slices warm up: the connection is made at the first transfer.
    for slice in 0..arguments.slices + 5 {
        let start = Instant::now();
        let mut polled = 0;
        for _ in 0..arguments.transfers {
            polled += u64::from(one().map_err(|status| format!("NIXL: a transfer failed with {status}"))?);
        }
        let elapsed = start.elapsed();
        account.made += u64::from(arguments.transfers);
        account.polled += polled;
        if slice >= 5 {
            account.slices.push(elapsed.as_secs_f64() * 1e9 / f64::from(arguments.transfers));
        }
    }
    Ok(account)
}

fn run(arguments: &Arguments, pair: &Pair, agent: &Telemetry) -> Result<Account, Box<dyn Error>> {
    let bytes = u64::from(arguments.bytes);
    let finish = |status| if status == SUCCESS { Ok(()) } else { Err(status) };
    match arguments.around {
        Around::Nothing => measure(arguments, || {
            let posted = pair.post();
            finish(poll(pair, posted))?;
            Ok(posted == IN_PROGRESS)
        }),
        Around::Off | Around::On => measure(arguments, || {
            let mut transfer = agent.begin_transfer(Operation::Write, black_box(bytes), 1);
            let posted = pair.post();
            transfer.posted();
            finish(poll(pair, posted))?;
            transfer.finish();
            Ok(posted == IN_PROGRESS)
        }),
        Around::OnInPost => measure(arguments, || {
            let mut transfer = agent.begin_transfer(Operation::Write, black_box(bytes), 1);
            let posted = pair.post();
            if posted == IN_PROGRESS {
                transfer.posted();
            }
            finish(poll(pair, posted))?;
            transfer.finish();
            Ok(posted == IN_PROGRESS)
        }),
    }
}

/// The value of a counter in what a Prometheus exporter on this machine tells.
fn scrape(port: u16, name: &str) -> Result<u64, Box<dyn Error>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.take(1 << 22).read_to_string(&mut text)?;
    let values = text.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit(' ').next());
    let values: Vec<f64> = values.filter_map(|value| value.parse().ok()).collect();
    if values.is_empty() {
        return Err(format!("port {port} tells nothing of {name}").into());
    }
    Ok(values.iter().sum::<f64>() as u64)
}

fn tell(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    // Before there is any other thread, so that all stay on this processor: UCX has one that looks for work, and where
    // it runs on another processor the two fight for cache lines, which costs more than what is measured here.
    let pinned = machine::pin(0);
    let mut pair = Pair::connect(&arguments.library, arguments.bytes as usize)?;
    let memory = telering_benches::rows::directory()?;
    let on = matches!(arguments.around, Around::On | Around::OnInPost);
    let builder = Telemetry::builder("tax").ignore_environment(true).dir(memory.path()).enable(on);
    let agent = builder.strict(on).try_build()?;
    pair.fill(0x5a);
    let account = run(arguments, &pair, &agent)?;
    let counted = if let Some(port) = arguments.scrape {
        std::thread::sleep(Duration::from_millis(arguments.settle));
        Some(scrape(port, "agent_tx_requests_num_total{")?)
    } else if on {
        agent.close();
        Some(agent.snapshot().entry(telering::core::names::TX_REQUESTS).map_or(0, |total| total.sum))
    } else {
        None
    };
    let slices = || account.slices.iter().copied();
    println!(
        "{}",
        json!({
            "p10": quantile(slices(), 0.1), "median": median(slices()), "made": account.made,
            "polled": account.polled, "counted": counted, "arrived": pair.arrived(0x5a), "pinned": pinned,
        })
    );
    Ok(())
}

fn main() {
    let result = tell(&Arguments::parse());
    let status = i32::from(result.is_err());
    if let Err(error) = result {
        eprintln!("telering-nixl-tax: {error}");
    }
    drop(std::io::stdout().flush());
    // At once: a library of UCX crashes in its destructor, and our temporary directory is gone already.
    std::process::exit(status);
}
