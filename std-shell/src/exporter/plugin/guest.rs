//! A plug-in in Rust: the table of functions around any [`Exporter`]. No panic leaves it.

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Arc;

use telering_core::name::NAME_SIZE;
use telering_core::snapshot::{ClockInfo, DynamicTotal, Flow, Histogram, Losses, Notices, Snapshot, Total};
use telering_core::{Category, Name};

use super::abi::{self, Agent, Failure, MESSAGE_SIZE, Table};
use crate::exporter::{AgentContext, Event, Exporter, OpenError, Totals, Who};
use crate::warn::{Warner, Warning};

/// Makes the exporter of a plug-in. [`exporter_plugin!`](crate::exporter_plugin) implements it.
pub trait Plugged {
    /// An exporter for an agent. It is opened afterwards.
    ///
    /// # Errors
    /// Why there can be none.
    fn make(agent: &AgentContext) -> Result<Box<dyn Exporter>, OpenError>;
}

/// Defines the symbol that makes a library (`crate-type = ["cdylib"]`) an exporter plug-in: its name, and a function
/// or closure from [`AgentContext`] to an exporter. The file must be called `libtelering_exporter_NAME.so`. The same
/// function can be [registered](crate::exporter::register) by programs that link the crate in.
///
/// ```standalone_crate
/// use telering::exporter::{AgentContext, Exporter, Nop, OpenError};
///
/// fn make(_agent: &AgentContext) -> Result<Box<dyn Exporter>, OpenError> {
///     Ok(Box::new(Nop))
/// }
///
/// telering::exporter_plugin!("nowhere", make);
/// ```
#[macro_export]
macro_rules! exporter_plugin {
    ($name:literal, $make:expr) => {
        const _: () = {
            struct Made;
            impl $crate::exporter::plugin::guest::Plugged for Made {
                fn make(
                    agent: &$crate::exporter::AgentContext,
                ) -> Result<Box<dyn $crate::exporter::Exporter>, $crate::exporter::OpenError> {
                    ($make)(agent)
                }
            }
            /// What the host finds here.
            // SAFETY: no other symbol of the program has this name; it is for libraries that are loaded.
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals, reason = "the name that hosts look for")]
            pub static telering_exporter_plugin: $crate::exporter::plugin::guest::Exported =
                $crate::exporter::plugin::guest::Exported::of::<Made>(
                    concat!($name, "\0"),
                    concat!(env!("CARGO_PKG_VERSION"), "\0"),
                );
        };
    };
}

/// A table that stands in a library.
#[derive(Debug)]
#[repr(transparent)]
pub struct Exported(pub Table);

// SAFETY: the table and the texts that it points to are constant.
unsafe impl Sync for Exported {}

impl Exported {
    /// The table for one maker of exporters. The texts end in a NUL.
    #[must_use]
    pub const fn of<P: Plugged>(name: &'static str, version: &'static str) -> Exported {
        assert!(name.as_bytes()[name.len() - 1] == 0 && version.as_bytes()[version.len() - 1] == 0);
        Exported(Table {
            abi_version: abi::ABI_VERSION,
            size: size_of::<Table>() as u32,
            name: name.as_ptr().cast(),
            version: version.as_ptr().cast(),
            open: Some(open::<P>),
            export_events: Some(export_events),
            publish: Some(publish),
            housekeep: Some(housekeep),
            close: Some(close),
        })
    }
}

/// What the host keeps for us. `None` once the exporter panicked.
struct State(Option<Box<dyn Exporter>>);

/// Why a call failed: events lost, and a text.
type Why = (u64, String);

unsafe extern "C-unwind" fn open<P: Plugged>(
    state: *mut *mut c_void,
    agent: *const Agent,
    failure: *mut Failure,
) -> i32 {
    // SAFETY: the host hands over an agent that stays for ever, and a place for the state.
    let (agent, state) = unsafe { (&*agent, &mut *state) };
    guarded(failure, 0, || {
        let context = context_of(agent);
        let made = P::make(&context).and_then(|mut exporter| exporter.open(&context).map(|()| exporter));
        let exporter = made.map_err(|error| (0, error.to_string()))?;
        *state = Box::into_raw(Box::new(State(Some(exporter)))).cast();
        Ok(())
    })
}

unsafe extern "C-unwind" fn export_events(
    state: *mut c_void,
    events: *const abi::Event,
    count: u64,
    failure: *mut Failure,
) -> i32 {
    // SAFETY: the host hands over `count` events; it never calls with none.
    let events = unsafe { slice::from_raw_parts(events, count as usize) };
    call(state, failure, count, |exporter| {
        let events: Vec<Event> = events.iter().map(event_of).collect();
        exporter.export(&events).map_err(|error| (error.lost, error.message))
    })
}

unsafe extern "C-unwind" fn publish(state: *mut c_void, totals: *const abi::Totals, failure: *mut Failure) -> i32 {
    // SAFETY: the host hands over numbers that are there for the time of the call.
    let totals = unsafe { &*totals };
    call(state, failure, 0, |exporter| {
        let (mut snapshot, mut dynamic) = (Snapshot::default(), Vec::new());
        // SAFETY: each list is as long as the number beside it says.
        let (all, histograms, errors) = unsafe {
            (
                listed(totals.totals, totals.totals_count),
                listed(totals.histograms, totals.histograms_count),
                listed(totals.errors, totals.errors_count),
            )
        };
        for one in all {
            let total = Total { sum: one.sum, count: one.count, last: one.last, last_us: one.last_us };
            match snapshot.entry_mut(one.id) {
                Some(entry) => *entry = total,
                None if one.id != Event::NAMED => {}
                None => dynamic.push(DynamicTotal { name: name_of(one.name), category: Category(one.category), total }),
            }
        }
        for (place, one) in snapshot.histograms.iter_mut().zip(histograms) {
            *place = Histogram { sum: one.sum, buckets: one.buckets };
        }
        snapshot.errors.iter_mut().zip(errors).for_each(|(place, count)| *place = *count);
        exporter.publish(&Totals {
            snapshot: &snapshot,
            dynamic: &dynamic,
            flow: Flow {
                recorded: totals.recorded,
                exported: totals.exported,
                lost: Losses {
                    staging: totals.lost_staging,
                    exporter: totals.lost_exporter,
                    interrupted: totals.lost_interrupted,
                    backend: totals.lost_backend,
                    closing: totals.lost_closing,
                },
            },
            notices: Notices {
                names_changed: totals.names_changed,
                dynamic_overflow: totals.dynamic_overflow,
                refused: totals.refused,
                file_trouble: totals.file_trouble,
            },
            clock: ClockInfo::default(),
            now_us: totals.now_us,
        });
        Ok(())
    })
}

unsafe extern "C-unwind" fn housekeep(state: *mut c_void, now_us: u64, failure: *mut Failure) -> i32 {
    call(state, failure, 0, |exporter| {
        exporter.housekeep(now_us);
        Ok(())
    })
}

unsafe extern "C-unwind" fn close(state: *mut c_void, now_us: u64, failure: *mut Failure) -> i32 {
    let status = call(state, failure, 0, |exporter| {
        exporter.close(now_us);
        Ok(())
    });
    if state.is_null() {
        return status;
    }
    // SAFETY: the state came from `Box::into_raw` in `open`, and this is its last call.
    let state = unsafe { Box::from_raw(state.cast::<State>()) };
    let dropped = guarded(failure, 0, || {
        drop(state);
        Ok(())
    });
    if status == 0 { dropped } else { status }
}

/// Calls the exporter of a state; one that panics is never called again, not even to be dropped.
fn call(
    state: *mut c_void,
    failure: *mut Failure,
    events: u64,
    call: impl FnOnce(&mut dyn Exporter) -> Result<(), Why>,
) -> i32 {
    // SAFETY: null, or the state of `open`, which one call at a time uses.
    let Some(state) = (unsafe { state.cast::<State>().as_mut() }) else { return 1 };
    let Some(exporter) = &mut state.0 else { return abi::GONE };
    match catch_unwind(AssertUnwindSafe(|| call(exporter.as_mut()))) {
        Ok(Ok(())) => 0,
        Ok(Err((lost, message))) => fail(failure, lost, &message),
        Err(panic) => {
            std::mem::forget(state.0.take());
            fail(failure, events, &panicked(panic));
            abi::GONE
        }
    }
}

/// Runs what may panic.
fn guarded(failure: *mut Failure, events: u64, run: impl FnOnce() -> Result<(), Why>) -> i32 {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => 0,
        Ok(Err((lost, message))) => fail(failure, lost, &message),
        Err(panic) => fail(failure, events, &panicked(panic)),
    }
}

fn panicked(panic: Box<dyn Any + Send>) -> String {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "it doesn't say why".to_owned(),
    };
    // What was thrown may throw again when dropped.
    std::mem::forget(panic);
    format!("it panicked ({text}) and is not called again")
}

/// Writes down why a call failed. Text that is too long is cut between two characters.
fn fail(failure: *mut Failure, lost: u64, message: &str) -> i32 {
    // SAFETY: null, or the place that the host gives for this.
    if let Some(failure) = unsafe { failure.as_mut() } {
        failure.lost = lost;
        let end = message.floor_char_boundary(MESSAGE_SIZE - 1);
        failure.message[..end].copy_from_slice(&message.as_bytes()[..end]);
        failure.message[end] = 0;
    }
    1
}

/// A list of C.
///
/// # Safety
/// `first` points to `count` values that are there for `'a`, or `count` is 0.
unsafe fn listed<'a, T>(first: *const T, count: u64) -> &'a [T] {
    if count == 0 || first.is_null() {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { slice::from_raw_parts(first, count as usize) }
}

fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a string of C that the host keeps.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn name_of(mut bytes: [u8; NAME_SIZE]) -> Name {
    bytes[NAME_SIZE - 1] = 0;
    Name::from_bytes(bytes)
}

fn event_of(event: &abi::Event) -> Event {
    Event {
        timestamp_us: event.timestamp_us,
        value: event.value,
        id: event.id,
        category: Category(event.category),
        name: name_of(event.name),
        group: event.group.min(u32::from(u8::MAX)) as u8,
    }
}

fn context_of(agent: &Agent) -> AgentContext {
    struct Host(*mut c_void, extern "C" fn(*mut c_void, *const c_char));
    // SAFETY: the host takes warnings from any thread, for as long as the process lives.
    unsafe impl Send for Host {}
    // SAFETY: as above.
    unsafe impl Sync for Host {}
    impl Host {
        fn warn(&self, warning: &Warning) {
            let message = std::ffi::CString::new(warning.message.as_str()).unwrap_or_default();
            (self.1)(self.0, message.as_ptr());
        }
    }
    let warner = Warner::new(agent.warn.map(|warn| {
        let host = Host(agent.warn_context, warn);
        let hear: crate::warn::OnWarning = Arc::new(move |warning: &Warning| host.warn(warning));
        hear
    }));
    let who = Who {
        agent: text_of(agent.name),
        agent_instance: agent.instance,
        rank: text_of(agent.rank),
        hostname: text_of(agent.hostname),
        pid: agent.pid,
        ..Who::default()
    };
    // SAFETY: the list is as long as the number beside it says.
    let bounds = unsafe { listed(agent.histogram_bounds, agent.histogram_bounds_count) };
    AgentContext::new(&who, agent.started_us, bounds, &warner)
}
