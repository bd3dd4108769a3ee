//! Metrics for Prometheus: agents' numbers as text, and a small server that hands them out.
//!
//! | module | what it knows |
//! |---|---|
//! | [`model`](self) | [`Sample`]: the numbers of one agent at one moment, and [`Labels`] that name it |
//! | [`families`](self) | which metrics there are: names, types, help |
//! | [`text`](self) | [`Exposition`]: many samples as one page of text, format 0.0.4 |
//! | [`directory`](self) | the samples of all files of a directory; [`Service`]: a directory behind a port |
//! | [`multiproc`](self) | the exporter `prometheus_mp`: one of many processes serves what all wrote |
//! | [`http`] | [`http::Server`]: that page for whoever asks, slow and hostile askers included |
//!
//! Names, types and labels are those of NIXL's newest release line; what is ours alone starts with `telering_`.
//! All values are whole numbers, written exactly.
//!
//! ```
//! use telering::prometheus::{Exposition, Labels, Sample};
//! let sample = Sample::new(Labels::new().with("agent_name", "prefill-0").with("hostname", "node-1"));
//! let mut page = String::new();
//! let mut exposition = Exposition::new();
//! exposition.add(&sample);
//! exposition.write(&mut page)?;
//! assert!(page.contains("agent_tx_bytes_total{agent_name=\"prefill-0\",hostname=\"node-1\"} 0\n"));
//! # Ok::<(), std::fmt::Error>(())
//! ```

mod directory;
mod families;
pub mod http;
mod labels;
mod model;
pub(crate) mod multiproc;
mod named;
mod numbers;
mod text;

pub use directory::{Directory, DirectoryOptions, LabelSet, Service};
pub use families::{Family, Kind};
pub use labels::Labels;
pub use model::Sample;
pub(crate) use model::{dynamic_of, metrics_of};
pub use named::{NAMED_FAMILIES_MAX, NAMED_PER_SAMPLE_MAX};
pub use text::Exposition;

/// Writes the numbers of all agents of this process that are at work, whatever they export, for programs that have a
/// `/metrics` of their own. See [`Telemetry::render_prometheus`](crate::Telemetry::render_prometheus).
///
/// # Errors
/// Only those of `out`.
pub fn render(out: &mut (impl std::fmt::Write + ?Sized)) -> std::fmt::Result {
    crate::agent::write_process(out)
}

/// The content type of an [`Exposition`]'s text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
