//! Many samples as one page of text: classic exposition format, version 0.0.4.
//!
//! Each metric's series stand together under one HELP and one TYPE line. Of a histogram the buckets come first, by
//! growing bound, then sum and count: the order that the format's own document shows, and that parsers which read line
//! by line expect. (NIXL's library writes the count first; Prometheus takes both.)

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use telering_core::Status;
use telering_core::names::{self, BUILT_IN};
use telering_core::slot::DEFAULT_BOUNDS;
use telering_core::snapshot::Total;
use telering_core::status::STATUS_COUNT;

use super::families::{self, Family, Kind};
use super::labels::{Labels, write_label};
use super::model::Sample;
use super::named::Named;
use super::numbers::{write_number, write_seconds};

/// One page of metrics: samples go in, text comes out.
#[derive(Debug, Default)]
pub struct Exposition<'a> {
    samples: Vec<Prepared<'a>>,
    seen: BTreeSet<String>,
    named: Named,
    extras: Vec<(Family, Vec<(String, u64)>)>,
}

/// A sample with what every line of it needs.
#[derive(Debug)]
struct Prepared<'a> {
    sample: &'a Sample,
    /// The labels as text.
    labels: String,
    totals: [Total; BUILT_IN.len()],
    errors: [u64; STATUS_COUNT],
    unknown: u64,
}

impl<'a> Exposition<'a> {
    /// An empty page.
    #[must_use]
    pub fn new() -> Exposition<'a> {
        Exposition::default()
    }

    /// Adds an agent's numbers. `false` if there is a sample with the same labels already: Prometheus refuses a page
    /// that names a series twice, so the second is left out.
    pub fn add(&mut self, sample: &'a Sample) -> bool {
        let labels = sample.labels.to_text();
        if !self.seen.insert(labels.clone()) {
            return false;
        }
        self.named.add(self.samples.len(), &sample.dynamic);
        self.samples.push(Prepared::new(sample, labels));
        true
    }

    /// Adds one series of a metric of the caller's own. Its name must be none of this module's; series of one name
    /// belong together, and the first one's type and help count.
    pub fn extra(&mut self, family: Family, labels: &Labels, value: u64) {
        let series = (labels.to_text(), value);
        match self.extras.iter_mut().find(|(known, _)| known.name == family.name) {
            Some((_, all)) => all.push(series),
            None => self.extras.push((family, vec![series])),
        }
    }

    /// Writes the page. Without samples there are only the caller's own metrics.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write(&self, out: &mut (impl Write + ?Sized)) -> fmt::Result {
        if !self.samples.is_empty() {
            self.write_built_in(out)?;
            self.write_own(out)?;
            self.write_named(out)?;
        }
        for (family, series) in &self.extras {
            head(out, family.name, family.kind, family.help)?;
            for (labels, value) in series {
                line(out, [family.name, ""], [labels, ""], *value)?;
            }
        }
        Ok(())
    }

    /// Series of one value each.
    fn simple(
        &self,
        out: &mut (impl Write + ?Sized),
        family: &Family,
        value: impl Fn(&Prepared<'_>) -> u64,
    ) -> fmt::Result {
        head(out, family.name, family.kind, family.help)?;
        self.samples
            .iter()
            .try_for_each(|prepared| line(out, [family.name, ""], [&prepared.labels, ""], value(prepared)))
    }

    /// Series told apart by one label more; a sample without them is left out.
    fn by_label<const N: usize>(
        &self,
        out: &mut (impl Write + ?Sized),
        family: &Family,
        values: impl Fn(&Prepared<'_>) -> Option<[(&'static str, u64); N]>,
    ) -> fmt::Result {
        head(out, family.name, family.kind, family.help)?;
        for prepared in &self.samples {
            for (label, value) in values(prepared).into_iter().flatten() {
                line(out, [family.name, ""], [&prepared.labels, label], value)?;
            }
        }
        Ok(())
    }

    fn write_built_in(&self, out: &mut (impl Write + ?Sized)) -> fmt::Result {
        for (place, row) in BUILT_IN.iter().enumerate() {
            if let Some(status) = names::error_status(row.id) {
                if status.index() == 0 {
                    self.by_label(out, &families::ERRORS, |prepared| Some(errors(prepared)))?;
                }
                continue;
            }
            let [total, last, distribution] = families::of_row(row);
            if let Some(family) = total {
                self.simple(out, &family, |prepared| prepared.totals[place].sum)?;
            }
            if let Some(family) = last {
                self.simple(out, &family, |prepared| prepared.totals[place].last)?;
            }
            if let Some(family) = distribution {
                head(out, family.name, family.kind, family.help)?;
                self.samples.iter().try_for_each(|prepared| prepared.histogram(out, family.name, row.id))?;
            }
        }
        Ok(())
    }

    fn write_own(&self, out: &mut (impl Write + ?Sized)) -> fmt::Result {
        if self.samples.iter().any(|prepared| prepared.sample.flow.is_some()) {
            let flow = |prepared: &Prepared<'_>| prepared.sample.flow;
            self.by_label(out, &families::RECORDED, |prepared| Some([("", flow(prepared)?.recorded)]))?;
            self.by_label(out, &families::EXPORTED, |prepared| Some([("", flow(prepared)?.exported)]))?;
            self.by_label(out, &families::LOST, |prepared| {
                let lost = flow(prepared)?.lost;
                Some([
                    (r#"cause="staging""#, lost.staging),
                    (r#"cause="exporter""#, lost.exporter),
                    (r#"cause="interrupted""#, lost.interrupted),
                    (r#"cause="backend""#, lost.backend),
                    (r#"cause="closing""#, lost.closing),
                ])
            })?;
        }
        if self.samples.iter().any(|prepared| prepared.sample.notices.is_some()) {
            self.by_label(out, &families::NOTICES, |prepared| {
                let notices = prepared.sample.notices?;
                Some([
                    (r#"kind="names_changed""#, notices.names_changed),
                    (r#"kind="dynamic_overflow""#, notices.dynamic_overflow),
                    (r#"kind="refused""#, notices.refused),
                    (r#"kind="file_trouble""#, notices.file_trouble),
                ])
            })?;
        }
        self.simple(out, &families::UNKNOWN, |prepared| prepared.unknown)?;
        if self.samples.iter().any(|prepared| prepared.sample.start_us.is_some()) {
            head_of(out, &families::START_TIME)?;
            for prepared in &self.samples {
                if let Some(us) = prepared.sample.start_us {
                    start_of_line(out, [families::START_TIME.name, ""], [&prepared.labels, ""])?;
                    write_seconds(out, us)?;
                    out.write_char('\n')?;
                }
            }
        }
        if self.samples.iter().any(|prepared| prepared.sample.writer.is_some()) {
            head_of(out, &families::BUILD_INFO)?;
            for prepared in &self.samples {
                if let Some(writer) = &prepared.sample.writer {
                    let mut label = String::new();
                    write_label(&mut label, "writer", writer)?;
                    line(out, [families::BUILD_INFO.name, ""], [&prepared.labels, &label], 1)?;
                }
            }
        }
        Ok(())
    }

    fn write_named(&self, out: &mut (impl Write + ?Sized)) -> fmt::Result {
        let mut any = false;
        for (name, series) in self.named.families() {
            any = true;
            head(out, name, Kind::Counter, families::NAMED_SUM_HELP)?;
            for one in series {
                line(out, [name, ""], [&self.samples[one.sample].labels, &one.labels], one.sum)?;
            }
        }
        if any {
            head_of(out, &families::NAMED)?;
            for one in self.named.families().flat_map(|(_, series)| series) {
                line(out, [families::NAMED.name, ""], [&self.samples[one.sample].labels, &one.labels], one.count)?;
            }
        }
        head_of(out, &families::UNLISTED)?;
        line(out, [families::UNLISTED.name, ""], ["", ""], self.named.left_out())
    }
}

impl Prepared<'_> {
    fn new(sample: &Sample, labels: String) -> Prepared<'_> {
        let mut prepared = Prepared {
            sample,
            labels,
            totals: [Total::default(); BUILT_IN.len()],
            errors: [0; STATUS_COUNT],
            unknown: 0,
        };
        for entry in &sample.metrics.entries {
            match names::index_of(entry.id) {
                Some(place) => prepared.totals[place] = entry.total,
                None => prepared.unknown = prepared.unknown.wrapping_add(entry.total.count),
            }
        }
        for &(id, count) in &sample.metrics.errors {
            match names::error_status(id) {
                Some(status) => prepared.errors[status.index()] = count,
                None => prepared.unknown = prepared.unknown.wrapping_add(count),
            }
        }
        prepared
    }

    fn histogram(&self, out: &mut (impl Write + ?Sized), name: &str, id: u32) -> fmt::Result {
        let known = self.sample.metrics.histogram(id);
        let (bounds, buckets, sum) = match known {
            Some(histogram) => (self.sample.metrics.bounds.as_slice(), histogram.buckets.as_slice(), histogram.sum),
            None => (DEFAULT_BOUNDS.as_slice(), [].as_slice(), 0),
        };
        let mut counted: u64 = 0;
        let mut before = 0;
        let mut label = String::new();
        for (place, &bound) in bounds.iter().enumerate() {
            counted = counted.wrapping_add(buckets.get(place).copied().unwrap_or(0));
            // The bounds may be a damaged file's.
            if bound > before {
                before = bound;
                label.clear();
                label.push_str("le=\"");
                write_number(&mut label, bound)?;
                label.push('"');
                line(out, [name, "_bucket"], [&self.labels, &label], counted)?;
            }
        }
        counted = buckets.iter().skip(bounds.len()).fold(counted, |sum, more| sum.wrapping_add(*more));
        line(out, [name, "_bucket"], [&self.labels, "le=\"+Inf\""], counted)?;
        line(out, [name, "_sum"], [&self.labels, ""], sum)?;
        line(out, [name, "_count"], [&self.labels, ""], counted)
    }
}

/// All statuses with their counts.
fn errors(prepared: &Prepared<'_>) -> [(&'static str, u64); STATUS_COUNT] {
    std::array::from_fn(|place| (status_label(Status::ALL[place]), prepared.errors[place]))
}

const fn status_label(status: Status) -> &'static str {
    match status {
        Status::NotPosted => r#"status="not_posted""#,
        Status::InvalidParam => r#"status="invalid_param""#,
        Status::Backend => r#"status="backend""#,
        Status::NotFound => r#"status="not_found""#,
        Status::Mismatch => r#"status="mismatch""#,
        Status::NotAllowed => r#"status="not_allowed""#,
        Status::RepostActive => r#"status="repost_active""#,
        Status::Unknown => r#"status="unknown""#,
        Status::NotSupported => r#"status="not_supported""#,
        Status::RemoteDisconnect => r#"status="remote_disconnect""#,
        Status::Canceled => r#"status="canceled""#,
        Status::NoTelemetry => r#"status="no_telemetry""#,
    }
}

fn head_of(out: &mut (impl Write + ?Sized), family: &Family) -> fmt::Result {
    head(out, family.name, family.kind, family.help)
}

fn head(out: &mut (impl Write + ?Sized), name: &str, kind: Kind, help: &str) -> fmt::Result {
    for part in ["# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind.as_str(), "\n"] {
        out.write_str(part)?;
    }
    Ok(())
}

/// One line: a name in two parts, labels in two parts, a value.
fn line(out: &mut (impl Write + ?Sized), name: [&str; 2], labels: [&str; 2], value: u64) -> fmt::Result {
    start_of_line(out, name, labels)?;
    write_number(out, value)?;
    out.write_char('\n')
}

fn start_of_line(out: &mut (impl Write + ?Sized), name: [&str; 2], labels: [&str; 2]) -> fmt::Result {
    out.write_str(name[0])?;
    out.write_str(name[1])?;
    let [first, second] = labels;
    if !first.is_empty() || !second.is_empty() {
        out.write_char('{')?;
        out.write_str(first)?;
        out.write_str(if first.is_empty() || second.is_empty() { "" } else { "," })?;
        out.write_str(second)?;
        out.write_char('}')?;
    }
    out.write_char(' ')
}
