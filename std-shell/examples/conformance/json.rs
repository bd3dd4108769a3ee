//! A reader's answer as JSON.

use std::fmt::Write;

use telering::reader::{Counts, DynamicMetric, Event, FileInfo, Identity, Layout, MetricsSnapshot, Positions};

/// All of what a reader makes of a file.
pub(crate) fn answer(info: &FileInfo, start: u64, events: &[Event], counts: &Counts) -> String {
    let layout = match info.layout {
        Layout::Nixl(layout) => layout.to_string(),
        _ => "image".into(),
    };
    object([
        ("layout", text(&layout)),
        ("capacity", info.capacity.to_string()),
        ("start", start.to_string()),
        ("events", array(events.iter().map(event))),
        ("lost", counts.lost.to_string()),
        ("unverified", counts.unverified.to_string()),
        ("interrupted", counts.interrupted.to_string()),
        ("info", info_of(info)),
    ])
}

fn event(event: &Event) -> String {
    array([
        event.seq.to_string(),
        or_null(event.timestamp_us),
        or_null(event.category.map(|category| category.0)),
        or_null(event.id),
        text(event.name.as_str()),
        event.value.to_string(),
    ])
}

fn info_of(info: &FileInfo) -> String {
    let liveness = ("liveness", text(info.liveness.as_str()));
    let (major, minor, committed, intent) = match (info.layout, info.positions) {
        (Layout::Image { major, minor }, Positions::Image { committed, intent, .. }) => {
            (major, minor, committed, intent)
        }
        (Layout::Nixl(layout), Positions::Nixl { write_pos, read_pos, waiting, .. }) => {
            return object([
                ("version", layout.version().to_string()),
                ("write_pos", write_pos.to_string()),
                ("read_pos", read_pos.to_string()),
                ("waiting", waiting.to_string()),
                liveness,
            ]);
        }
        _ => return "null".into(),
    };
    object([
        ("major", major.to_string()),
        ("minor", minor.to_string()),
        ("instance", or_null(info.instance)),
        ("created", info.created_us.unwrap_or(0).to_string()),
        ("checks", info.checks.to_string()),
        ("intent", intent.to_string()),
        ("committed", committed.to_string()),
        ("metrics_time", info.metrics_time.unwrap_or(0).to_string()),
        ("heartbeat", info.heartbeat.unwrap_or(0).to_string()),
        ("state", or_null(info.state.map(|state| state.number()))),
        ("time_base", info.time_base.number().to_string()),
        ("boots", or_null(info.boots)),
        liveness,
        (
            "parts",
            array(info.parts.iter().map(|row| numbers([row.kind.into(), row.version.into(), row.offset, row.len]))),
        ),
        ("identity", or_null(info.identity.as_ref().map(identity))),
        ("losses", or_null(losses(info))),
        ("notices", or_null(notices(info))),
        ("metrics", or_null(info.metrics.as_ref().map(metrics))),
        ("dynamic", or_null(info.dynamic.as_ref().map(|entries| array(entries.iter().map(dynamic))))),
        ("clock", or_null(clock(info))),
    ])
}

fn identity(identity: &Identity) -> String {
    let boot_id = identity.boot_id.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    object([
        ("pid", identity.pid.to_string()),
        ("process_start", identity.process_start.to_string()),
        ("boot_id", text(&boot_id)),
        ("agent_instance", identity.agent_instance.to_string()),
        ("uid", identity.uid.to_string()),
        ("writer", text(identity.writer.as_deref().unwrap_or(""))),
        ("hostname", text(&identity.hostname)),
        ("agent", text(&identity.agent)),
        ("rank", text(identity.rank.as_deref().unwrap_or(""))),
    ])
}

fn losses(info: &FileInfo) -> Option<String> {
    let flow = info.flow?;
    Some(object([
        ("recorded", flow.recorded.to_string()),
        ("exported", flow.exported.to_string()),
        ("staging", flow.lost.staging.to_string()),
        ("exporter", flow.lost.exporter.to_string()),
        ("interrupted", flow.lost.interrupted.to_string()),
        ("backend", flow.lost.backend.to_string()),
        ("closing", flow.lost.closing.to_string()),
    ]))
}

fn notices(info: &FileInfo) -> Option<String> {
    let notices = info.notices?;
    Some(object([
        ("names_changed", notices.names_changed.to_string()),
        ("dynamic_overflow", notices.dynamic_overflow.to_string()),
        ("refused", notices.refused.to_string()),
        ("file_trouble", notices.file_trouble.to_string()),
    ]))
}

fn clock(info: &FileInfo) -> Option<String> {
    let clock = info.clock?;
    Some(object([
        ("source", clock.source.to_string()),
        ("quality", clock.quality.to_string()),
        ("rate", clock.rate.to_string()),
        ("anchor_ticks", clock.anchor_ticks.to_string()),
        ("anchor_us", clock.anchor_us.to_string()),
    ]))
}

fn metrics(metrics: &MetricsSnapshot) -> String {
    let entry = |entry: &telering::reader::Metric| {
        let total = entry.total;
        numbers([entry.id.into(), total.sum, total.count, total.last, total.last_us])
    };
    let histogram = |histogram: &telering::reader::HistogramOf| {
        let buckets = numbers(histogram.buckets.iter().copied());
        array([histogram.id.to_string(), histogram.sum.to_string(), buckets])
    };
    object([
        ("generation", metrics.generation.to_string()),
        ("bounds", numbers(metrics.bounds.iter().copied())),
        ("entries", array(metrics.entries.iter().map(entry))),
        ("histograms", array(metrics.histograms.iter().map(histogram))),
        ("errors", array(metrics.errors.iter().map(|&(id, count)| numbers([id.into(), count])))),
    ])
}

fn dynamic(entry: &DynamicMetric) -> String {
    let total = entry.total;
    array([
        text(entry.name.as_str()),
        entry.category.0.to_string(),
        total.sum.to_string(),
        total.count.to_string(),
        total.last.to_string(),
        total.last_us.to_string(),
    ])
}

fn object<const FIELDS: usize>(fields: [(&str, String); FIELDS]) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn array(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(","))
}

fn numbers(values: impl IntoIterator<Item = u64>) -> String {
    array(values.into_iter().map(|value| value.to_string()))
}

fn or_null(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "null".into(), |value| value.to_string())
}

fn text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
