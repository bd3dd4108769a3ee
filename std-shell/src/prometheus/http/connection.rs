//! One client: it asks, takes its answer, and goes.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::request::{Refusal, Request, Wanted};
use super::{ASK_PATIENCE, HEAD_MAX, Render, TAKE_PATIENCE, TAKE_PATIENCE_IN_ALL};
use crate::prometheus::CONTENT_TYPE;

/// Time for a client to close its side after the answer.
const GO_PATIENCE: Duration = Duration::from_secs(1);
/// Bytes that a client may still send meanwhile.
const LEFTOVER_MAX: usize = 64 * 1024;
/// Bytes written in one go, so that a quick client of a long page doesn't keep the others waiting.
const WRITE_MAX: usize = 1 << 20;

/// What a client does.
enum State {
    /// Asks: what came so far.
    Asking(Vec<u8>),
    /// Takes the head of the answer and the page: the bytes that it has.
    Taking { head: Vec<u8>, page: Arc<String>, sent: usize },
    /// Was given up.
    Over,
    /// Has its answer. What it still sends is thrown away: closing before that is read would reset the connection and
    /// could take the answer away from the client.
    Going { leftover: usize },
}

/// One client's connection.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    state: State,
    pub(super) since: Instant,
    /// When it last got something of its answer.
    pub(super) progress: Instant,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, now: Instant) -> Connection {
        Connection { stream, state: State::Asking(Vec::new()), since: now, progress: now }
    }

    pub(super) fn is_asking(&self) -> bool {
        matches!(self.state, State::Asking(_))
    }

    pub(super) fn is_taking(&self) -> bool {
        matches!(self.state, State::Taking { .. })
    }

    /// Ends the connection, and frees its page.
    pub(super) fn give_up(&mut self) {
        self.state = State::Over;
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> PollFlags {
        if self.is_taking() { PollFlags::OUT } else { PollFlags::IN }
    }

    /// When patience ends.
    pub(super) fn deadline(&self) -> Instant {
        match self.state {
            State::Asking(_) => self.since + ASK_PATIENCE,
            State::Taking { .. } => {
                (self.progress + TAKE_PATIENCE).min(self.since + ASK_PATIENCE + TAKE_PATIENCE_IN_ALL)
            }
            State::Going { .. } | State::Over => self.progress + GO_PATIENCE,
        }
    }

    /// Patience ended. Says whether the connection goes on: a client that didn't ask is told so.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if !self.is_asking() {
            return false;
        }
        self.answer(Request::TIMEOUT, now, None)
    }

    /// The socket is ready: goes on as far as that is possible now. Says whether the connection goes on, and hands
    /// out a request that has come in whole, to be [answered](Self::answer).
    pub(super) fn go_on(&mut self, now: Instant) -> (bool, Option<Request>) {
        match &mut self.state {
            State::Asking(_) => self.hear(),
            State::Taking { .. } => (self.send(now), None),
            State::Going { leftover } => (throw_away(&mut self.stream, leftover), None),
            State::Over => (false, None),
        }
    }

    fn hear(&mut self) -> (bool, Option<Request>) {
        let State::Asking(heard) = &mut self.state else { return (true, None) };
        let mut chunk = [0; 2048];
        while heard.len() < HEAD_MAX {
            let room = chunk.len().min(HEAD_MAX - heard.len());
            match self.stream.read(&mut chunk[..room]) {
                // A client that sends nothing and goes wants nothing.
                Ok(0) => return (!heard.is_empty(), (!heard.is_empty()).then_some(Request::BAD)),
                Ok(read) => {
                    let first = heard.is_empty();
                    heard.extend_from_slice(&chunk[..read]);
                    // Looked at line by line: a client that sends single bytes must not cost much.
                    if (first || chunk[..read].contains(&b'\n') || heard.len() == HEAD_MAX)
                        && let Some(request) = Request::of(heard)
                    {
                        return (true, Some(request));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (error.kind() == ErrorKind::WouldBlock, None),
            }
        }
        (true, None)
    }

    /// Makes the answer and begins to send it. Says whether the connection goes on.
    pub(super) fn answer(&mut self, request: Request, now: Instant, page: Option<&mut Page<'_>>) -> bool {
        let (status, kind, page) = match (request.wanted, page) {
            (Wanted::Metrics, Some(page)) => match page.get() {
                Some(page) => ("200 OK", CONTENT_TYPE, page),
                None => plain("500 Internal Server Error", "the metrics could not be written"),
            },
            (Wanted::Health | Wanted::Metrics, _) => plain("200 OK", "ok"),
            (Wanted::Refusal(refusal), _) => {
                let (status, text) = refusal.texts();
                plain(status, text)
            }
        };
        let allow =
            if request.wanted == Wanted::Refusal(Refusal::MethodNotAllowed) { "Allow: GET, HEAD\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
            page.len()
        );
        let page = if request.head_only { Arc::default() } else { page };
        self.state = State::Taking { head: head.into_bytes(), page, sent: 0 };
        self.progress = now;
        self.send(now)
    }

    fn send(&mut self, now: Instant) -> bool {
        let State::Taking { head, page, sent } = &mut self.state else { return true };
        let mut left = WRITE_MAX;
        while *sent < head.len() + page.len() {
            let rest = head.get(*sent..).filter(|rest| !rest.is_empty());
            let rest = rest.unwrap_or_else(|| &page.as_bytes()[*sent - head.len()..]);
            match self.stream.write(&rest[..rest.len().min(left)]) {
                Ok(0) => return left == 0,
                Ok(written) => {
                    *sent += written;
                    left -= written;
                    self.progress = now;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
            if left == 0 {
                return true;
            }
        }
        self.state = State::Going { leftover: LEFTOVER_MAX };
        self.progress = now;
        self.stream.shutdown(Shutdown::Write).is_ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A forked child may hold this socket too, and the client shall not wait for it.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn plain(status: &'static str, text: &str) -> (&'static str, &'static str, Arc<String>) {
    (status, "text/plain; charset=utf-8", Arc::new(format!("{text}\n")))
}

/// The page of one round: written when the first client asks for it, and the same for all who asked until then. Many
/// who ask at once cost one page, not many.
pub(super) struct Page<'a> {
    render: &'a Render,
    made: Option<Option<Arc<String>>>,
}

impl Page<'_> {
    pub(super) fn new(render: &Render) -> Page<'_> {
        Page { render, made: None }
    }

    /// `None` if it could not be written.
    fn get(&mut self) -> Option<Arc<String>> {
        self.made.get_or_insert_with(|| rendered(self.render).map(Arc::new)).clone()
    }
}

fn rendered(render: &Render) -> Option<String> {
    let mut page = String::new();
    let done = catch_unwind(AssertUnwindSafe(|| render(&mut page)));
    // What was thrown may throw again when dropped.
    done.map_err(std::mem::forget).ok().map(|()| page)
}

/// Reads what a client still sends. Says whether more may come.
fn throw_away(stream: &mut TcpStream, leftover: &mut usize) -> bool {
    let mut chunk = [0; 2048];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return false,
            Ok(read) if read >= *leftover => return false,
            Ok(read) => *leftover -= read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
