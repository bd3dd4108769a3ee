//! A directory behind a port: what `telering serve` and the exporter `prometheus_mp` share.
//!
//! Two threads: the server's, which looks at the directory for each scrape, and one that takes events out of NIXL's
//! rings meanwhile and removes what dead writers left.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::Directory;
use crate::file::fork;
use crate::prometheus::http::Server;

/// How often files of dead writers are looked for: half the TTL, within these bounds.
const REMOVAL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// How long the thread sleeps at the most.
const NAP: Duration = Duration::from_secs(1);

/// A directory that is served. It stops when it is dropped; the directory stays as it is.
pub struct Service {
    server: Option<Server>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    generation: u64,
}

struct Shared {
    directory: Mutex<Directory>,
    stop: AtomicBool,
    removed: AtomicUsize,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Service {
    /// Serves a directory on all of `addresses`, see [`Server::start`]. With `remove_dead` the images of dead writers
    /// are removed once their last numbers were published and the TTL is over.
    ///
    /// # Errors
    /// When an address is taken or not this machine's, or the operating system gives no thread.
    pub fn start(directory: Directory, addresses: &[SocketAddr], remove_dead: bool) -> io::Result<Service> {
        let removal = remove_dead.then(|| (directory.options.ttl / 2).clamp(REMOVAL.0, REMOVAL.1));
        let directory = Mutex::new(directory);
        let shared = Arc::new(Shared { directory, stop: AtomicBool::new(false), removed: AtomicUsize::new(0) });
        let rendered = Arc::clone(&shared);
        let longest = AtomicUsize::new(0);
        let server = Server::start(
            addresses,
            Arc::new(move |page: &mut String| {
                // A page is about as long as the one before: no need to grow step by step.
                page.reserve(longest.load(Ordering::Relaxed));
                rendered.lock().render(page);
                longest.store(page.len() + page.len() / 8, Ordering::Relaxed);
            }),
        )?;
        let worker = Arc::clone(&shared);
        let thread = thread::Builder::new().name("telering-serve".into()).spawn(move || worker.work(removal))?;
        Ok(Service { server: Some(server), shared, thread: Some(thread), generation: fork::generation() })
    }

    /// The first address that it listens on, with its true port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.as_ref().map_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)), Server::address)
    }

    /// All addresses that it listens on.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.as_ref().map_or(&[], Server::addresses)
    }

    /// Files of dead writers that were removed so far.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.shared.removed.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Directory> {
        // A look that panicked left its file out; all else is whole.
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, removal: Option<Duration>) {
        let mut removed_at = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            // Nothing in a directory should make this panic; if it does, the pages go on.
            let next = catch_unwind(AssertUnwindSafe(|| self.lock().drain()));
            if removal.is_some_and(|pause| removed_at.elapsed() >= pause) {
                let overdue = self.lock().overdue();
                // Without the lock: it waits for whoever makes a file in the directory.
                let removed = catch_unwind(AssertUnwindSafe(|| overdue.remove())).unwrap_or(0);
                self.removed.fetch_add(removed, Ordering::Relaxed);
                removed_at = Instant::now();
            }
            let now = Instant::now();
            let next = next.map_or(NAP, |next| next.saturating_duration_since(now));
            let removal = removal.map_or(NAP, |pause| (removed_at + pause).saturating_duration_since(now));
            thread::park_timeout(next.min(removal).min(NAP));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // In a forked child the threads are the parent's; the server knows so itself.
        self.shared.stop.store(true, Ordering::Relaxed);
        drop(self.server.take());
        if self.generation == fork::generation()
            && let Some(thread) = self.thread.take()
        {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
