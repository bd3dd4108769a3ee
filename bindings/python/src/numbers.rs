//! What an agent counted.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use telering::core::snapshot::{self, Flow, Snapshot};
use telering::core::{Status, names};

use crate::life;

/// Application events: `recorded == exported + lost` when nothing is being recorded.
#[pyclass(module = "telering", frozen, eq, get_all)]
#[derive(PartialEq)]
pub(crate) struct Counts {
    /// Events that the application recorded.
    recorded: u64,
    /// Events that reached the exporter.
    exported: u64,
    /// Events that were lost, for whatever cause.
    lost: u64,
    /// Overwritten in a thread's ring before the flush thread came.
    lost_staging: u64,
    /// Refused by the exporter.
    lost_exporter: u64,
    /// Announced and never finished.
    lost_interrupted: u64,
    /// Backend events over those that a backend keeps.
    lost_backend: u64,
    /// Not flushed before the time to close ran out.
    lost_closing: u64,
}

impl From<Flow> for Counts {
    fn from(flow: Flow) -> Counts {
        Counts {
            recorded: flow.recorded,
            exported: flow.exported,
            lost: flow.lost.total(),
            lost_staging: flow.lost.staging,
            lost_exporter: flow.lost.exporter,
            lost_interrupted: flow.lost.interrupted,
            lost_backend: flow.lost.backend,
            lost_closing: flow.lost.closing,
        }
    }
}

#[pymethods]
impl Counts {
    fn __repr__(&self) -> String {
        format!("Counts(recorded={}, exported={}, lost={})", self.recorded, self.exported, self.lost)
    }
}

/// Running total of one kind of event.
#[pyclass(module = "telering", frozen, eq, get_all)]
#[derive(PartialEq)]
pub(crate) struct Total {
    /// Sum of all values.
    sum: u64,
    /// Number of events.
    count: u64,
    /// Value of the last event.
    last: u64,
}

#[pymethods]
impl Total {
    fn __repr__(&self) -> String {
        format!("Total(sum={}, count={}, last={})", self.sum, self.count, self.last)
    }
}

/// The totals of all built-in events by their names. An error has the status text as its name.
pub(crate) fn totals<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyDict>> {
    let by_name = PyDict::new(py);
    for (id, total) in snapshot::ENTRY_IDS.into_iter().zip(&snapshot.entries) {
        if let Some(row) = names::index_of(id) {
            by_name
                .set_item(names::BUILT_IN[row].name, Total { sum: total.sum, count: total.count, last: total.last })?;
        }
    }
    for status in Status::ALL {
        let count = snapshot.errors[status.index()];
        by_name.set_item(status.text(), Total { sum: count, count, last: u64::from(count > 0) })?;
    }
    Ok(by_name)
}

/// The numbers of all agents of this process as text for Prometheus, whatever they export.
#[pyfunction]
pub(crate) fn render_prometheus(py: Python<'_>) -> String {
    let mut page = String::new();
    // It may wait for flushes. Writing to a String does not fail.
    let _ = life::detached(py, || telering::prometheus::render(&mut page));
    page
}
