//! The one place that loads libraries and calls into them.
//!
//! A library is never unloaded: threads of its own may run in it for as long as the process lives.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

use super::abi::{ABI_VERSION, Agent, Event, Failure, GONE, MESSAGE_SIZE, SYMBOL, Table, Totals};
use crate::exporter::AgentContext;

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// Events that were not taken, as the plug-in says: any number.
    pub(super) lost: u64,
    /// Why, as the plug-in says; never empty.
    pub(super) message: String,
    /// The plug-in is not to be called again.
    pub(super) gone: bool,
}

/// A loaded plug-in with the state that it has for one agent.
pub(super) struct Loaded {
    table: Table,
    state: *mut c_void,
}

// SAFETY: the header says that all calls for one state come one at a time, from any thread; the table is constant.
unsafe impl Send for Loaded {}

impl Loaded {
    /// Loads a library that was looked at before.
    pub(super) fn load(path: &Path) -> Result<Loaded, String> {
        if is_privileged() {
            return Err("is not loaded: this program runs with another user's rights".into());
        }
        let file = CString::new(path.as_os_str().as_bytes()).map_err(|_| "has a NUL in its path")?;
        // SAFETY: the path is a string of C. Loading runs the library's constructors, which the user asked for by
        // choosing this plug-in.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE) };
        if handle.is_null() {
            return Err(format!("can't be loaded: {}", last_error()));
        }
        let symbol = CString::new(SYMBOL).unwrap_or_default();
        // SAFETY: the handle is open, the symbol is a string of C.
        let table = unsafe { libc::dlsym(handle, symbol.as_ptr()) }.cast_const().cast::<u32>();
        if table.is_null() || !table.cast::<Table>().is_aligned() {
            return Err(format!("defines no usable {SYMBOL}: {}", last_error()));
        }
        // SAFETY: the symbol is a constant of at least two words, as the look into the file showed.
        let (version, size) = unsafe { (table.read(), table.add(1).read()) };
        if version != ABI_VERSION || (size as usize) < size_of::<Table>() {
            return Err(format!("has a table of version {version} and {size} bytes in memory, unlike in its file"));
        }
        // SAFETY: the plug-in says that its table is at least as long as ours, and the file that its symbol is.
        let table = unsafe { table.cast::<Table>().read() };
        Ok(Loaded { table, state: ptr::null_mut() })
    }

    /// Opens the exporter for an agent. Everything that it learns stays where it is for ever.
    pub(super) fn open(&mut self, agent: &AgentContext) -> Result<(), Failed> {
        let Some(open) = self.table.open else {
            return Err(Failed { lost: 0, message: "its table has no function open".into(), gone: true });
        };
        if self.table.export_events.is_none() {
            return Err(Failed { lost: 0, message: "its table has no function export_events".into(), gone: true });
        }
        let agent: &'static Agent = Box::leak(Box::new(told(agent)));
        let state = &raw mut self.state;
        // SAFETY: as the header demands: a place for the state, and an agent that stays for ever.
        outcome(0, |failure| unsafe { open(state, agent, failure) })
    }

    pub(super) fn export(&mut self, events: &[Event]) -> Result<(), Failed> {
        let (Some(export), count) = (self.table.export_events, events.len() as u64) else { return Ok(()) };
        // SAFETY: the state is the one that this plug-in made; the events are there for the time of the call.
        outcome(count, |failure| unsafe { export(self.state, events.as_ptr(), count, failure) })
    }

    pub(super) fn publish(&mut self, totals: &Totals) -> Result<(), Failed> {
        let Some(publish) = self.table.publish else { return Ok(()) };
        // SAFETY: the state is the one that this plug-in made; the numbers are there for the time of the call.
        outcome(0, |failure| unsafe { publish(self.state, totals, failure) })
    }

    pub(super) fn housekeep(&mut self, now_us: u64) -> Result<(), Failed> {
        let Some(housekeep) = self.table.housekeep else { return Ok(()) };
        // SAFETY: the state is the one that this plug-in made.
        outcome(0, |failure| unsafe { housekeep(self.state, now_us, failure) })
    }

    /// The last call: the state is the plug-in's to free.
    pub(super) fn close(self, now_us: u64) -> Result<(), Failed> {
        let Some(close) = self.table.close else { return Ok(()) };
        // SAFETY: the state is the one that this plug-in made, and is not used again.
        outcome(0, |failure| unsafe { close(self.state, now_us, failure) })
    }

    /// Whether the plug-in wants the running totals.
    pub(super) fn wants_totals(&self) -> bool {
        self.table.publish.is_some()
    }
}

/// Makes a call that may fail.
fn outcome(events: u64, call: impl FnOnce(&mut Failure) -> i32) -> Result<(), Failed> {
    let mut failure = Failure { size: size_of::<Failure>() as u64, lost: events, message: [0; MESSAGE_SIZE] };
    let status = call(&mut failure);
    if status == 0 {
        return Ok(());
    }
    let text = failure.message.split(|&byte| byte == 0).next().unwrap_or_default();
    let message = match text {
        [] => format!("it says no more than the number {status}"),
        text => String::from_utf8_lossy(text).into_owned(),
    };
    Err(Failed { lost: failure.lost, message, gone: status == GONE })
}

/// An agent in the words of C. What it points to is never freed.
fn told(agent: &AgentContext) -> Agent {
    // A name may hold any character; one of C's ends at a NUL.
    let text = |text: &str| {
        let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        Box::leak(text.into_boxed_c_str()).as_ptr()
    };
    let bounds: &'static [u64] = Box::leak(agent.histogram_bounds.clone().into_boxed_slice());
    Agent {
        size: size_of::<Agent>() as u64,
        name: text(&agent.name),
        rank: text(&agent.rank),
        hostname: text(&agent.hostname),
        host: text(concat!("telering ", env!("CARGO_PKG_VERSION"))),
        instance: agent.instance,
        pid: agent.pid,
        started_us: agent.started_us,
        histogram_bounds: bounds.as_ptr(),
        histogram_bounds_count: bounds.len() as u64,
        warn: Some(warn),
        warn_context: ptr::from_ref::<AgentContext>(Box::leak(Box::new(agent.clone()))).cast_mut().cast(),
    }
}

/// What a plug-in calls to tell the user something, from any thread.
extern "C" fn warn(context: *mut c_void, message: *const c_char) {
    if context.is_null() || message.is_null() {
        return;
    }
    // SAFETY: the context is the one of `told`, which stays for ever; the header demands a string of C.
    let (agent, message) = unsafe { (&*context.cast::<AgentContext>(), CStr::from_ptr(message)) };
    agent.warn(message.to_string_lossy());
}

/// Why the loader failed, in its own words.
fn last_error() -> String {
    // SAFETY: the text belongs to this thread until its next call of the loader, and is copied before.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader doesn't say why".into();
    }
    // SAFETY: not null, and a string of C.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Whether this program got rights that its user doesn't have (setuid and its like): it must not run code that the
/// user's environment names.
fn is_privileged() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: the call only reads what the kernel gave this process.
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(not(target_os = "linux"))]
    // SAFETY: these calls have no preconditions.
    return unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() };
}
