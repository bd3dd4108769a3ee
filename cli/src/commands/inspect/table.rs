//! What was seen, for people.

use std::io;

use telering::reader::{FileInfo, HistogramOf, Layout, Liveness, Positions};
use telering_core::layout::image::TimeBase;
use telering_core::names;

use super::look::{Look, Together, per_second};
use crate::terminal::{Paint, escape, grouped, path};
use crate::time::{TimeWriter, duration_text, now_us, since_boot_text};

pub(super) struct Table {
    times: TimeWriter,
    paint: Paint,
    first: bool,
}

impl Table {
    pub(super) fn new(utc: bool) -> Table {
        Table { times: TimeWriter::new(utc), paint: Paint::for_stdout(), first: true }
    }

    pub(super) fn file(&mut self, out: &mut impl io::Write, look: &Look) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            writeln!(out)?;
        }
        writeln!(out, "{}", self.paint.bold(&path(&look.info.path)))?;
        for (key, text) in self.rows(look) {
            writeln!(out, "  {key:12} {text}")?;
        }
        self.totals(out, look)
    }

    fn rows(&mut self, look: &Look) -> Vec<(&'static str, String)> {
        let info = &look.info;
        let mut rows = Vec::new();
        let by = info.writer.as_ref().map(|writer| format!(", written by {}", escape(writer))).unwrap_or_default();
        rows.push(("layout", format!("{}{by}", info.layout)));
        rows.push(("agent", look.label.to_string()));
        if let Some(identity) = &info.identity {
            rows.push(("host", escape(&identity.hostname).into_owned()));
        }
        rows.push(("writer", self.writer(info)));
        if let Some(instance) = info.instance {
            let boots =
                info.boots.filter(|&boots| boots > 0).map(|boots| format!(", taken up {boots} times after a reset"));
            rows.push(("instance", format!("{instance:016x}{}", boots.unwrap_or_default())));
        }
        if let Some(us) = info.created_us {
            rows.push(("created", self.moment(us, TimeBase::Unix)));
        }
        if let Some(us) = info.heartbeat {
            rows.push(("last seen", self.moment(us, info.time_base)));
        }
        rows.push((
            "ring",
            format!(
                "{} places of {} bytes, file of {} bytes",
                grouped(info.capacity),
                info.record_size,
                grouped(info.len)
            ),
        ));
        rows.push(("positions", positions(look)));
        rows.push(("holds", self.held(look)));
        if look.held.counts.unverified > 0 {
            let unverified = format!("{}: torn by a copy, or damaged", counted(look.held.counts.unverified, "record"));
            rows.push(("unverified", self.paint.bad(&unverified)));
        } else if info.checks {
            rows.push(("unverified", "0".to_owned()));
        }
        rows.extend(self.flow(info));
        rows.extend(throughput(look));
        rows
    }

    fn writer(&self, info: &FileInfo) -> String {
        let text = match info.liveness {
            Liveness::Alive => "alive: it holds the file's lock",
            Liveness::AliveByHeartbeat => "alive by its heartbeat (this file system has no locks)",
            Liveness::Dead => "dead: it did not close the file (or this is a copy)",
            Liveness::Closed => "closed the file in good order",
            Liveness::Stale => "stale: nothing moves",
            _ if matches!(info.layout, Layout::Nixl(_)) => "unknown: NIXL's own rings have no lock and no heartbeat",
            _ => "unknown",
        };
        match info.liveness {
            Liveness::Alive | Liveness::AliveByHeartbeat => self.paint.good(text),
            Liveness::Dead | Liveness::Stale => self.paint.bad(text),
            _ => text.to_owned(),
        }
    }

    fn moment(&mut self, us: u64, base: TimeBase) -> String {
        if base != TimeBase::Unix {
            return since_boot_text(us);
        }
        let now = now_us();
        let distance = if us <= now {
            format!("{} ago", duration_text(now - us))
        } else {
            format!("in {}: the clocks differ", duration_text(us - now))
        };
        format!("{} ({distance})", self.times.text(us))
    }

    fn held(&mut self, look: &Look) -> String {
        let events = counted(look.held.counts.events, "event");
        match (look.held.span, look.held.covers_us()) {
            (Some((_, newest)), Some(us)) => {
                let newest = self.moment(newest, look.info.time_base);
                format!("{events}: the ring covers the last {}, up to {newest}", duration_text(us))
            }
            _ if look.held.counts.events > 0 => format!("{events}; this layout has no times"),
            _ => events,
        }
    }

    fn flow(&self, info: &FileInfo) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        if let Some(flow) = info.flow {
            let causes = [
                ("overwritten before the flush", flow.lost.staging),
                ("refused by the exporter", flow.lost.exporter),
                ("interrupted", flow.lost.interrupted),
                ("over what a backend keeps", flow.lost.backend),
                ("not flushed at the end", flow.lost.closing),
            ];
            let causes: Vec<_> = causes
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(cause, count)| format!("{cause} {}", grouped(*count)))
                .collect();
            let lost = format!("{} lost", grouped(flow.lost.total()));
            let lost =
                if causes.is_empty() { lost } else { self.paint.bad(&format!("{lost} ({})", causes.join(", "))) };
            rows.push((
                "recorded",
                format!("{} = {} exported + {lost}", counted(flow.recorded, "event"), grouped(flow.exported)),
            ));
        }
        if let Some(notices) = info.notices {
            let notices: Vec<_> = [
                ("names cut or cleaned", notices.names_changed),
                ("events without room among the metrics", notices.dynamic_overflow),
                ("records refused", notices.refused),
                ("troubles with the file", notices.file_trouble),
            ]
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| format!("{what}: {}", grouped(*count)))
            .collect();
            if !notices.is_empty() {
                rows.push(("notices", notices.join(", ")));
            }
        }
        rows
    }

    fn totals(&mut self, out: &mut impl io::Write, look: &Look) -> io::Result<()> {
        let Some(metrics) = &look.info.metrics else { return Ok(()) };
        let as_of = look.info.metrics_time.map(|us| format!(" as of {}", self.moment(us, look.info.time_base)));
        let head = format!("{:34}{:>14}{:>22}{:>16}", "EVENT", "COUNT", "SUM", "LAST");
        writeln!(out, "  totals{} since the agent started:", as_of.unwrap_or_default())?;
        writeln!(out, "    {}", self.paint.bold(&head))?;
        let mut row = |name: &str, count: u64, sum: u64, last: Option<u64>| {
            let last = last.map(|last| format!("{:>16}", grouped(last))).unwrap_or_default();
            writeln!(out, "    {:34}{:>14}{:>22}{last}", escape(name), grouped(count), grouped(sum))
        };
        for entry in metrics.entries.iter().filter(|entry| entry.total.count > 0) {
            row(&event_name(entry.id), entry.total.count, entry.total.sum, Some(entry.total.last))?;
        }
        for (id, count) in metrics.errors.iter().filter(|(_, count)| *count > 0) {
            row(&event_name(*id), *count, *count, None)?;
        }
        for metric in look.info.dynamic.iter().flatten() {
            row(metric.name.as_str(), metric.total.count, metric.total.sum, Some(metric.total.last))?;
        }
        for histogram in metrics.histograms.iter().filter(|histogram| histogram.count() > 0) {
            let of = |percent| quantile(histogram, &metrics.bounds, percent);
            writeln!(out, "    {}: half take {}, 99 % take {}", event_name(histogram.id), of(50), of(99))?;
        }
        Ok(())
    }

    /// What several agents did in the time that all of their rings cover.
    pub(super) fn together(&mut self, out: &mut impl io::Write, together: &Together) -> io::Result<()> {
        let rate = |bytes| per_second(bytes, together.us).map(rate_text).unwrap_or_default();
        writeln!(out, "\n{}", self.paint.bold(&format!("all {} files with times", together.files)))?;
        writeln!(
            out,
            "  {:12} {} written, {} read: all agents together, wall-clock, in the {} that all rings cover",
            "throughput",
            rate(together.written),
            rate(together.read),
            duration_text(together.us)
        )
    }
}

fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { "s" })
}

fn event_name(id: u32) -> String {
    names::by_id(id).map_or_else(|| format!("unknown({id})"), |row| row.file_name().to_owned())
}

fn positions(look: &Look) -> String {
    match look.info.positions {
        Positions::Image { committed, intent } => {
            let begun = match intent - committed.min(intent) {
                0 => String::new(),
                begun => format!(", {} being written", grouped(begun)),
            };
            format!(
                "{} written, of them {} overwritten by newer ones{begun}",
                grouped(committed),
                grouped(look.overwritten().unwrap_or_default())
            )
        }
        Positions::Nixl { write_pos, read_pos, waiting } => {
            let full =
                if look.is_full() { ": the ring is FULL and drops the newest events (read --consume)" } else { "" };
            format!(
                "write {}, read {}: {} to be consumed{full}",
                grouped(write_pos),
                grouped(read_pos),
                counted(waiting, "event")
            )
        }
        _ => "unknown".to_owned(),
    }
}

/// Each agent's own rate, over the time of its own ring.
fn throughput(look: &Look) -> Option<(&'static str, String)> {
    let us = look.held.covers_us()?;
    let rate = |bytes| per_second(bytes, us).map(rate_text);
    let (written, read) = (rate(look.held.written)?, rate(look.held.read)?);
    Some((
        "throughput",
        format!("{written} written, {read} read: this agent, wall-clock, in the {} of the ring", duration_text(us)),
    ))
}

/// Decimal, as networks are: 100.0 MB/s.
fn rate_text(bytes_per_second: u64) -> String {
    let mut value = bytes_per_second as f64;
    for unit in ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"] {
        if value < 1000.0 {
            return if unit == "B/s" { format!("{bytes_per_second} B/s") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.1} PB/s")
}

/// The bucket that holds a percentile: `at most 50 us`.
fn quantile(histogram: &HistogramOf, bounds: &[u64], percent: u64) -> String {
    let wanted = (u128::from(histogram.count()) * u128::from(percent)).div_ceil(100);
    let mut sum = 0;
    for (place, count) in histogram.buckets.iter().enumerate() {
        sum += u128::from(*count);
        if sum >= wanted {
            return match bounds.get(place) {
                Some(bound) => format!("at most {}", duration_text(*bound)),
                None => format!("over {}", duration_text(bounds.last().copied().unwrap_or_default())),
            };
        }
    }
    "unknown".to_owned()
}
