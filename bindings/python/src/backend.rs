//! A backend's own events.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::agent::Agent;

/// One event that a backend added.
#[pyclass(module = "telering", frozen, eq, get_all)]
#[derive(PartialEq)]
pub(crate) struct BackendEvent {
    /// When it was added: Unix microseconds.
    timestamp_us: u64,
    /// Its name.
    name: String,
    /// Its value.
    value: u64,
}

#[pymethods]
impl BackendEvent {
    fn __repr__(&self) -> String {
        format!("BackendEvent(timestamp_us={}, name={:?}, value={})", self.timestamp_us, self.name, self.value)
    }
}

/// A backend's handle for its own events, with the names of NIXL's guide and those of Python.
#[pyclass(module = "telering", frozen, weakref)]
pub(crate) struct Backend {
    agent: Py<Agent>,
    backend: telering::Backend,
}

impl Backend {
    pub(crate) fn of(agent: Py<Agent>) -> Backend {
        let backend = agent.get().telemetry().backend();
        Backend { agent, backend }
    }
}

#[pymethods]
impl Backend {
    /// A handle of its own for a backend of this agent.
    #[new]
    fn new(agent: Py<Agent>) -> Backend {
        Backend::of(agent)
    }

    /// Whether events are kept at all: the agent records.
    #[getter]
    fn enabled(&self) -> bool {
        self.backend.is_enabled()
    }

    /// Adds an event: it is exported with category BACKEND at the next flush. At most 1000 wait for that; what is
    /// more counts as lost. Names are cut to 31 bytes.
    fn add_telemetry_event(&self, py: Python<'_>, event_name: &Bound<'_, PyString>, value: u64) {
        self.backend.add_event(&event_name.to_string_lossy(), value);
        self.agent.get().tell(py);
    }

    /// Takes the events that no flush has taken yet, oldest first. They are not exported then.
    fn get_telemetry_events(&self, py: Python<'_>) -> Vec<BackendEvent> {
        let events = self.backend.events();
        self.agent.get().tell(py);
        let told = |event: telering::BackendEvent| BackendEvent {
            timestamp_us: event.timestamp_us,
            name: event.name.as_str().to_owned(),
            value: event.value,
        };
        events.into_iter().map(told).collect()
    }

    /// The same as `add_telemetry_event`.
    #[pyo3(name = "addTelemetryEvent")]
    fn add_as_in_the_guide(&self, py: Python<'_>, event_name: &Bound<'_, PyString>, value: u64) {
        self.add_telemetry_event(py, event_name, value);
    }

    /// The same as `get_telemetry_events`.
    #[pyo3(name = "getTelemetryEvents")]
    fn get_as_in_the_guide(&self, py: Python<'_>) -> Vec<BackendEvent> {
        self.get_telemetry_events(py)
    }
}
