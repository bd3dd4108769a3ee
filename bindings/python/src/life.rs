//! Which agents live; forks, the end of the interpreter, and waiting without the interpreter's lock.
//!
//! At the end of the interpreter Python stops every thread that asks for its lock, wherever that thread is. Inside
//! native code that is the end of the process, so the end waits until nobody is in here who will ask.

use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use telering::warn::{Warning, WarningKind};
use telering::{Mode, Telemetry};

use crate::notes::Notes;

/// How long the end of the interpreter waits for threads that are on their way out of here.
const LEAVING: Duration = Duration::from_secs(2);

static EXITING: AtomicBool = AtomicBool::new(false);
/// Threads within a [`Section`].
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The process that has been prepared for agents; 0 is none.
static PREPARED: AtomicU32 = AtomicU32::new(0);
/// All agents. Held for a few instructions by threads that hold the interpreter's lock, so no fork finds it held.
static AGENTS: Mutex<Vec<Weak<Living>>> = Mutex::new(Vec::new());

/// What an agent consists of, beside its Python object.
pub(crate) struct Living {
    pub(crate) telemetry: Telemetry,
    pub(crate) notes: Arc<Notes>,
    /// This process is a child that was forked from the agent's.
    pub(crate) is_parents: AtomicBool,
}

impl Living {
    pub(crate) fn new(telemetry: Telemetry, notes: Arc<Notes>) -> Living {
        Living { telemetry, notes, is_parents: AtomicBool::new(false) }
    }

    /// Whoever uses the agent in this child hears of it once. Whoever doesn't hears nothing.
    fn stays_with_the_parent(&self) {
        if !self.is_parents.swap(true, Ordering::Relaxed) && self.telemetry.mode() != Mode::Off {
            let message = format!(
                "the agent {:?} was made before this process was forked: it records nothing here; make another one in \
                 this process",
                self.telemetry.name()
            );
            self.notes.hear(&Warning::new(WarningKind::Fork, message));
        }
    }
}

/// Whether the interpreter has begun to end.
pub(crate) fn is_exiting() -> bool {
    EXITING.load(Ordering::Acquire)
}

/// A stretch in which this thread gives up the interpreter's lock and will ask for it again.
pub(crate) struct Section(());

impl Section {
    pub(crate) fn enter() -> Section {
        INSIDE.fetch_add(1, Ordering::AcqRel);
        Section(())
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        // A child counts from 0, also for whoever forked inside a section.
        let _ = INSIDE.fetch_update(Ordering::AcqRel, Ordering::Acquire, |inside| inside.checked_sub(1));
    }
}

/// Waits for something without the interpreter's lock.
pub(crate) fn detached<T: Send>(py: Python<'_>, wait: impl FnOnce() -> T + Send) -> T {
    let _section = Section::enter();
    if is_exiting() {
        // What there is to wait for never needs the lock.
        return wait();
    }
    py.detach(wait)
}

fn agents() -> MutexGuard<'static, Vec<Weak<Living>>> {
    AGENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Enters a new agent, so that it is closed when the interpreter ends.
pub(crate) fn enter(py: Python<'_>, living: &Arc<Living>) {
    {
        let mut agents = agents();
        if agents.len() == agents.capacity() {
            agents.retain(|agent| agent.strong_count() > 0);
        }
        agents.push(Arc::downgrade(living));
    }
    let this_process = process::id();
    if PREPARED.swap(this_process, Ordering::AcqRel) != this_process {
        // What goes wrong here costs the last moments of a child, no more.
        if let Err(error) = py.import("telering._life").and_then(|module| module.call_method0("first_agent")) {
            error.write_unraisable(py, None);
        }
    }
}

/// Called when an interpreter imports the package. Agents, forks and the end are those of one interpreter.
///
/// # Errors
/// ImportError in any other interpreter of the process.
#[pyfunction]
pub(crate) fn enter_interpreter(py: Python<'_>) -> PyResult<()> {
    static FIRST: AtomicUsize = AtomicUsize::new(0);
    // Each interpreter has a module `sys` of its own.
    let this = py.import("sys")?.as_ptr() as usize;
    match FIRST.compare_exchange(0, this, Ordering::AcqRel, Ordering::Acquire) {
        Err(first) if first != this => Err(PyImportError::new_err(
            "telering works in one interpreter of a process, and another one imported it first: record there, or in a \
             process of its own",
        )),
        _ => Ok(()),
    }
}

/// Closes all agents, and waits until nobody will ask for the interpreter's lock from in here. Called when the
/// interpreter ends, before Python stops its threads.
#[pyfunction]
pub(crate) fn at_exit(py: Python<'_>) {
    let living: Vec<Arc<Living>> = agents().iter().filter_map(Weak::upgrade).collect();
    // First the warnings: those of the last flush can't be told any more.
    living.iter().for_each(|agent| agent.notes.tell(py));
    EXITING.store(true, Ordering::Release);
    py.detach(|| {
        for agent in &living {
            agent.telemetry.close();
        }
        let end = Instant::now() + LEAVING;
        while INSIDE.load(Ordering::Acquire) > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Called in a forked child: the parent's agents are the parent's, and nobody else is in here.
#[pyfunction]
pub(crate) fn after_fork() {
    INSIDE.store(0, Ordering::Release);
    EXITING.store(false, Ordering::Release);
    PREPARED.store(0, Ordering::Release);
    let parents = std::mem::take(&mut *agents());
    parents.iter().filter_map(Weak::upgrade).for_each(|agent| agent.stays_with_the_parent());
}
