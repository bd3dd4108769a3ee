//! Exporters that are libraries of their own: `libtelering_exporter_NAME.so`, loaded when an agent asks for NAME.
//!
//! The library is looked for in one folder, `TELERING_PLUGIN_DIR`, and only this one file is opened. It defines one
//! constant, the table of `bindings/c/include/telering_plugin.h`. A program of C or C++ writes it down; one of Rust
//! implements [`Exporter`] and says [`exporter_plugin!`](crate::exporter_plugin).
//!
//! What is no plug-in, or one for something else, is refused before any of its code runs. A plug-in stays loaded
//! for as long as the process lives. Its calls come from the agent's flush thread: it may be slow or fail as it
//! likes, which costs events and never a transfer. What leaves a call by an exception or a panic ends the process,
//! as anywhere between two languages: the macro and `telering_plugin.hpp` let none out.
//!
//! A program that runs with more rights than its user (setuid) loads no plug-in.

pub mod abi;
mod elf;
pub mod guest;
mod library;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use telering_core::names::{BUILT_IN, error_status};
use telering_core::snapshot::{ENTRY_IDS, HISTOGRAM_IDS, Snapshot};
use telering_core::{Category, Name};

use super::{AgentContext, Event, ExportError, Exporter, OpenError, Totals, registered};
use crate::warn::shown;
use elf::{Library, Refusal};
use library::{Failed, Loaded};

const PREFIX: &str = "libtelering_exporter_";
const SUFFIX: &str = ".so";
/// Names that a warning lists.
const LISTED_MAX: usize = 16;

/// The plug-in of a name; else a sentence that lists what there is instead. Nothing is opened yet.
pub(crate) fn find(name: &str, folder: Option<&Path>) -> Result<Plugin, String> {
    let mut missing = None;
    if super::is_name(name)
        && let Some(folder) = folder
    {
        let path = folder.join(format!("{PREFIX}{name}{SUFFIX}"));
        // A link counts as what it is: one that leads nowhere is told as such when it is opened.
        match fs::symlink_metadata(&path) {
            Ok(_) => return Ok(Plugin { path, loaded: None, context: None, events: Vec::new(), failing: [false; 2] }),
            Err(error) => missing = Some(error),
        }
    }
    let mut known: Vec<_> = ["BUFFER", "NOP", "prometheus", "prometheus_mp"].map(str::to_owned).into();
    known.extend(registered());
    known.extend(folder.map(plugins_in).unwrap_or_default());
    known.dedup();
    let more = known.len().saturating_sub(LISTED_MAX);
    known.truncate(LISTED_MAX);
    let mut message = format!("there is no exporter {}: {} are known (case counts)", shown(name), known.join(", "));
    if more > 0 {
        message.push_str(&format!(", and {more} more"));
    }
    match (folder, missing) {
        (None, _) => message.push_str(", and TELERING_PLUGIN_DIR is set to no folder"),
        (Some(folder), None) => message.push_str(&format!(", and {} has no such", folder.display())),
        (Some(folder), Some(error)) if error.kind() != ErrorKind::NotFound => {
            message.push_str(&format!(", and {} can't be looked into: {error}", folder.display()));
        }
        (Some(folder), Some(_)) if !folder.exists() => {
            message.push_str(&format!(", and there is no folder {}", folder.display()));
        }
        (Some(folder), Some(_)) => {
            message.push_str(&format!(", and there is no {PREFIX}{name}{SUFFIX} in {}", folder.display()));
            if fs::metadata(folder.join(format!("libtelemetry_exporter_{name}{SUFFIX}"))).is_ok() {
                message.push_str(", only a plug-in of NIXL's, which fits NIXL alone");
            }
        }
    }
    Err(message)
}

/// Names of the plug-ins in a folder, in order. No file is opened.
fn plugins_in(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let file = entry.ok()?.file_name();
        let name = file.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.to_owned();
        super::is_name(&name).then_some(name)
    };
    let mut names: Vec<_> = fs::read_dir(folder).into_iter().flatten().filter_map(name).collect();
    names.sort();
    names
}

/// An exporter in a library.
pub(crate) struct Plugin {
    path: PathBuf,
    loaded: Option<Loaded>,
    context: Option<AgentContext>,
    /// Memory for the events of a batch.
    events: Vec<abi::Event>,
    /// Whether the last call failed, of `publish` and of `housekeep`.
    failing: [bool; 2],
}

impl Plugin {
    fn said(&self, failed: &Failed) -> String {
        format!("the exporter plug-in {}: {}", self.path.display(), failed.message)
    }

    /// Lets go of a plug-in that says that it is gone. Its state stays where it is.
    fn forget_if_gone<T>(&mut self, result: &Result<T, Failed>) {
        if matches!(result, Err(Failed { gone: true, .. })) {
            self.loaded = None;
        }
    }

    /// Tells a failure that loses no event: once until the same call works again.
    fn tell(&mut self, call: usize, result: Result<(), Failed>) {
        self.forget_if_gone(&result);
        let was_failing = std::mem::replace(&mut self.failing[call], result.is_err());
        if let (Err(failed), false, Some(context)) = (result, was_failing, &self.context) {
            context.warn(self.said(&failed));
        }
    }
}

/// Looks at a file and loads it if it is a plug-in for this host.
fn load(path: &Path) -> Result<Loaded, String> {
    let refused = |Refusal(why): Refusal| format!("the exporter plug-in {} {why}", path.display());
    // A pipe of that name must not hold anybody up.
    let open = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    look_at(open.map_err(|error| refused(error.into()))?).map_err(refused)?;
    Loaded::load(path).map_err(|why| refused(Refusal(why)))
}

/// Whether a file is a library with a table for this host. Nothing of it runs.
fn look_at(file: File) -> Result<(), Refusal> {
    let library = Library::read(file)?;
    let Some((head, len)) = library.constant::<8>(abi::SYMBOL)? else {
        return Err(Refusal(if library.defines(abi::SYMBOL) {
            format!("defines {} as something other than a constant table", abi::SYMBOL)
        } else if library.defines(abi::NIXL_SYMBOL) {
            "is a telemetry exporter of NIXL's, in C++: it fits the NIXL that it was built for and nothing else".into()
        } else {
            format!("is no exporter plug-in: it does not define {}", abi::SYMBOL)
        }));
    };
    let word = |at: usize| head[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let (version, size) = (word(0), word(4));
    if version != abi::ABI_VERSION {
        let ours = abi::ABI_VERSION;
        return Err(Refusal(format!(
            "is made for version {version} of the plug-in interface, and this host has version {ours}: build it again"
        )));
    }
    if (size as usize) < size_of::<abi::Table>() {
        return Err(Refusal(format!("has a table of {size} bytes, where {} are needed", size_of::<abi::Table>())));
    }
    if u64::from(size) > len {
        return Err(Refusal(format!("says that its table has {size} bytes, and it has {len}: is its size right?")));
    }
    Ok(())
}

impl Exporter for Plugin {
    fn open(&mut self, agent: &AgentContext) -> Result<(), OpenError> {
        let mut loaded = load(&self.path)?;
        loaded.open(agent).map_err(|failed| format!("{}: it could not open", self.said(&failed)))?;
        self.loaded = Some(loaded);
        self.context = Some(agent.clone());
        Ok(())
    }

    fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
        let Some(loaded) = &mut self.loaded else {
            // It is gone, and the reason was told.
            return Err(ExportError::new(events.len() as u64, ""));
        };
        self.events.clear();
        self.events.extend(events.iter().map(told));
        let result = loaded.export(&self.events);
        self.forget_if_gone(&result);
        result.map_err(|failed| ExportError::new(failed.lost, self.said(&failed)))
    }

    fn publish(&mut self, totals: &Totals<'_>) {
        if let Some(loaded) = self.loaded.as_mut().filter(|loaded| loaded.wants_totals()) {
            let result = with_totals(totals, |totals| loaded.publish(totals));
            self.tell(0, result);
        }
    }

    fn housekeep(&mut self, now_us: u64) {
        if let Some(result) = self.loaded.as_mut().map(|loaded| loaded.housekeep(now_us)) {
            self.tell(1, result);
        }
    }

    fn close(&mut self, now_us: u64) {
        if let (Some(Err(failed)), Some(context)) =
            (self.loaded.take().map(|loaded| loaded.close(now_us)), &self.context)
        {
            context.warn(self.said(&failed));
        }
    }
}

fn told(event: &Event) -> abi::Event {
    abi::Event {
        timestamp_us: event.timestamp_us,
        value: event.value,
        id: event.id,
        category: event.category.0,
        group: event.group.into(),
        reserved: 0,
        name: *event.name.as_bytes(),
    }
}

/// The numbers in the words of C, for the time of a call.
fn with_totals<T>(totals: &Totals<'_>, call: impl FnOnce(&abi::Totals) -> T) -> T {
    let total = |id: u32, category: Category, name: Name, total: &telering_core::snapshot::Total| abi::Total {
        sum: total.sum,
        count: total.count,
        last: total.last,
        last_us: total.last_us,
        id,
        category: category.0,
        name: *name.as_bytes(),
    };
    let Snapshot { entries, histograms, errors } = totals.snapshot;
    let rows = BUILT_IN.iter().filter(|row| error_status(row.id).is_none());
    let mut all: Vec<abi::Total> = rows
        .zip(entries)
        .map(|(row, entry)| total(row.id, row.category, Name::from_static(row.file_name()), entry))
        .collect();
    all.extend(totals.dynamic.iter().map(|own| total(Event::NAMED, own.category, own.name, &own.total)));
    let histograms: Vec<_> = HISTOGRAM_IDS
        .iter()
        .zip(histograms)
        .map(|(&id, histogram)| abi::Histogram { sum: histogram.sum, buckets: histogram.buckets, id, reserved: 0 })
        .collect();
    debug_assert!(all.len() >= ENTRY_IDS.len());
    let (flow, notices) = (totals.flow, totals.notices);
    call(&abi::Totals {
        size: size_of::<abi::Totals>() as u64,
        now_us: totals.now_us,
        recorded: flow.recorded,
        exported: flow.exported,
        lost_staging: flow.lost.staging,
        lost_exporter: flow.lost.exporter,
        lost_interrupted: flow.lost.interrupted,
        lost_backend: flow.lost.backend,
        lost_closing: flow.lost.closing,
        names_changed: notices.names_changed,
        dynamic_overflow: notices.dynamic_overflow,
        refused: notices.refused,
        file_trouble: notices.file_trouble,
        totals: all.as_ptr(),
        totals_count: all.len() as u64,
        histograms: histograms.as_ptr(),
        histograms_count: histograms.len() as u64,
        errors: errors.as_ptr(),
        errors_count: errors.len() as u64,
    })
}
