//! Model against measurement, line by line.

use std::fmt;

use telering::core::names;
use telering::reader::Positions;

use crate::Ended;
use crate::model::{self, Constants, EVENTS, THREADS};
use crate::scrape::Scrape;

/// Bytes of an agent beside what its threads take: more is a fault.
const AGENT_MAX: f64 = 262_144.0;

/// How far a measurement may be from the model.
#[derive(Clone, Copy)]
enum Allowed {
    Nothing,
    /// Percent either way.
    Percent(f64),
    /// Times or one over it: for what costs time.
    Factor(f64),
    /// The model is a limit.
    AtMost,
}

struct Line {
    what: String,
    model: f64,
    measured: f64,
    allowed: Allowed,
}

impl Line {
    fn holds(&self) -> bool {
        let Line { model, measured, .. } = *self;
        match self.allowed {
            Allowed::Nothing => model == measured,
            Allowed::Percent(percent) => (measured - model).abs() <= model * percent / 100.0,
            Allowed::Factor(factor) => measured <= model * factor && measured * factor >= model,
            Allowed::AtMost => measured <= model,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: f64| match number {
            number if number.fract() == 0.0 || number >= 1000.0 => format!("{number:.0}"),
            number if number >= 0.1 => format!("{number:.2}"),
            number => format!("{number:.6}"),
        };
        let off = if self.model == self.measured {
            "0".to_owned()
        } else {
            format!("{:+.1}%", (self.measured - self.model) / self.model * 100.0)
        };
        let allowed = match self.allowed {
            Allowed::Nothing => "0".to_owned(),
            Allowed::Percent(percent) => format!("{percent}%"),
            Allowed::Factor(factor) => format!("x{factor}"),
            Allowed::AtMost => "at most".to_owned(),
        };
        let verdict = if self.holds() { "ok" } else { "OFF" };
        let (model, measured) = (number(self.model), number(self.measured));
        write!(f, "{:<58} {model:>14} {measured:>14} {off:>9} {allowed:>8}  {verdict}", self.what)
    }
}

/// All lines so far.
#[derive(Default)]
pub(crate) struct Checks {
    pub(crate) constants: Constants,
    lines: Vec<Line>,
}

/// A number that each process said, added up.
fn sum(ended: &[Ended], what: &str) -> f64 {
    ended.iter().map(|ended| said(ended, what)).sum()
}

fn mean(ended: &[Ended], what: &str) -> f64 {
    sum(ended, what) / ended.len() as f64
}

/// A number that the process didn't say is no number, which fits no model.
fn said(ended: &Ended, what: &str) -> f64 {
    ended.said[what].as_f64().unwrap_or(f64::NAN)
}

impl Checks {
    pub(crate) fn all_hold(&self) -> bool {
        self.lines.iter().all(Line::holds)
    }

    fn line(&mut self, what: impl Into<String>, model: f64, measured: f64, allowed: Allowed) {
        self.lines.push(Line { what: what.into(), model, measured, allowed });
    }

    /// What must be right to the last byte and event, whatever the machine does.
    pub(crate) fn exact(&mut self, run: &str, ended: &[Ended]) {
        let all = |number: &dyn Fn(&Ended) -> u64| ended.iter().map(number).sum::<u64>() as f64;
        let processes = ended.len() as f64;
        let transfers = sum(ended, "transfers");
        let counted = |id: u32| {
            move |ended: &Ended| {
                ended.info.metrics.as_ref().and_then(|metrics| metrics.entry(id)).map_or(0, |total| total.count)
            }
        };
        let bytes = |ended: &Ended| {
            ended.info.metrics.as_ref().and_then(|metrics| metrics.entry(names::TX_BYTES)).map_or(0, |total| total.sum)
        };
        self.line(format!("{run}: transfers counted"), transfers, all(&counted(names::TX_REQUESTS)), Allowed::Nothing);
        self.line(format!("{run}: bytes counted"), sum(ended, "tx_bytes"), all(&bytes), Allowed::Nothing);
        self.line(
            format!("{run}: events recorded"),
            EVENTS as f64 * transfers,
            sum(ended, "recorded"),
            Allowed::Nothing,
        );
        // Ours stand outside the books: started, stopped, and a report after each flush that found a loss.
        let own = [names::STARTED, names::STOPPED, names::EVENTS_DROPPED];
        let own: f64 = own.into_iter().map(|id| all(&counted(id))).sum();
        let written = |ended: &Ended| match ended.info.positions {
            Positions::Image { committed, .. } => committed,
            _ => 0,
        };
        let model = sum(ended, "recorded") - sum(ended, "lost") + own;
        self.line(format!("{run}: events written into files"), model, all(&written), Allowed::Nothing);
        let file = model::file_bytes() as f64 * processes;
        self.line(format!("{run}: bytes of files"), file, all(&|ended| ended.info.len), Allowed::Nothing);
        let pages = model::pages(model::file_bytes()) as f64 * processes;
        self.line(format!("{run}: bytes of files in memory"), pages, all(&|ended| ended.blocks), Allowed::Percent(1.0));
        self.line(format!("{run}: bytes of files mapped"), pages, sum(ended, "mapped_bytes"), Allowed::Nothing);
        let limit = processes * AGENT_MAX + sum(ended, "threads") * model::drain_bytes() as f64;
        self.line(format!("{run}: memory added by a flood"), limit, sum(ended, "growth_bytes"), Allowed::AtMost);
    }

    pub(crate) fn of_threads(&mut self, runs: &[(usize, Vec<Ended>)]) {
        let [(_, first), .., (most, last)] = runs else { return };
        self.constants.agent_bytes = sum(first, "agent_bytes") as u64;
        self.constants.transfer = sum(first, "cost");
        self.constants.wake_up = sum(first, "idle_share") / sum(first, "idle_sleeps");
        let of_most = sum(last, "idle_share") / sum(last, "idle_sleeps");
        self.constants.slot = ((of_most - self.constants.wake_up) / (*most - 1) as f64).max(0.0);
        self.line("an agent: private memory", AGENT_MAX, sum(first, "agent_bytes"), Allowed::AtMost);
        let base = sum(first, "slots_bytes");
        for (threads, ended) in &runs[1..] {
            let more = (*threads - 1) as f64;
            let (model, measured) = (model::thread_bytes() as f64, (sum(ended, "slots_bytes") - base) / more);
            self.line(format!("threads {threads}: memory of each more"), model, measured, Allowed::Percent(3.0));
        }
        for (threads, ended) in runs {
            let run = format!("threads {threads}");
            let transfer = self.constants.transfer;
            self.line(format!("{run}: a transfer, x eight stores"), transfer, sum(ended, "cost"), Allowed::Factor(2.0));
            self.wake_ups(&run, ended);
            let model = self.constants.share(*threads, sum(ended, "idle_sleeps"), 0.0);
            let measured = sum(ended, "idle_share");
            self.line(format!("{run}: idle, of a processor"), model, measured, Allowed::Factor(3.0));
        }
    }

    fn wake_ups(&mut self, run: &str, ended: &[Ended]) {
        let model = model::wake_ups(0.0);
        let measured = mean(ended, "idle_sleeps");
        self.line(format!("{run}: wake-ups a second, idle"), model, measured, Allowed::Percent(25.0));
    }

    pub(crate) fn of_processes(&mut self, runs: &[(usize, Vec<Ended>)]) {
        for (processes, ended) in runs {
            let run = format!("processes {processes}");
            self.line(
                format!("{run}: private memory of an agent"),
                AGENT_MAX,
                mean(ended, "agent_bytes"),
                Allowed::AtMost,
            );
            let (model, measured) = (model::thread_bytes() as f64, mean(ended, "slots_bytes"));
            self.line(format!("{run}: memory of a thread"), model, measured, Allowed::Percent(12.0));
            let transfer = self.constants.transfer;
            self.line(
                format!("{run}: a transfer, x eight stores"),
                transfer,
                mean(ended, "cost"),
                Allowed::Factor(2.0),
            );
            self.wake_ups(&run, ended);
            let model = self.constants.share(1, mean(ended, "idle_sleeps"), 0.0);
            self.line(format!("{run}: idle, of a processor"), model, mean(ended, "idle_share"), Allowed::Factor(3.0));
        }
    }

    /// The first and the second run tell what an agent adds to a page; the others are held to it.
    pub(crate) fn of_scrapes(&mut self, runs: &[(usize, Scrape)]) {
        let [(1, first), (few, second), ..] = runs else { return };
        let more = (few - 1) as u64;
        let constants = &mut self.constants;
        constants.series = (second.series - first.series) / more;
        constants.page_of_agent = (second.bytes - first.bytes) / more;
        constants.page = first.bytes - constants.page_of_agent;
        constants.page_series = first.series - constants.series;
        if let Some((processes, last)) = runs.last() {
            constants.scrape_of_agent = (last.nanoseconds - first.nanoseconds) / (processes - 1) as f64;
            constants.scrape = (first.nanoseconds - constants.scrape_of_agent).max(0.0);
        }
        for (processes, scrape) in runs {
            self.scrape(&format!("processes {processes}"), *processes, *scrape);
        }
    }

    fn scrape(&mut self, run: &str, agents: usize, scrape: Scrape) {
        let (series, bytes) = (self.constants.series_of(agents as u64), self.constants.page_of(agents as u64));
        self.line(format!("{run}: series of a scrape"), series as f64, scrape.series as f64, Allowed::Nothing);
        self.line(format!("{run}: bytes of a scrape"), bytes as f64, scrape.bytes as f64, Allowed::Percent(5.0));
        let model = self.constants.scrape_ns(agents as u64);
        self.line(format!("{run}: a scrape, nanoseconds"), model, scrape.nanoseconds, Allowed::Factor(3.0));
    }

    pub(crate) fn of_node(&mut self, ended: &[Ended], scrape: Scrape) {
        self.scrape("a node", ended.len(), scrape);
        let processes = ended.len() as f64;
        let model = processes * (self.constants.agent_bytes + THREADS as u64 * model::thread_bytes()) as f64;
        let measured = sum(ended, "agent_bytes") + sum(ended, "slots_bytes");
        self.line("a node: private memory", model, measured, Allowed::Percent(5.0));
        self.wake_ups("a node", ended);
    }

    /// The cost of an event is taken from the highest rate; the others show that it serves for them too.
    pub(crate) fn of_rates(&mut self, runs: &[(u64, Vec<Ended>)]) {
        let Some((highest, last)) = runs.last() else { return };
        let events = (EVENTS * highest) as f64;
        let sleeping = self.constants.share(1, sum(last, "steady_sleeps"), 0.0);
        self.constants.event = ((sum(last, "steady_share") - sleeping) / events).max(0.0);
        for (rate, ended) in runs {
            let run = format!("{rate} transfers a second");
            let (model, sleeps) = (model::wake_ups(*rate as f64), sum(ended, "steady_sleeps"));
            self.line(format!("{run}: wake-ups a second"), model, sleeps, Allowed::Percent(30.0));
            let model = self.constants.share(1, sleeps, (EVENTS * rate) as f64);
            let measured = sum(ended, "steady_share");
            self.line(format!("{run}: flush thread, of a processor"), model, measured, Allowed::Factor(3.0));
        }
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<58} {:>14} {:>14} {:>9} {:>8}", "", "model", "measured", "off", "allowed")?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        let off = self.lines.iter().filter(|line| !line.holds()).count();
        writeln!(f, "{} lines, {off} off", self.lines.len())
    }
}
