//! A small HTTP server for metrics that strangers may reach.
//!
//! It answers GET and HEAD of `/metrics` and `/healthz`, one request per connection, and nothing else. All of it is
//! one thread over sockets that never block, so no client can keep another one waiting:
//!
//! | bound | value |
//! |---|---|
//! | threads | one per server |
//! | open connections | [`CONNECTIONS_MAX`]; for one more the oldest that has not asked yet is closed |
//! | head of a request | [`HEAD_MAX`] bytes, then 431 |
//! | time to ask | [`ASK_PATIENCE`], then 408 |
//! | time to take the answer | [`TAKE_PATIENCE`] without progress, [`TAKE_PATIENCE_IN_ALL`] in all |
//! | answers on their way | [`ANSWERS_MAX`]; for one more the one without progress for longest is given up |
//! | memory | `CONNECTIONS_MAX` heads and `ANSWERS_MAX` pages at the most |
//!
//! No TLS and no passwords: put a proxy in front where that is needed, or listen on the loopback interface only.

mod connection;
mod listen;
mod request;
mod rounds;

use std::fmt;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::file::fork;

pub use listen::addresses;
#[doc(hidden)]
pub use request::fuzz_request;

/// Connections that are open at the same time, at the most.
pub const CONNECTIONS_MAX: usize = 32;
/// Answers that are on their way at the same time, at the most.
pub const ANSWERS_MAX: usize = 8;
/// Bytes of a request's first line and headers, at the most.
pub const HEAD_MAX: usize = 8192;
/// Time for a client to ask.
pub const ASK_PATIENCE: Duration = Duration::from_secs(5);
/// Time without progress for a client that takes its answer.
pub const TAKE_PATIENCE: Duration = Duration::from_secs(10);
/// Time for a client to take its answer, in all.
pub const TAKE_PATIENCE_IN_ALL: Duration = Duration::from_secs(60);

/// Writes the page for one scrape. Called by the server's thread, once for each request of `/metrics`; a panic
/// in it is caught and answered with 500.
pub type Render = Arc<dyn Fn(&mut String) + Send + Sync>;

/// A server at work. It stops when it is dropped: the address is free again then.
pub struct Server {
    addresses: Vec<SocketAddr>,
    /// A byte here, or its end, stops the thread.
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
    generation: u64,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens on all of `addresses` and serves what `render` writes.
    ///
    /// A port 0 is any free port; those that follow take the first one's. `[::]` means all interfaces, IPv4
    /// included, and IPv4 alone on a machine without IPv6. Of several addresses those are left out that the machine
    /// doesn't have, such as all of IPv6; one must work. See [`addresses`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use telering::prometheus::http::{Server, addresses};
    /// let server = Server::start(&addresses(0, true), Arc::new(|page: &mut String| page.push_str("up 1\n")))?;
    /// assert_ne!(server.address().port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an address is taken or not this machine's, or the operating system gives no thread.
    pub fn start(addresses: &[SocketAddr], render: Render) -> io::Result<Server> {
        let listeners = listen::listen(addresses)?;
        let addresses = listeners.iter().map(|listener| listener.address).collect();
        let (stop, stopped) = UnixStream::pair()?;
        let rounds = rounds::Rounds::new(listeners, stopped, render);
        let thread = thread::Builder::new().name("telering-http".into()).spawn(move || rounds.run())?;
        Ok(Server { addresses, stop, thread: Some(thread), generation: fork::generation() })
    }

    /// The first address that it listens on, with its true port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All addresses that it listens on.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            // The thread is the parent's, and so is the other end of this socket.
            return;
        }
        let _ = self.stop.write(&[0]);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
