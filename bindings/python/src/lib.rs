//! Telering for Python: the module `telering._telering`, which the package `telering` shows to programs.
//!
//! | module | what it knows |
//! |---|---|
//! | [`agent`] | `Agent`: settings, recording, counts, closing |
//! | [`transfer`] | `Transfer` and `XferTelemetry`: one transfer, and what it did |
//! | [`backend`] | `Backend` and `BackendEvent`: a backend's own events |
//! | [`numbers`] | `Counts` and `Total`: what an agent counted; all agents' numbers for Prometheus |
//! | [`values`] | numbers, names, statuses and durations as Python gives them |
//! | [`notes`] | warnings: kept until a Python thread comes by, then told to `logging` |
//! | [`life`] | which agents live; forks, the end of the interpreter, waiting without the interpreter's lock |
//! | [`command`] | the command `telering` |
//!
//! Two rules keep a host safe. No thread of ours ever wants the interpreter's lock, so nothing of ours can wait for a
//! thread that waits for us. And no lock of ours is held while Python code runs or while another thread may fork.

mod agent;
mod backend;
mod command;
mod life;
mod notes;
mod numbers;
mod transfer;
mod values;

/// The extension module. It counts on the interpreter's lock (see [`life`]), so an interpreter that can do without one
/// is told to take it.
#[pyo3::pymodule(gil_used = true)]
mod _telering {
    #[pymodule_export]
    use crate::agent::Agent;
    #[pymodule_export]
    use crate::backend::{Backend, BackendEvent};
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::life::{after_fork, at_exit, enter_interpreter};
    #[pymodule_export]
    use crate::numbers::{Counts, Total, render_prometheus};
    #[pymodule_export]
    use crate::transfer::{Transfer, XferTelemetry};
    #[pymodule_export]
    use crate::values::StartError;

    /// Version of the library.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The content type of what `render_prometheus` returns.
    #[pymodule_export]
    const PROMETHEUS_CONTENT_TYPE: &str = telering::prometheus::CONTENT_TYPE;
}
