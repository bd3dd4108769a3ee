//! What the demo says at its end, and whether its numbers agree.

use std::io::{self, Write as _};
use std::path::Path;

use serde_json::json;
use telering::core::names::{MEMORY_REGISTERED, RX_BYTES, RX_REQUESTS, TX_BYTES, TX_REQUESTS};
use telering::core::snapshot::Flow;

use super::Ended;
use super::mover::{Account, Way};
use crate::terminal::{self, Paint, bytes_text, grouped};

/// One statement that must hold.
struct Check {
    what: &'static str,
    left: u64,
    right: u64,
}

impl Check {
    fn holds(&self) -> bool {
        self.left == self.right
    }
}

/// What must be true of an agent.
fn checks(ended: &Ended) -> Vec<Check> {
    let Ended { account, snapshot, flow, .. } = ended;
    let sum = |id| snapshot.entry(id).map_or(0, |total| total.sum);
    let check = |what, left, right| Check { what, left, right };
    vec![
        check("bytes written, moved and recorded", account.tx_bytes, sum(TX_BYTES)),
        check("bytes read, moved and recorded", account.rx_bytes, sum(RX_BYTES)),
        check("writes, made and recorded", account.tx_requests, sum(TX_REQUESTS)),
        check("reads, made and recorded", account.rx_requests, sum(RX_REQUESTS)),
        check("failures, made and recorded", account.errors, snapshot.error_count()),
        check("bytes registered, and recorded so", account.memory_registered, sum(MEMORY_REGISTERED)),
        check("events, made and recorded", account.events, flow.recorded),
        check("recorded = exported + lost", flow.recorded, flow.exported + flow.lost.total()),
        check("records in the file that fail their check", ended.unverified, 0),
    ]
}

/// Whether all numbers of all agents agree.
pub(super) fn is_right(ended: &[Ended]) -> bool {
    ended.iter().flat_map(checks).all(|check| check.holds())
}

fn total(ended: &[Ended], of: impl Fn(&Ended) -> u64) -> u64 {
    ended.iter().map(of).sum()
}

/// One line of JSON: what was moved by the demo's own account, and what became of the events.
pub(super) fn print_json(ended: &[Ended]) -> io::Result<()> {
    let moved = |of: fn(&Account) -> u64| total(ended, |agent| of(&agent.account));
    let flow = |of: fn(&Flow) -> u64| total(ended, |agent| of(&agent.flow));
    let agents: Vec<_> = ended
        .iter()
        .map(|Ended { name, account, .. }| {
            json!({
                "name": name,
                "tx_bytes": account.tx_bytes,
                "rx_bytes": account.rx_bytes,
                "tx_requests": account.tx_requests,
                "rx_requests": account.rx_requests,
                "errors": account.errors,
                "memory_registered": account.memory_registered,
            })
        })
        .collect();
    let line = json!({
        "path": ended.iter().filter_map(|agent| Some(agent.path.as_ref()?.to_string_lossy())).collect::<Vec<_>>(),
        "agents": agents,
        "tx_bytes": moved(|account| account.tx_bytes),
        "rx_bytes": moved(|account| account.rx_bytes),
        "tx_requests": moved(|account| account.tx_requests),
        "rx_requests": moved(|account| account.rx_requests),
        "errors": moved(|account| account.errors),
        "memory_registered": moved(|account| account.memory_registered),
        "recorded": flow(|flow| flow.recorded),
        "exported": flow(|flow| flow.exported),
        "lost": flow(|flow| flow.lost.total()),
        "right": is_right(ended),
    });
    say_wrong(ended);
    writeln!(io::stdout(), "{line}")
}

fn say_wrong(ended: &[Ended]) {
    for agent in ended {
        for check in checks(agent).into_iter().filter(|check| !check.holds()) {
            terminal::complain(format_args!(
                "{}: {}: {} is not {}",
                agent.name,
                check.what,
                grouped(check.left),
                grouped(check.right)
            ));
        }
    }
}

/// The end of the demo for people.
pub(super) fn print(directory: Option<&Path>, ended: &[Ended]) -> io::Result<()> {
    let (mut out, paint) = (io::stdout().lock(), Paint::for_stdout());
    let number = |value: u64| grouped(value);
    let columns = ["AGENT", "WRITES", "READS", "WRITTEN", "READ", "ERRORS", "RECORDED", "EXPORTED", "LOST"];
    let row = |cells: [String; 9]| {
        let [name, rest @ ..] = cells;
        rest.iter()
            .zip([10, 10, 11, 11, 8, 12, 12, 8])
            .fold(format!("{name:10}"), |line, (cell, width)| format!("{line}{cell:>width$}"))
    };
    writeln!(out, "{}", paint.bold(&row(columns.map(str::to_owned))))?;
    for Ended { name, snapshot, flow, .. } in ended {
        let sum = |id| snapshot.entry(id).map_or(0, |total| total.sum);
        let cells = [
            name.clone(),
            number(sum(TX_REQUESTS)),
            number(sum(RX_REQUESTS)),
            bytes_text(sum(TX_BYTES)),
            bytes_text(sum(RX_BYTES)),
            number(snapshot.error_count()),
            number(flow.recorded),
            number(flow.exported),
            number(flow.lost.total()),
        ];
        writeln!(out, "{}", row(cells))?;
    }
    print_latencies(&mut out, paint, ended)?;
    let (recorded, exported) = (total(ended, |agent| agent.flow.recorded), total(ended, |agent| agent.flow.exported));
    let lost = total(ended, |agent| agent.flow.lost.total());
    let verdict = |right: bool| if right { paint.good("right") } else { paint.bad("WRONG") };
    writeln!(
        out,
        "\nrecorded = exported + lost    {} = {} + {}    {}",
        grouped(recorded),
        grouped(exported),
        grouped(lost),
        verdict(recorded == exported + lost)
    )?;
    writeln!(
        out,
        "moved = recorded              {} written, {} read, {} failed    {}",
        bytes_text(total(ended, |agent| agent.account.tx_bytes)),
        bytes_text(total(ended, |agent| agent.account.rx_bytes)),
        grouped(total(ended, |agent| agent.account.errors)),
        verdict(is_right(ended))
    )?;
    let paths: Vec<_> = ended.iter().filter_map(|agent| Some((agent.path.as_ref()?, agent.readable))).collect();
    if let Some(directory) = directory.or_else(|| paths.first().and_then(|(path, _)| path.parent())) {
        writeln!(out, "\nThe files, with the newest events of each agent:")?;
        for (path, readable) in &paths {
            writeln!(out, "  {}  ({} events)", terminal::path(path), grouped(*readable))?;
        }
        let directory = shell_word(directory);
        writeln!(out, "\nTry next:")?;
        for command in
            ["read DIR --transfers --limit 20", "read DIR --category error", "inspect DIR", "clean DIR --yes"]
        {
            writeln!(out, "  telering {}", command.replace("DIR", &directory))?;
        }
    }
    out.flush()?;
    say_wrong(ended);
    Ok(())
}

fn print_latencies(out: &mut impl io::Write, paint: Paint, ended: &[Ended]) -> io::Result<()> {
    let head = format!("{:24}{:>10}{:>10}{:>10}{:>10}", "LATENCY, us", "TRANSFERS", "P50", "P99", "MAX");
    writeln!(out, "\n{}", paint.bold(&head))?;
    for way in Way::ALL {
        let Some(mut sum) = ended.first().map(|agent| agent.account.latencies[way as usize].clone()) else { continue };
        for agent in &ended[1..] {
            sum.add(&agent.account.latencies[way as usize]).map_err(io::Error::other)?;
        }
        let us = |us| if us == 0 { "<1".to_owned() } else { grouped(us) };
        let of = |quantile| us(sum.value_at_quantile(quantile));
        writeln!(
            out,
            "{:24}{:>10}{:>10}{:>10}{:>10}",
            way.name(),
            grouped(sum.len()),
            of(0.5),
            of(0.99),
            us(sum.max())
        )?;
    }
    Ok(())
}

/// A path as a shell takes it.
fn shell_word(path: &Path) -> String {
    let text = terminal::path(path);
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telering::core::snapshot::{Losses, Snapshot};

    fn ended(moved: u64, recorded: u64, flow: Flow) -> Ended {
        let mut account = Account::new().unwrap();
        account.tx_bytes = moved;
        account.events = 10;
        let mut snapshot = Snapshot::default();
        snapshot.entry_mut(TX_BYTES).unwrap().sum = recorded;
        Ended { name: "demo-0".into(), path: None, account, snapshot, flow, readable: 0, unverified: 0 }
    }

    #[test]
    fn a_number_that_does_not_agree_is_a_wrong_demo() {
        let flow =
            |recorded, exported, staging| Flow { recorded, exported, lost: Losses { staging, ..Losses::default() } };
        let right = || ended(7, 7, flow(10, 8, 2));
        assert!(is_right(&[right(), right()]));
        assert!(!is_right(&[right(), ended(7, 8, flow(10, 8, 2))]));
        assert!(!is_right(&[ended(7, 7, flow(10, 8, 1))]));
        assert!(!is_right(&[ended(7, 7, flow(9, 7, 2))]));
        assert!(!is_right(&[Ended { unverified: 1, ..right() }]));
    }
}
