//! This process among those of a directory: it waits for its turn to serve, and serves when it comes.
//!
//! A thread of its own looks four times a second whether the owner is gone, so that another one takes over also when
//! nobody records anything. Nothing here ever waits for it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::election::{self, Election, Mandate};
use crate::agent::hot::lock;
use crate::config::Config;
use crate::file::fork;
use crate::per_process::PerProcess;
use crate::prometheus::{Directory, DirectoryOptions, Service};
use crate::reader::Shown;
use crate::warn::{Warner, WarningKind};

/// How often a process that doesn't serve looks whether it may.
const LOOK: Duration = Duration::from_millis(250);
/// How often one who serves looks whether its lock is still the one that others find.
const KEEP: Duration = Duration::from_millis(500);
/// How long one waits that may and can't: the address is another program's.
const RETRY: Duration = Duration::from_secs(5);

/// Which endpoint: all agents of a process that want the same share one seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) directory: PathBuf,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) ttl: Duration,
    pub(super) bounds: Vec<u64>,
}

impl Endpoint {
    pub(super) fn new(directory: &Path, addresses: Vec<SocketAddr>, config: &Config) -> Endpoint {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
        Endpoint { directory, addresses, ttl: config.stale_ttl, bounds: config.histogram_bounds.clone() }
    }

    fn is_same(&self, other: &Endpoint) -> bool {
        self.directory == other.directory && self.addresses == other.addresses
    }
}

/// A place among the processes of a directory. Given up when it is dropped.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    generation: u64,
}

struct Shared {
    endpoint: Endpoint,
    warner: Warner,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: bool,
    /// The service goes before the mandate: nobody else can bind before.
    serving: Option<(Service, Option<Mandate>)>,
}

/// The seats of a process by their endpoints.
type Seats = Mutex<Vec<(Endpoint, Weak<Seat>)>>;

static SEATS: PerProcess<Seats> = PerProcess::new();

impl Seat {
    /// The seat of this process, shared with its other agents. The first election is held at once.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn take(endpoint: Endpoint, warner: &Warner) -> io::Result<Arc<Seat>> {
        let mut seats = lock(SEATS.get());
        seats.retain(|(_, seat)| seat.strong_count() > 0);
        let known = seats.iter().find(|(other, _)| other.is_same(&endpoint)).and_then(|(_, seat)| seat.upgrade());
        if let Some(seat) = known {
            return Ok(seat);
        }
        let shared = Arc::new(Shared {
            endpoint: endpoint.clone(),
            warner: warner.clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let pause = shared.stand();
        let waiting = Arc::clone(&shared);
        let thread = thread::Builder::new().name("telering-seat".into()).spawn(move || waiting.run(pause))?;
        let seat = Arc::new(Seat { shared, thread: Mutex::new(Some(thread)), generation: fork::generation() });
        seats.push((endpoint, Arc::downgrade(&seat)));
        Ok(seat)
    }

    /// Where this process serves, if it does.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        if self.generation != fork::generation() {
            return None;
        }
        lock(&self.shared.state).serving.as_ref().map(|(service, _)| service.address())
    }
}

impl Shared {
    fn run(&self, mut pause: Duration) {
        loop {
            let state = lock(&self.state);
            let wait = self.changed.wait_timeout_while(state, pause, |state| !state.stop);
            let (state, _) = wait.unwrap_or_else(PoisonError::into_inner);
            if state.stop {
                return;
            }
            let serves = state.serving.is_some();
            drop(state);
            pause = if serves { self.keep() } else { self.stand() };
        }
    }

    /// Who serves goes on to do so. If somebody removed the lock file, or all of the directory, another process could
    /// win an election that is none: then the lock of the new file is taken, as soon as it can be had.
    fn keep(&self) -> Duration {
        let Endpoint { directory, addresses, .. } = &self.endpoint;
        let holds = |(_, mandate): &(Service, Option<Mandate>)| mandate.as_ref().is_some_and(Mandate::is_in_place);
        let is_known = lock(&self.state).serving.as_ref().is_some_and(holds);
        if !is_known && let Election::Won(mandate) = election::stand(directory, addresses) {
            let mut state = lock(&self.state);
            if let Some((_, held)) = &mut state.serving {
                *held = Some(mandate);
            }
        }
        KEEP
    }

    /// Stands for election, and serves if it is won. Returns when to try again.
    fn stand(&self) -> Duration {
        let Endpoint { directory, addresses, .. } = &self.endpoint;
        let mandate = match election::stand(directory, addresses) {
            Election::Won(mandate) => Some(mandate),
            Election::Lost => return LOOK,
            Election::Void(message) => {
                self.warner.once(WarningKind::Exporter, "mp-election", message);
                None
            }
        };
        match self.serve() {
            Ok(service) => {
                if let Some(other) = mandate.as_ref().and_then(|mandate| election::other_owner(directory, mandate)) {
                    self.tell_of_another(&other);
                }
                // A port that nobody chose is known to nobody.
                let chosen = addresses.first().is_some_and(|address| address.port() != 0);
                let place = service.address();
                let message = format!("the metrics of {} are served on http://{place}/metrics", Shown(directory));
                self.warner.note(&message, !chosen);
                lock(&self.state).serving = Some((service, mandate));
                LOOK
            }
            Err(error) => {
                let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                let message = format!(
                    "the metrics of {} can't be served at {}: {error}. This process goes on recording and tries again \
                     every {} s; free the address, or set NIXL_TELEMETRY_PROMETHEUS_PORT to another port for all ranks",
                    Shown(directory),
                    addresses.join(" and "),
                    RETRY.as_secs()
                );
                self.warner.once(WarningKind::Exporter, "mp-address", message);
                RETRY
            }
        }
    }

    fn serve(&self) -> io::Result<Service> {
        let Endpoint { directory, addresses, ttl, bounds } = &self.endpoint;
        let options = DirectoryOptions {
            ttl: *ttl,
            bounds: bounds.clone(),
            warner: self.warner.clone(),
            // Whoever reads NIXL's rings in this directory has chosen to do so; an exporter hasn't.
            consume: false,
            // Ranks of one job are one user's; what others put here is no rank of it.
            only_own: true,
            ..DirectoryOptions::default()
        };
        Service::start(Directory::new(directory, options), addresses, true)
    }

    fn tell_of_another(&self, other: &Path) {
        let message = format!(
            "{} is locked: other ranks serve the same directory at another address, so both endpoints show all of them. \
             Set the same NIXL_TELEMETRY_PROMETHEUS_PORT and NIXL_TELEMETRY_PROMETHEUS_LOCAL for all ranks",
            Shown(other)
        );
        self.warner.once(WarningKind::Exporter, "mp-addresses", message);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            // The thread is the parent's, which may hold the lock.
            return;
        }
        lock(&self.shared.state).stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
        // The thread is gone, so nobody begins to serve after this.
        let serving = lock(&self.shared.state).serving.take();
        drop(serving);
    }
}
