//! The server's thread: round after round it waits until a socket is ready, and goes on with that client.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::connection::{Connection, Page};
use super::listen::Listener;
use super::request::{Request, Wanted};
use super::{ANSWERS_MAX, CONNECTIONS_MAX, Render};

/// Connections accepted in one round, so that a flood of them doesn't stop those that are there.
const ACCEPTED_AT_ONCE: usize = 8;
/// Pause after a failure to accept, such as a process without free descriptors: asking again at once would spin.
const PAUSE: Duration = Duration::from_millis(100);

/// What the thread works on.
pub(super) struct Rounds {
    listeners: Vec<Listener>,
    stopped: UnixStream,
    render: Render,
    connections: Vec<Connection>,
    /// No connection is accepted before.
    paused_until: Option<Instant>,
}

impl Rounds {
    pub(super) fn new(listeners: Vec<Listener>, stopped: UnixStream, render: Render) -> Rounds {
        Rounds { listeners, stopped, render, connections: Vec::new(), paused_until: None }
    }

    pub(super) fn run(mut self) {
        loop {
            let Some((ready, waiting)) = self.wait() else { return };
            let now = Instant::now();
            self.go_on(&ready, now);
            if waiting {
                self.accept(now);
            }
        }
    }

    /// Waits until something can be done or patience with somebody ends. `None` when the server stops; else which
    /// connections are ready, and whether new ones may wait.
    fn wait(&self) -> Option<(Vec<bool>, bool)> {
        let now = Instant::now();
        let accepts = self.paused_until.is_none_or(|until| until <= now);
        let mut polled = vec![PollFd::new(&self.stopped, PollFlags::IN)];
        polled.extend(self.connections.iter().map(|one| PollFd::new(&one.stream, one.interest())));
        if accepts {
            polled.extend(self.listeners.iter().map(|one| PollFd::new(one.socket.file(), PollFlags::IN)));
        }
        let deadlines = self.connections.iter().map(Connection::deadline).chain(self.paused_until.filter(|_| !accepts));
        let patience = deadlines.min().map(|deadline| deadline.saturating_duration_since(now));
        // A millisecond more, so that the deadline is over when the wait is.
        let patience = patience.and_then(|patience| Timespec::try_from(patience + Duration::from_millis(1)).ok());
        match poll(&mut polled, patience.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Some((vec![false; self.connections.len()], false)),
            Err(_) => {
                thread::sleep(PAUSE);
                return Some((vec![false; self.connections.len()], false));
            }
        }
        let mut ready = polled.iter().map(|one| !one.revents().is_empty());
        if ready.next().unwrap_or(true) {
            return None;
        }
        let connections = ready.by_ref().take(self.connections.len()).collect();
        Some((connections, ready.any(|ready| ready)))
    }

    /// Goes on with the clients that are ready, and ends patience with those that are late.
    fn go_on(&mut self, ready: &[bool], now: Instant) {
        let mut connections = std::mem::take(&mut self.connections);
        let mut requests = Vec::new();
        let mut place = 0;
        let mut readiness = ready.iter();
        connections.retain_mut(|connection| {
            let ready = readiness.next().copied().unwrap_or(false);
            let (goes_on, request) = if ready { connection.go_on(now) } else { (true, None) };
            let goes_on = goes_on && (request.is_some() || connection.deadline() > now || connection.expire(now));
            if goes_on {
                requests.extend(request.map(|request| (place, request)));
                place += 1;
            }
            goes_on
        });
        let mut page = Page::new(&self.render);
        for (place, request) in requests {
            answer(&mut connections, place, request, &mut page);
        }
        // Those that an answer or its failure left over.
        connections.retain(|connection| !connection.is_over());
        self.connections = connections;
    }

    fn accept(&mut self, now: Instant) {
        self.paused_until = None;
        for listener in &self.listeners {
            for _ in 0..ACCEPTED_AT_ONCE {
                match listener.accept() {
                    Ok(stream) => {
                        make_room(&mut self.connections);
                        self.connections.push(Connection::new(stream, now));
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // That client went away again.
                    Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                    Err(_) => {
                        self.paused_until = Some(now + PAUSE);
                        return;
                    }
                }
            }
        }
    }
}

fn answer(connections: &mut [Connection], place: usize, request: Request, page: &mut Page<'_>) {
    if request.wanted == Wanted::Metrics {
        let taking = connections.iter_mut().filter(|one| one.is_taking());
        let mut taking: Vec<_> = taking.collect();
        if taking.len() >= ANSWERS_MAX
            && let Some(slowest) = taking.iter_mut().min_by_key(|one| one.progress)
        {
            slowest.give_up();
        }
    }
    let connection = &mut connections[place];
    if !connection.answer(request, Instant::now(), Some(page)) {
        connection.give_up();
    }
}

/// Closes the connection that is open for longest, one that has not asked yet if there is one.
fn make_room(connections: &mut Vec<Connection>) {
    if connections.len() >= CONNECTIONS_MAX {
        let oldest = connections.iter().enumerate().min_by_key(|(_, one)| (!one.is_asking(), one.since));
        if let Some((place, _)) = oldest {
            connections.remove(place);
        }
    }
}
