//! The server against clients of all kinds.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use telering::prometheus::CONTENT_TYPE;
use telering::prometheus::http::{ANSWERS_MAX, CONNECTIONS_MAX, HEAD_MAX, Server, addresses};

/// An answer in parts.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn of(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Answer { status: status.expect("a status"), head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| Some(line.split_once(": ").filter(|(key, _)| *key == name)?.1))
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends these bytes and reads until the other side closes.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address);
    stream.write_all(request).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    Answer::of(&ask(address, format!("GET {path} HTTP/1.1\r\nHost: node\r\n\r\n").as_bytes()))
}

fn server_of(page: String) -> (Server, SocketAddr) {
    let server = Server::start(&addresses(0, true), Arc::new(move |out: &mut String| out.push_str(&page))).unwrap();
    let address = server.address();
    (server, address)
}

fn server() -> (Server, SocketAddr) {
    server_of("up 1\n".into())
}

/// An exposition of about as many bytes.
fn long_page(bytes: usize) -> String {
    "agent_tx_bytes_total 1\n".repeat(bytes / 23 + 1)
}

#[test]
fn a_get_gives_the_page_and_a_head_the_same_without_it() {
    let (_server, address) = server();
    let answer = get(address, "/metrics");
    assert_eq!((answer.status, answer.body.as_str()), (200, "up 1\n"));
    assert_eq!(answer.header("Content-Type"), Some(CONTENT_TYPE));
    assert_eq!(answer.header("Connection"), Some("close"));
    let head = Answer::of(&ask(address, b"HEAD /metrics HTTP/1.1\r\nHost: node\r\n\r\n"));
    assert_eq!((head.head, head.body.as_str()), (answer.head, ""));
    assert_eq!(get(address, "/healthz").body, "ok\n");
}

#[test]
fn whatever_a_client_accepts_it_gets_classic_text() {
    let (_server, address) = server();
    for accept in [
        "",
        "Accept: */*\r\n",
        "Accept: text/plain;version=0.0.4\r\n",
        "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n",
        "Accept: application/openmetrics-text; version=1.0.0\r\nAccept-Encoding: gzip\r\n",
        "Accept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited\r\n",
    ] {
        let answer = Answer::of(&ask(address, format!("GET /metrics HTTP/1.1\r\n{accept}\r\n").as_bytes()));
        assert_eq!((answer.status, answer.header("Content-Type")), (200, Some(CONTENT_TYPE)), "{accept}");
        assert!(!answer.body.contains("# EOF") && answer.body.ends_with('\n'));
    }
}

#[test]
fn other_requests_are_refused_by_the_right_number() {
    let (_server, address) = server();
    assert_eq!(get(address, "/").status, 404);
    let post = Answer::of(&ask(address, b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"));
    assert_eq!((post.status, post.header("Allow")), (405, Some("GET, HEAD")));
    assert_eq!(Answer::of(&ask(address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")).status, 400);
    assert_eq!(Answer::of(&ask(address, b"\0\0\0\0\r\n\r\n")).status, 400);
    let huge = format!("GET /metrics HTTP/1.1\r\nCookie: {}", "x".repeat(HEAD_MAX));
    assert_eq!(Answer::of(&ask(address, huge.as_bytes())).status, 431);
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(500));
    assert_eq!(Answer::of(&ask(address, many.as_bytes())).status, 431);
    assert_eq!(get(address, "/metrics").status, 200);
}

#[test]
fn a_client_that_sends_more_than_its_request_still_gets_the_whole_answer() {
    let page = long_page(3_000_000);
    let (_server, address) = server_of(page.clone());
    let pipelined = b"GET /metrics HTTP/1.1\r\n\r\n".repeat(400);
    let text = ask(address, &pipelined);
    assert_eq!(text.matches("HTTP/1.1 200").count(), 1, "one request for each connection");
    assert_eq!(Answer::of(&text).body, page);
    // A body that nobody reads: up to 64 KiB are thrown away, so that nothing is reset.
    let mut body = b"GET /metrics HTTP/1.1\r\nContent-Length: 50000\r\n\r\n".to_vec();
    body.resize(body.len() + 50_000, b'x');
    assert_eq!(Answer::of(&ask(address, &body)).body, page);
}

#[test]
fn a_client_that_closes_its_side_after_the_request_gets_its_answer() {
    let (_server, address) = server();
    let mut stream = connect(address);
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(Answer::of(&text).body, "up 1\n");
    // Half a request and nothing more will come.
    let mut stream = connect(address);
    stream.write_all(b"GET /met").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(Answer::of(&text).status, 400);
}

#[test]
fn fifty_slow_and_silent_clients_leave_a_scrape_under_a_second() {
    let (_server, address) = server_of(long_page(3_000_000));
    let mut slow = Vec::new();
    for number in 0..50 {
        let mut stream = connect(address);
        // Some say nothing, some ask bit by bit, some ask and take nothing of a long page.
        let said: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET /metrics HTTP/1.1\r\nX: ",
            _ => b"GET /metrics HTTP/1.1\r\n\r\n",
        };
        stream.write_all(said).unwrap();
        slow.push(stream);
    }
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        let answer = get(address, "/metrics");
        quickest = quickest.min(begin.elapsed());
        assert_eq!((answer.status, answer.body.len()), (200, long_page(3_000_000).len()));
        for stream in &mut slow {
            let _ = stream.write(b"a");
        }
    }
    // The quickest: this machine may be busy with other tests.
    assert!(quickest < Duration::from_secs(1), "{quickest:?}");
}

#[test]
fn a_client_that_does_not_ask_is_told_so_after_five_seconds() {
    let (_server, address) = server();
    let begin = Instant::now();
    let mut silent = connect(address);
    let mut slow = connect(address);
    slow.write_all(b"GET /metrics HT").unwrap();
    for stream in [&mut silent, &mut slow] {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(Answer::of(&text).status, 408);
    }
    assert!(begin.elapsed() >= Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[test]
fn a_thousand_quick_connections_are_all_answered() {
    let (_server, address) = server();
    for number in 0..1000 {
        match number % 3 {
            // Comes and goes.
            0 => drop(connect(address)),
            1 => assert_eq!(get(address, "/healthz").status, 200),
            _ => assert_eq!(get(address, "/metrics").status, 200),
        }
    }
}

#[test]
fn the_memory_that_clients_can_hold_is_bounded() {
    // Each page is told apart by its number; dropping is seen through the count of those alive.
    let page = long_page(4_000_000);
    let length = page.len();
    let (_server, address) = server_of(page);
    let before = resident();
    let mut slow: Vec<TcpStream> = Vec::new();
    for _ in 0..128 {
        let mut stream = connect(address);
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        // The answer has begun, so the page exists.
        let mut first = [0; 8];
        stream.read_exact(&mut first).unwrap();
        slow.push(stream);
    }
    let grown = resident().saturating_sub(before);
    // Eight answers on their way; one page may be in the making, and the test's own clients take something.
    assert_eq!(ANSWERS_MAX, 8);
    let bound = (8 + 3) * length;
    assert!(grown < bound, "{grown} bytes for {} clients, {bound} at the most", slow.len());
    assert_eq!(get(address, "/healthz").status, 200);
}

#[test]
fn for_one_connection_more_the_oldest_that_has_not_asked_is_closed() {
    assert_eq!(CONNECTIONS_MAX, 32);
    let (_server, address) = server();
    let mut silent: Vec<TcpStream> = (0..40).map(|_| connect(address)).collect();
    // Behind all of them: when this one is answered, they have been accepted.
    assert_eq!(get(address, "/healthz").status, 200);
    let is_open = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        matches!(stream.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    assert!(silent[..9].iter_mut().all(|stream| !is_open(stream)), "the oldest are still there");
    let youngest = silent.last_mut().unwrap();
    assert!(is_open(youngest), "the youngest is gone");
    youngest.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    youngest.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut text = String::new();
    youngest.read_to_string(&mut text).unwrap();
    assert_eq!(Answer::of(&text).status, 200);
}

/// Bytes of this process in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells");
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_page_that_cannot_be_written_is_an_error_and_the_server_lives() {
    let render = |out: &mut String| {
        out.push_str("half a page");
        panic!("the page's own fault");
    };
    let server = Server::start(&addresses(0, true), Arc::new(render)).unwrap();
    for _ in 0..2 {
        assert_eq!(get(server.address(), "/metrics").status, 500);
    }
    assert_eq!(get(server.address(), "/healthz").status, 200);
}

#[test]
fn a_dropped_server_frees_its_address_at_once() {
    let (server, address) = server();
    assert_eq!(get(address, "/healthz").status, 200);
    let open = connect(address);
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    let again = Server::start(&[address], Arc::new(|_: &mut String| {})).expect("the address is free");
    assert_eq!(again.address(), address);
    drop(open);
}

#[test]
fn a_taken_address_is_an_error() {
    let (_server, address) = server();
    let second = Server::start(&[address], Arc::new(|_: &mut String| {}));
    assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    assert!(Server::start(&[], Arc::new(|_: &mut String| {})).is_err());
}

#[test]
fn both_kinds_of_addresses_are_answered_and_loopback_means_loopback() {
    let port = |server: &Server| server.address().port();
    let everywhere = Server::start(&addresses(0, false), Arc::new(|_: &mut String| {})).unwrap();
    assert_eq!(get(SocketAddr::from(([127, 0, 0, 1], port(&everywhere))), "/healthz").status, 200);
    let local = Server::start(&addresses(0, true), Arc::new(|_: &mut String| {})).unwrap();
    assert_eq!(get(SocketAddr::from(([127, 0, 0, 1], port(&local))), "/healthz").status, 200);
    assert!(local.addresses().iter().all(|address| address.ip().is_loopback()));
    let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    for server in [&everywhere, &local] {
        let v6 = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port(server)));
        assert_eq!(TcpStream::connect(v6).is_ok(), has_ipv6);
    }
}
