//! What was seen, one JSON object per file.

use serde_json::{Map, Value, json};
use telering::reader::{FileInfo, Layout, Positions};
use telering_core::layout::image::TimeBase;
use telering_core::names;

use super::look::{Look, per_second};

/// One line. Numbers are exact; `instance` is hexadecimal text.
pub(super) fn line(look: &Look) -> Value {
    let info = &look.info;
    let (layout, version) = match info.layout {
        Layout::Image { major, minor } => ("telering image".to_owned(), format!("{major}.{minor}")),
        Layout::Nixl(layout) => (format!("NIXL {layout}"), layout.version().to_string()),
        _ => (info.layout.to_string(), String::new()),
    };
    json!({
        "path": info.path.to_string_lossy(),
        "layout": layout,
        "version": version,
        "agent": look.label.agent,
        "pid": look.label.pid,
        "rank": look.label.rank,
        "hostname": info.identity.as_ref().map(|identity| &identity.hostname),
        "agent_instance": info.identity.as_ref().map(|identity| identity.agent_instance),
        "uid": info.identity.as_ref().map(|identity| identity.uid),
        "writer": info.writer,
        "liveness": info.liveness.as_str(),
        "instance": info.instance.map(|instance| format!("{instance:016x}")),
        "boots": info.boots,
        "clock": if info.time_base == TimeBase::Unix { "unix" } else { "boot" },
        "created_us": info.created_us,
        "heartbeat_us": info.heartbeat,
        "len": info.len,
        "capacity": info.capacity,
        "record_size": info.record_size,
        "positions": positions(look),
        "held": {
            "events": look.held.counts.events,
            "unverified": look.held.counts.unverified,
            "interrupted": look.held.counts.interrupted,
            "oldest_us": look.held.span.map(|span| span.0),
            "newest_us": look.held.span.map(|span| span.1),
            "covers_us": look.held.covers_us(),
            "tx_bytes": look.held.written,
            "rx_bytes": look.held.read,
            "tx_bytes_per_s": look.held.covers_us().and_then(|us| per_second(look.held.written, us)),
            "rx_bytes_per_s": look.held.covers_us().and_then(|us| per_second(look.held.read, us)),
        },
        "recorded": info.flow.map(|flow| flow.recorded),
        "exported": info.flow.map(|flow| flow.exported),
        "losses": info.flow.map(|flow| json!({
            "total": flow.lost.total(),
            "staging": flow.lost.staging,
            "exporter": flow.lost.exporter,
            "interrupted": flow.lost.interrupted,
            "backend": flow.lost.backend,
            "closing": flow.lost.closing,
        })),
        "notices": info.notices.map(|notices| json!({
            "names_changed": notices.names_changed,
            "dynamic_overflow": notices.dynamic_overflow,
            "refused": notices.refused,
            "file_trouble": notices.file_trouble,
        })),
        "totals_us": info.metrics_time,
        "totals": totals(info),
        "histograms": histograms(info),
    })
}

fn positions(look: &Look) -> Value {
    match look.info.positions {
        Positions::Image { committed, intent } => {
            json!({"committed": committed, "intent": intent, "overwritten": look.overwritten()})
        }
        Positions::Nixl { write_pos, read_pos, waiting } => {
            json!({"write_pos": write_pos, "read_pos": read_pos, "waiting": waiting, "full": look.is_full()})
        }
        _ => Value::Null,
    }
}

fn event_name(id: u32) -> String {
    names::by_id(id).map_or_else(|| format!("unknown({id})"), |row| row.file_name().to_owned())
}

/// By name. Errors are counted in `count`.
fn totals(info: &FileInfo) -> Option<Value> {
    let metrics = info.metrics.as_ref()?;
    let mut totals = Map::new();
    for entry in &metrics.entries {
        let total = entry.total;
        totals.insert(event_name(entry.id), json!({"count": total.count, "sum": total.sum, "last": total.last}));
    }
    for (id, count) in &metrics.errors {
        totals.insert(event_name(*id), json!({"count": count}));
    }
    for metric in info.dynamic.iter().flatten() {
        let total = metric.total;
        let value = json!({"count": total.count, "sum": total.sum, "last": total.last, "category": metric.category.to_string()});
        totals.insert(metric.name.as_str().to_owned(), value);
    }
    Some(Value::Object(totals))
}

/// By name: upper bounds in microseconds and the count of each bucket, the last one above all bounds.
fn histograms(info: &FileInfo) -> Option<Value> {
    let metrics = info.metrics.as_ref()?;
    let histograms = metrics.histograms.iter().map(|histogram| {
        let value = json!({"bounds_us": metrics.bounds, "buckets": histogram.buckets, "sum_us": histogram.sum});
        (event_name(histogram.id), value)
    });
    Some(Value::Object(histograms.collect()))
}
