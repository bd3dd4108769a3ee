//! One transfer, and what it did.

use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use telering::{Operation, Status};

use crate::agent::Agent;
use crate::values;

/// What one finished transfer did, in the fields and units of NIXL's Python API: all whole numbers.
#[pyclass(module = "telering", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct XferTelemetry {
    /// When it began: microseconds of the monotonic clock, that of `time.monotonic_ns()`.
    #[pyo3(get, name = "startTime")]
    start_time: u64,
    /// Microseconds from the beginning until the backend had the request.
    #[pyo3(get, name = "postDuration")]
    post_duration: u64,
    /// Microseconds from the beginning to completion; includes the post.
    #[pyo3(get, name = "xferDuration")]
    xfer_duration: u64,
    /// Bytes moved.
    #[pyo3(get, name = "totalBytes")]
    total_bytes: u64,
    /// Descriptors of the request.
    #[pyo3(get, name = "descCount")]
    desc_count: u64,
}

#[pymethods]
impl XferTelemetry {
    fn __repr__(&self) -> String {
        format!(
            "XferTelemetry(startTime={}, postDuration={}, xferDuration={}, totalBytes={}, descCount={})",
            self.start_time, self.post_duration, self.xfer_duration, self.total_bytes, self.desc_count
        )
    }
}

/// A transfer under way. In a `with` block it is done when the block ends, and failed when an exception leaves it.
/// Thrown away unfinished it records NIXL_ERR_CANCELED.
#[pyclass(module = "telering", frozen, weakref)]
pub(crate) struct Transfer {
    // Goes before the agent: an unfinished one has an error to record, and the last to hold an agent closes it.
    state: Mutex<State>,
    agent: Py<Agent>,
    /// Microseconds of the monotonic clock; 0 while telemetry is off.
    began_us: u64,
    bytes: u64,
    descriptors: u32,
}

struct State {
    transfer: telering::Transfer,
    /// What was told once: it doesn't change, and asking again costs nothing.
    told: Option<Py<XferTelemetry>>,
}

// The status that `failed` takes unless told another, as its signature and the stubs show it.
const _: () = assert!(Status::Backend.code() == -3);

/// The clock of Python's `time.monotonic_ns()` and of NIXL's `startTime`.
fn monotonic_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

impl Transfer {
    #[inline(always)]
    pub(crate) fn begin(agent: Py<Agent>, operation: Operation, bytes: u64, descriptors: u32) -> Transfer {
        let of = agent.get();
        let began_us = if of.is_off() { 0 } else { monotonic_us() };
        let transfer = of.telemetry().begin_transfer(operation, bytes, descriptors);
        Transfer { agent, began_us, bytes, descriptors, state: Mutex::new(State { transfer, told: None }) }
    }

    pub(crate) fn belongs_to(&self, agent: &Agent) -> bool {
        std::ptr::eq(self.agent.get(), agent)
    }

    /// Never waits: a transfer is one thread's at a time, and waiting with the interpreter's lock would stop all.
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state.try_lock().map_err(|_| {
            PyRuntimeError::new_err(
                "two threads use this transfer at the same time: give each thread a transfer of its own",
            )
        })
    }

    /// What it did: `None` while it is under way, when it failed, when telemetry is off.
    pub(crate) fn told(&self, py: Python<'_>) -> PyResult<Option<Py<XferTelemetry>>> {
        // In use is not finished.
        let Ok(mut state) = self.state.try_lock() else { return Ok(None) };
        if let Some(told) = &state.told {
            return Ok(Some(told.clone_ref(py)));
        }
        let Some((post_duration, xfer_duration)) = state.transfer.durations_us() else { return Ok(None) };
        let new = XferTelemetry {
            start_time: self.began_us,
            post_duration,
            xfer_duration,
            total_bytes: self.bytes,
            desc_count: self.descriptors.into(),
        };
        let told = Py::new(py, new)?;
        state.told = Some(told.clone_ref(py));
        Ok(Some(told))
    }

    fn fail_with(&self, py: Python<'_>, status: Status) -> PyResult<()> {
        self.state()?.transfer.fail(status);
        self.agent.get().tell(py);
        Ok(())
    }
}

#[pymethods]
impl Transfer {
    /// The backend has the request. A transfer that completes inside the post needs no such call.
    fn posted(&self) -> PyResult<()> {
        self.state()?.transfer.posted();
        Ok(())
    }

    /// The transfer completed. A second call, or one after `failed`, does nothing.
    fn done(&self, py: Python<'_>) -> PyResult<()> {
        self.state()?.transfer.finish();
        self.agent.get().tell(py);
        Ok(())
    }

    /// The transfer failed: one error event. A second call, or one after `done`, does nothing.
    #[pyo3(signature = (status = -3), text_signature = "($self, /, status=-3)")]
    fn failed(&self, py: Python<'_>, status: i64) -> PyResult<()> {
        self.fail_with(py, values::status(status)?)
    }

    /// Whether it has finished well. Always false while telemetry is off.
    #[getter]
    fn finished(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.transfer.is_finished())
    }

    /// What it did: None while it is under way, when it failed, and when telemetry is off.
    #[getter]
    fn telemetry(&self, py: Python<'_>) -> PyResult<Option<Py<XferTelemetry>>> {
        self.told(py)
    }

    fn __enter__(this: Py<Transfer>) -> Py<Transfer> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if kind.is_none() { self.done(py) } else { self.fail_with(py, values::status_of_exception(kind)) }
    }
}
