//! Warnings: kept until a Python thread comes by, then told to `logging`.
//!
//! A warning can arise on any thread: a flush thread that knows nothing of Python, or a recording one. Whoever wants
//! Python's logging needs the interpreter's lock and runs the program's own code, so the thread that has the warning
//! only notes it down. It is told by the next Python thread that calls anything of the agent, and when the agent
//! closes at the latest.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use telering::warn::Warning;

use crate::life::{self, Section};

/// Warnings that wait. An agent has a few dozen different ones, most of them said once.
const WAITING_MAX: usize = 64;
/// Looks at a lock that another thread holds for the time of one push.
const TRIES: u32 = 1000;

/// The warnings of one agent.
#[derive(Default)]
pub(crate) struct Notes {
    /// Whether there are any, so that a record call pays for one look at a word.
    any: AtomicBool,
    waiting: Mutex<Vec<String>>,
}

impl Notes {
    /// Takes a warning down. Waits for nobody: a forked child may have inherited a lock that nobody will open.
    pub(crate) fn hear(&self, warning: &Warning) {
        if life::is_exiting() {
            // Nobody can be told any more: what daemon threads still record is refused, as it should be.
            return;
        }
        for _ in 0..TRIES {
            if let Ok(mut waiting) = self.waiting.try_lock() {
                if waiting.len() < WAITING_MAX {
                    waiting.push(warning.message.clone());
                }
                self.any.store(true, Ordering::Release);
                return;
            }
            std::thread::yield_now();
        }
        // Held for so long only in a child that was forked at that moment, whose agent is its parent's: it has
        // nothing to say there.
    }

    /// Tells what was noted. Cheap when there is nothing.
    #[inline(always)]
    pub(crate) fn tell(&self, py: Python<'_>) {
        if self.any.load(Ordering::Relaxed) {
            self.tell_all(py);
        }
    }

    #[cold]
    fn tell_all(&self, py: Python<'_>) {
        if life::is_exiting() {
            return;
        }
        // The end of the interpreter waits until this thread has left the program's logging.
        let _section = Section::enter();
        loop {
            self.any.store(false, Ordering::Relaxed);
            let Ok(mut waiting) = self.waiting.try_lock() else {
                // Whoever holds it sets the mark again.
                return;
            };
            let messages = std::mem::take(&mut *waiting);
            // Before any Python runs: it may come back here.
            drop(waiting);
            if messages.is_empty() {
                return;
            }
            for message in messages {
                if let Err(error) = log(py, &message) {
                    give_back(py, error);
                }
            }
        }
    }
}

fn log(py: Python<'_>, message: &str) -> PyResult<()> {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let logger = LOGGER
        .get_or_try_init(py, || py.import("logging")?.call_method1("getLogger", ("telering",)).map(Bound::unbind))?;
    logger.bind(py).call_method1("warning", ("%s", message)).map(drop)
}

/// An error of the program's logging is not the recording's error. A Ctrl-C that came meanwhile comes again.
fn give_back(py: Python<'_>, error: PyErr) {
    let leave = error.is_instance_of::<PyKeyboardInterrupt>(py) || error.is_instance_of::<PySystemExit>(py);
    let again = leave && py.import("_thread").and_then(|module| module.call_method0("interrupt_main")).is_ok();
    if !again {
        error.write_unraisable(py, None);
    }
}
