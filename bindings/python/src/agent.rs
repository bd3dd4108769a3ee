//! An agent: settings, recording, counts, closing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use telering::{Mode, Telemetry, TransferRecord};

use crate::backend::Backend;
use crate::life::{self, Living};
use crate::notes::Notes;
use crate::numbers::{self, Counts};
use crate::transfer::{Transfer, XferTelemetry};
use crate::values::{self, StartError};

/// One agent's telemetry. Recording never waits and never raises for what is wrong with telemetry: that ends in one
/// warning of the logger `telering` and in less telemetry.
#[pyclass(module = "telering", frozen, weakref)]
pub(crate) struct Agent {
    living: Arc<Living>,
    off: bool,
    closed: AtomicBool,
}

impl Agent {
    #[inline(always)]
    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.living.telemetry
    }

    /// Tells the warnings that came up. Last thing in a call: the program's own code may run.
    #[inline(always)]
    pub(crate) fn tell(&self, py: Python<'_>) {
        self.living.notes.tell(py);
    }

    pub(crate) fn is_off(&self) -> bool {
        self.off
    }

    fn close_now(&self, py: Python<'_>) -> Counts {
        self.closed.store(true, Ordering::Relaxed);
        let flow = life::detached(py, || self.telemetry().close());
        self.tell(py);
        flow.into()
    }
}

#[pymethods]
impl Agent {
    /// Starts an agent. What is not given comes from the environment, as everywhere in telering.
    #[new]
    #[pyo3(signature = (
        name, capture_telemetry = false, *, enable = None, dir = None, buffer_size = None, run_interval = None,
        staging_records = None, metrics = None, rank = None, file_mode = None, histogram_buckets_us = None,
        close_patience = None, exporter = None, plugin_dir = None, prometheus_port = None, prometheus_local = None,
        strict = false, ignore_environment = false
    ))]
    #[allow(clippy::too_many_arguments)] // Keywords of one Python call.
    fn new(
        py: Python<'_>,
        name: &Bound<'_, PyString>,
        capture_telemetry: bool,
        enable: Option<bool>,
        dir: Option<PathBuf>,
        buffer_size: Option<u64>,
        run_interval: Option<f64>,
        staging_records: Option<usize>,
        metrics: Option<&Bound<'_, PyString>>,
        rank: Option<&Bound<'_, PyAny>>,
        file_mode: Option<u32>,
        histogram_buckets_us: Option<Vec<u64>>,
        close_patience: Option<f64>,
        exporter: Option<&Bound<'_, PyString>>,
        plugin_dir: Option<PathBuf>,
        prometheus_port: Option<u16>,
        prometheus_local: Option<bool>,
        strict: bool,
        ignore_environment: bool,
    ) -> PyResult<Agent> {
        let notes = Arc::new(Notes::default());
        let mut builder = Telemetry::builder(name.to_string_lossy())
            .capture_telemetry(capture_telemetry)
            .strict(strict)
            .ignore_environment(ignore_environment);
        if let Some(enable) = enable {
            builder = builder.enable(enable);
        }
        if let Some(dir) = dir {
            builder = builder.dir(dir);
        }
        if let Some(events) = buffer_size {
            builder = builder.buffer_size(events);
        }
        if let Some(interval) = run_interval {
            builder = builder.run_interval(values::seconds(interval, "run_interval")?);
        }
        if let Some(records) = staging_records {
            builder = builder.staging_records(records);
        }
        if let Some(patterns) = metrics {
            builder = builder.metrics(patterns.to_string_lossy());
        }
        if let Some(rank) = rank {
            builder = builder.rank(rank.str()?.to_string_lossy());
        }
        if let Some(mode) = file_mode {
            builder = builder.file_mode(mode);
        }
        if let Some(bounds) = histogram_buckets_us {
            builder = builder.histogram_bounds(bounds);
        }
        if let Some(patience) = close_patience {
            builder = builder.close_patience(values::seconds(patience, "close_patience")?);
        }
        if let Some(name) = exporter {
            let name = name.to_string_lossy();
            // The two that every program has, however they are written; all others are exact, as in the environment.
            builder = match name.to_ascii_lowercase().as_str() {
                "nop" => builder.nop(),
                "prometheus" => builder.prometheus(),
                _ => builder.exporter_name(name),
            };
        }
        if let Some(dir) = plugin_dir {
            builder = builder.plugin_dir(dir);
        }
        if let Some(port) = prometheus_port {
            builder = builder.prometheus_port(port);
        }
        if let Some(local) = prometheus_local {
            builder = builder.prometheus_local(local);
        }
        let heard = Arc::clone(&notes);
        let builder = builder.on_warning(move |warning| heard.hear(warning));
        // Making a file may wait for another process that makes one in the same folder.
        let started = life::detached(py, || builder.try_build());
        let telemetry = started.map_err(|error| StartError::new_err(error.to_string()))?;
        let off = telemetry.mode() == Mode::Off;
        let living = Arc::new(Living::new(telemetry, notes));
        life::enter(py, &living);
        living.notes.tell(py);
        Ok(Agent { living, off, closed: AtomicBool::new(false) })
    }

    /// Name of the agent.
    #[getter]
    fn name(&self) -> &str {
        self.telemetry().name()
    }

    /// How much it does: "off", "captured" (in the process only) or "exported".
    #[getter]
    fn mode(&self) -> &'static str {
        match self.telemetry().mode() {
            Mode::Off => "off",
            Mode::Captured => "captured",
            Mode::Exported => "exported",
            _ => "unknown",
        }
    }

    /// The telemetry file, None if there is none. It can change: somebody may take the name away.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.telemetry().path()
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Memory was registered: the bytes of all descriptors of one call.
    fn memory_registered(&self, py: Python<'_>, bytes: u64) {
        self.telemetry().memory_registered(bytes);
        self.tell(py);
    }

    /// Memory was deregistered: the bytes of all descriptors of one call.
    fn memory_deregistered(&self, py: Python<'_>, bytes: u64) {
        self.telemetry().memory_deregistered(bytes);
        self.tell(py);
    }

    /// Metadata of this many bytes went to a peer.
    fn metadata_sent(&self, py: Python<'_>, bytes: u64) {
        self.telemetry().metadata_sent(bytes);
        self.tell(py);
    }

    /// Metadata of this many bytes came from a peer.
    fn metadata_received(&self, py: Python<'_>, bytes: u64) {
        self.telemetry().metadata_received(bytes);
        self.tell(py);
    }

    /// A connection to a peer came up.
    fn connected(&self, py: Python<'_>) {
        self.telemetry().connected();
        self.tell(py);
    }

    /// A connection to a peer went away.
    fn disconnected(&self, py: Python<'_>) {
        self.telemetry().disconnected();
        self.tell(py);
    }

    /// Begins a transfer, "write" or "read".
    #[pyo3(signature = (operation, bytes, descs = 1))]
    fn transfer(this: Py<Agent>, operation: &Bound<'_, PyString>, bytes: u64, descs: u64) -> PyResult<Transfer> {
        let operation = values::operation(operation)?;
        Ok(Transfer::begin(this, operation, bytes, values::descriptors(descs)))
    }

    /// Records a finished transfer that the program timed itself, in microseconds. It completed now.
    fn record_transfer(
        &self,
        py: Python<'_>,
        operation: &Bound<'_, PyString>,
        bytes: u64,
        descs: u64,
        post_us: u64,
        xfer_us: u64,
    ) -> PyResult<()> {
        self.telemetry().record_transfer(&TransferRecord {
            operation: values::operation(operation)?,
            bytes,
            descriptors: values::descriptors(descs),
            post_duration: Duration::from_micros(post_us),
            xfer_duration: Duration::from_micros(xfer_us),
        });
        self.tell(py);
        Ok(())
    }

    /// What a transfer of this agent did: None while it is under way, when it failed, when telemetry is off, and for
    /// anything else, such as the None that a program has in place of a transfer.
    fn get_xfer_telemetry(&self, py: Python<'_>, handle: &Bound<'_, PyAny>) -> PyResult<Option<Py<XferTelemetry>>> {
        match handle.cast::<Transfer>() {
            Ok(transfer) if transfer.get().belongs_to(self) => transfer.get().told(py),
            _ => Ok(None),
        }
    }

    /// An operation failed.
    fn error(&self, py: Python<'_>, status: i64) -> PyResult<()> {
        self.telemetry().error(values::status(status)?);
        self.tell(py);
        Ok(())
    }

    /// An event of the application: category CUSTOM. Names are cut to 31 bytes.
    fn event(&self, py: Python<'_>, name: &Bound<'_, PyString>, value: u64) {
        self.telemetry().event(&name.to_string_lossy(), value);
        self.tell(py);
    }

    /// A handle for a backend's own events.
    fn backend(this: Py<Agent>) -> Backend {
        Backend::of(this)
    }

    /// Running totals of all built-in events as of now, by name.
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        numbers::totals(py, &self.telemetry().snapshot())
    }

    /// Application events recorded, exported and lost, as of the last flush.
    fn counts(&self) -> Counts {
        self.telemetry().counts().into()
    }

    /// This agent's numbers as text for Prometheus, for programs that have a /metrics of their own; no port is opened.
    /// Empty while telemetry is off.
    fn render_prometheus(&self, py: Python<'_>) -> String {
        let mut page = String::new();
        // It may wait for a flush. Writing to a String does not fail.
        let _ = life::detached(py, || self.telemetry().render_prometheus(&mut page));
        self.tell(py);
        page
    }

    /// Where Prometheus finds this agent: host and port, with the true one. None without the exporter "prometheus".
    #[getter]
    fn prometheus_address(&self) -> Option<(String, u16)> {
        self.telemetry().prometheus_address().map(|address| (address.ip().to_string(), address.port()))
    }

    /// Exports what was recorded before this call; False if that took longer than `timeout` seconds.
    #[pyo3(signature = (timeout = 2.0))]
    fn flush(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let patience = values::seconds(timeout, "timeout")?;
        let flushed = life::detached(py, || self.telemetry().flush_now(patience));
        self.tell(py);
        Ok(flushed)
    }

    /// Stops recording, exports what is there, and returns the final counts; a second call returns them again.
    fn close(&self, py: Python<'_>) -> Counts {
        self.close_now(py)
    }

    fn __enter__(this: Py<Agent>) -> Py<Agent> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close_now(py);
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { ", closed" } else { "" };
        format!("<telering.Agent {:?}, {}{closed}>", self.name(), self.mode())
    }
}

impl Drop for Agent {
    /// The last reference went: the agent closes, without the interpreter's lock while it waits.
    fn drop(&mut self) {
        if self.closed() || self.off || self.living.is_parents.load(Ordering::Relaxed) {
            return;
        }
        Python::try_attach(|py| {
            // An object may go while an exception is on its way; the program's logging must not meet it.
            let on_its_way = PyErr::take(py);
            self.close_now(py);
            if let Some(error) = on_its_way {
                error.restore(py);
            }
        });
    }
}
