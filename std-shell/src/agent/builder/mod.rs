//! What a program says of an agent before it starts, and the start.

mod settings;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use telering_core::ring::Capacity;
use telering_core::slot::Buckets;

use super::hot::{Hot, HotSettings};
use super::sink::{Sink, Start, make_exporter};
use super::transfer::Wanted;
use super::view::{self, View};
use super::{Agent, Mode, Telemetry, registry};
use crate::clock::Clock;
use crate::config::{Config, ExporterChoice};
use crate::exporter::{AgentContext, Exporter, Who};
use crate::flush::{ByHand, FlushHandle};
use crate::warn::{OnWarning, Warner, Warning, WarningKind};
use settings::wanted_mode;

/// How long closing an agent waits for its last flush, unless the program says otherwise.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(2);
/// Records of a slot's ring where nobody drains it: only the totals count.
const STAGING_UNDRAINED: usize = 64;

/// Why a strict agent did not start: its first warning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("telemetry did not start: {}", warning.message)]
#[non_exhaustive]
pub struct StartError {
    /// The warning.
    pub warning: Warning,
}

/// Settings of an agent. What a program sets wins over the environment, with one exception: telemetry
/// that is off in the environment stays off for [`Builder::enable`].
#[must_use = "nothing starts before `build`"]
pub struct Builder {
    name: String,
    enable: Option<bool>,
    capture: bool,
    dir: Option<PathBuf>,
    sink: Option<Sink>,
    plugin_dir: Option<PathBuf>,
    buffer_size: Option<u64>,
    run_interval: Option<Duration>,
    staging_records: Option<usize>,
    metrics: Option<String>,
    rank: Option<String>,
    file_mode: Option<u32>,
    histogram_bounds: Option<Vec<u64>>,
    prometheus_port: Option<u16>,
    prometheus_local: Option<bool>,
    multiproc_dir: Option<PathBuf>,
    stale_ttl: Option<Duration>,
    close_patience: Duration,
    clock: Option<&'static Clock>,
    on_warning: Option<OnWarning>,
    strict: bool,
    ignore_environment: bool,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("name", &self.name).field("enable", &self.enable).finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn new(name: String) -> Builder {
        Builder {
            name,
            enable: None,
            capture: false,
            dir: None,
            sink: None,
            plugin_dir: None,
            buffer_size: None,
            run_interval: None,
            staging_records: None,
            metrics: None,
            rank: None,
            file_mode: None,
            histogram_bounds: None,
            prometheus_port: None,
            prometheus_local: None,
            multiproc_dir: None,
            stale_ttl: None,
            close_patience: PATIENCE_DEFAULT,
            clock: None,
            on_warning: None,
            strict: false,
            ignore_environment: false,
        }
    }

    /// Telemetry on or off. `true` counts unless the environment says off.
    pub fn enable(mut self, on: bool) -> Self {
        self.enable = Some(on);
        self
    }

    /// Times transfers in any case, so that each has its own telemetry afterwards. Nothing is exported
    /// unless telemetry is enabled as well.
    pub fn capture_telemetry(mut self, on: bool) -> Self {
        self.capture = on;
        self
    }

    /// Directory of the telemetry file. It is made if it is missing.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// An exporter of the program's own, in place of a telemetry file.
    pub fn exporter(mut self, exporter: Box<dyn Exporter>) -> Self {
        self.sink = Some(Sink::Own(exporter));
        self
    }

    /// The exporter of this name, as `NIXL_TELEMETRY_EXPORTER` would choose it: `BUFFER`, `NOP`, one that was
    /// [registered](crate::exporter::register), or a [plug-in](crate::exporter::plugin). An empty name is none.
    pub fn exporter_name(mut self, name: impl AsRef<str>) -> Self {
        self.sink = ExporterChoice::from_name(name.as_ref()).map(Sink::Chosen);
        self
    }

    /// Directory of the exporters that are libraries of their own: `TELERING_PLUGIN_DIR`. An empty path is none.
    pub fn plugin_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.plugin_dir = Some(dir.into());
        self
    }

    /// Events are counted and dropped: the exporter `NOP`.
    pub fn nop(mut self) -> Self {
        self.sink = Some(Sink::Chosen(ExporterChoice::Nop));
        self
    }

    /// The exporter `prometheus`: metrics on an HTTP endpoint, which all such agents of the process share.
    pub fn prometheus(mut self) -> Self {
        self.sink = Some(Sink::Chosen(ExporterChoice::Prometheus));
        self
    }

    /// The exporter `prometheus_mp`: the file of this agent goes into `directory`, and one of all processes that do so
    /// serves what is in it. Made with the permissions 0700 if it is missing.
    pub fn prometheus_mp(mut self, directory: impl Into<PathBuf>) -> Self {
        self.sink = Some(Sink::Chosen(ExporterChoice::PrometheusMp));
        self.multiproc_dir = Some(directory.into());
        self
    }

    /// How long the exporter `prometheus_mp` serves the last numbers of an agent that is gone. Default 30 s.
    pub fn stale_ttl(mut self, ttl: Duration) -> Self {
        self.stale_ttl = Some(ttl);
        self
    }

    /// Port of the endpoint, 0 for any free one: see [`Telemetry::prometheus_address`]. Default 9090.
    pub fn prometheus_port(mut self, port: u16) -> Self {
        self.prometheus_port = Some(port);
        self
    }

    /// Whether the endpoint is on the loopback interface only. Default: on all interfaces.
    pub fn prometheus_local(mut self, local: bool) -> Self {
        self.prometheus_local = Some(local);
        self
    }

    /// Events in the telemetry file's ring: 64 to 2^24, rounded up to a power of two. Default 4096.
    pub fn buffer_size(mut self, events: u64) -> Self {
        self.buffer_size = Some(events);
        self
    }

    /// The longest time between two flushes, 1 ms to one hour. Default 100 ms.
    pub fn run_interval(mut self, interval: Duration) -> Self {
        self.run_interval = Some(interval);
        self
    }

    /// Records in each recording thread's own ring, 64 bytes each: 64 to 2^20, rounded up to a power of
    /// two. Default 16384.
    pub fn staging_records(mut self, records: usize) -> Self {
        self.staging_records = Some(records);
        self
    }

    /// Patterns of the events that are recorded, separated by commas: `agent_tx_*,agent_err_*`.
    pub fn metrics(mut self, patterns: impl Into<String>) -> Self {
        self.metrics = Some(patterns.into());
        self
    }

    /// Rank of this process within its job.
    pub fn rank(mut self, rank: impl Into<String>) -> Self {
        self.rank = Some(rank.into());
        self
    }

    /// Permission bits of the telemetry file. Default 0644.
    pub fn file_mode(mut self, mode: u32) -> Self {
        self.file_mode = Some(mode);
        self
    }

    /// Upper bounds of the latency histograms: whole microseconds, increasing, 32 at the most.
    pub fn histogram_bounds(mut self, bounds: impl Into<Vec<u64>>) -> Self {
        self.histogram_bounds = Some(bounds.into());
        self
    }

    /// How long closing waits for the last flush. What is not out by then is counted as lost. Default 2 s.
    pub fn close_patience(mut self, patience: Duration) -> Self {
        self.close_patience = patience;
        self
    }

    /// Another clock, for tests.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(Box::leak(Box::new(clock)));
        self
    }

    /// Hears of warnings; without it they go to the `log` crate, else to stderr.
    pub fn on_warning(mut self, hear: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        self.on_warning = Some(Arc::new(hear));
        self
    }

    /// Makes each warning at the start an error of [`Builder::try_build`].
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Takes nothing from the environment.
    pub fn ignore_environment(mut self, ignore: bool) -> Self {
        self.ignore_environment = ignore;
        self
    }

    /// Starts the agent. Whatever is wrong is told as a warning, and the agent does less.
    pub fn build(mut self) -> Telemetry {
        self.strict = false;
        match self.try_build() {
            Ok(agent) => agent,
            Err(_) => unreachable!("only a strict agent fails to start"),
        }
    }

    /// Starts the agent.
    ///
    /// # Errors
    /// [`StartError`] with the first warning, if [`Builder::strict`] was asked for.
    pub fn try_build(self) -> Result<Telemetry, StartError> {
        self.start_with(FlushHandle::start)
    }

    /// Starts the agent without a flush thread: the second part flushes when it is told to. `None` if
    /// the agent exports nothing.
    ///
    /// # Errors
    /// As [`Builder::try_build`].
    #[doc(hidden)]
    pub fn build_by_hand(self) -> Result<(Telemetry, Option<ByHand>), StartError> {
        let mut by_hand = None;
        let agent = self.start_with(|hot, exporter, context, interval, patience| {
            let (handle, flusher) = FlushHandle::by_hand(hot, exporter, &context, interval, patience)?;
            by_hand = Some(flusher);
            Ok(handle)
        })?;
        Ok((agent, by_hand))
    }

    fn start_with(
        self,
        start_flush: impl FnOnce(
            &Arc<Hot>,
            Box<dyn Exporter>,
            AgentContext,
            Duration,
            Duration,
        ) -> Result<FlushHandle, String>,
    ) -> Result<Telemetry, StartError> {
        let mut start = Start { warner: Warner::new(self.on_warning.clone()), strict: self.strict, failed: None };
        let config = self.settings(&mut start);
        let clock = self.clock.unwrap_or_else(process_clock);
        let mode = wanted_mode(self.enable, self.capture, &config, self.sink.is_some());
        if mode == Mode::Off || start.failed.is_some() {
            let agent = Agent {
                name: self.name,
                mode: Mode::Off,
                wanted: [Wanted::Nothing; 2],
                hot: Arc::new(Hot::new(hot_settings(&config, clock, STAGING_UNDRAINED, &start.warner))),
                flush: None,
                view: None,
            };
            return start.end(agent);
        }
        let instance = registry::next_instance();
        let who = Who::of_this_process(&self.name, instance, config.rank.as_deref().unwrap_or_default());
        let (exporter, endpoint) = if mode == Mode::Exported {
            make_exporter(self.sink, &config, &who, &mut start).unzip()
        } else {
            (None, None)
        };
        let staging = if exporter.is_some() { config.staging_records } else { STAGING_UNDRAINED };
        let hot = Arc::new(Hot::new(hot_settings(&config, clock, staging, &start.warner)));
        registry::enter(&hot);
        let flush = exporter.and_then(|exporter| {
            let context = AgentContext::new(&who, clock.anchor().now_us(), &config.histogram_bounds, &start.warner);
            match start_flush(&hot, exporter, context, config.run_interval, self.close_patience) {
                Ok(flush) => {
                    if flush.is_late() {
                        let message = "the exporter has not started yet, after two seconds: the agent goes on without \
                                       waiting, and keeps events only as long as its rings hold them";
                        start.warn(Warning::new(WarningKind::Exporter, message));
                    }
                    Some(Arc::new(flush))
                }
                Err(message) => {
                    start.warn(Warning::new(WarningKind::Exporter, message));
                    None
                }
            }
        });
        let wanted = Wanted::of(&hot, self.capture);
        let mode = if flush.is_some() { Mode::Exported } else { Mode::Captured };
        let view = registry::show(hot.id, &self.name, |taken| View {
            hot: Arc::clone(&hot),
            flush: flush.clone(),
            labels: view::labels(&self.name, instance, taken),
            start_us: hot.clock.anchor().now_us(),
            endpoint: endpoint.flatten().filter(|_| flush.is_some()),
        });
        start.end(Agent { name: self.name, mode, wanted, hot, flush, view: Some(view) })
    }
}

/// The clock of agents that were given none.
#[inline(always)]
pub(super) fn process_clock() -> &'static Clock {
    static CLOCK: std::sync::OnceLock<Clock> = std::sync::OnceLock::new();
    CLOCK.get_or_init(Clock::of_process)
}

fn hot_settings(config: &Config, clock: &'static Clock, staging_records: usize, warner: &Warner) -> HotSettings {
    let Ok(staging) = Capacity::new(staging_records) else { unreachable!("the settings give a power of two") };
    HotSettings {
        id: registry::new_id(),
        clock,
        allowlist: config.allowlist.clone(),
        buckets: Buckets::new(&config.histogram_bounds).unwrap_or_default(),
        staging,
        warner: warner.clone(),
    }
}
