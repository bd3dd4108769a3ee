//! The structures of `bindings/c/include/telering_plugin.h`, field by field.

use std::ffi::{c_char, c_void};

use telering_core::layout::parts::metrics::BOUNDS_MAX;
use telering_core::name::NAME_SIZE;

/// The version of everything here. A table of another version is not used.
pub const ABI_VERSION: u32 = 1;

/// The symbol that a plug-in defines: a constant [`Table`].
pub(super) const SYMBOL: &str = "telering_exporter_plugin";

/// The entry of NIXL's own exporter plug-ins.
pub(super) const NIXL_SYMBOL: &str = "nixl_telemetry_plugin_init";

/// Room for the text of a failure, its end included.
pub const MESSAGE_SIZE: usize = 256;

/// `telering_plugin_event`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// See [`super::super::Event::timestamp_us`].
    pub timestamp_us: u64,
    /// See [`super::super::Event::value`].
    pub value: u64,
    /// See [`super::super::Event::id`].
    pub id: u32,
    /// The number of the category.
    pub category: i32,
    /// See [`super::super::Event::group`].
    pub group: u32,
    /// 0.
    pub reserved: u32,
    /// The name, with a NUL behind it.
    pub name: [u8; NAME_SIZE],
}

/// `telering_plugin_agent`.
#[derive(Debug)]
#[repr(C)]
pub struct Agent {
    /// Bytes of this structure.
    pub size: u64,
    /// Name of the agent.
    pub name: *const c_char,
    /// Rank, may be empty.
    pub rank: *const c_char,
    /// Name of the machine, may be empty.
    pub hostname: *const c_char,
    /// Name and version of the library that calls.
    pub host: *const c_char,
    /// Agents of this process before this one.
    pub instance: u64,
    /// This process.
    pub pid: u64,
    /// Unix microseconds.
    pub started_us: u64,
    /// Upper bounds of the histograms.
    pub histogram_bounds: *const u64,
    /// Number of the bounds.
    pub histogram_bounds_count: u64,
    /// Tells the user something.
    pub warn: Option<extern "C" fn(*mut c_void, *const c_char)>,
    /// First argument of `warn`.
    pub warn_context: *mut c_void,
}

/// `telering_plugin_total`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Total {
    /// Sum of all values.
    pub sum: u64,
    /// Number of events.
    pub count: u64,
    /// Value of the last event.
    pub last: u64,
    /// When it completed: Unix microseconds, 0 before the first.
    pub last_us: u64,
    /// As in an event.
    pub id: u32,
    /// As in an event.
    pub category: i32,
    /// As in an event.
    pub name: [u8; NAME_SIZE],
}

/// `telering_plugin_histogram`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Histogram {
    /// Sum of all values in microseconds.
    pub sum: u64,
    /// Observations by bucket; the one behind the last bound is the overflow.
    pub buckets: [u64; BOUNDS_MAX + 1],
    /// As in an event.
    pub id: u32,
    /// 0.
    pub reserved: u32,
}

/// `telering_plugin_totals`.
#[derive(Debug)]
#[repr(C)]
pub struct Totals {
    /// Bytes of this structure.
    pub size: u64,
    /// When the numbers were taken: Unix microseconds.
    pub now_us: u64,
    /// Application events recorded.
    pub recorded: u64,
    /// Of those, taken by the exporter.
    pub exported: u64,
    /// Lost by cause, as in [`telering_core::snapshot::Losses`].
    pub lost_staging: u64,
    /// See above.
    pub lost_exporter: u64,
    /// See above.
    pub lost_interrupted: u64,
    /// See above.
    pub lost_backend: u64,
    /// See above.
    pub lost_closing: u64,
    /// As in [`telering_core::snapshot::Notices`].
    pub names_changed: u64,
    /// See above.
    pub dynamic_overflow: u64,
    /// See above.
    pub refused: u64,
    /// See above.
    pub file_trouble: u64,
    /// Running totals.
    pub totals: *const Total,
    /// Their number.
    pub totals_count: u64,
    /// Latency histograms.
    pub histograms: *const Histogram,
    /// Their number.
    pub histograms_count: u64,
    /// Errors by status: the first is status -1.
    pub errors: *const u64,
    /// Their number.
    pub errors_count: u64,
}

/// `telering_plugin_failure`.
#[derive(Debug)]
#[repr(C)]
pub struct Failure {
    /// Bytes of this structure.
    pub size: u64,
    /// Events of the batch that were not taken; all of them unless the plug-in says less.
    pub lost: u64,
    /// Why, with a NUL behind it.
    pub message: [u8; MESSAGE_SIZE],
}

/// The outcome by which a plug-in says that it is not to be called again.
pub const GONE: i32 = -1;

/// A call that may fail: 0 is success.
type Outcome = i32;
/// `open` of a table.
pub type OpenCall = unsafe extern "C-unwind" fn(*mut *mut c_void, *const Agent, *mut Failure) -> Outcome;
/// `export_events` of a table.
pub type ExportCall = unsafe extern "C-unwind" fn(*mut c_void, *const Event, u64, *mut Failure) -> Outcome;
/// `publish` of a table.
pub type PublishCall = unsafe extern "C-unwind" fn(*mut c_void, *const Totals, *mut Failure) -> Outcome;
/// `housekeep` and `close` of a table.
pub type TimeCall = unsafe extern "C-unwind" fn(*mut c_void, u64, *mut Failure) -> Outcome;

/// `telering_plugin`: what a plug-in offers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Table {
    /// [`ABI_VERSION`].
    pub abi_version: u32,
    /// Bytes of this structure.
    pub size: u32,
    /// Name of the exporter, for messages.
    pub name: *const c_char,
    /// Its version, for messages.
    pub version: *const c_char,
    /// Called first.
    pub open: Option<OpenCall>,
    /// Called with each batch.
    pub export_events: Option<ExportCall>,
    /// Called after each flush, if it is there.
    pub publish: Option<PublishCall>,
    /// Called about once a second, if it is there.
    pub housekeep: Option<TimeCall>,
    /// Called last, if it is there.
    pub close: Option<TimeCall>,
}
