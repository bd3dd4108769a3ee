//! What a client asks for.

use super::HEAD_MAX;

/// Headers of a request, at the most. More are as much trouble as a head that is too long.
const HEADERS_MAX: usize = 100;

/// What to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) wanted: Wanted,
    /// Only the head of the answer: HEAD.
    pub(super) head_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Metrics,
    Health,
    Refusal(Refusal),
}

/// Why there is nothing to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    BadRequest,
    NotFound,
    MethodNotAllowed,
    Timeout,
    HeadTooLarge,
}

impl Refusal {
    /// Status line and the body's line.
    pub(super) const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Refusal::BadRequest => ("400 Bad Request", "this is no HTTP request"),
            Refusal::NotFound => ("404 Not Found", "there is /metrics and /healthz"),
            Refusal::MethodNotAllowed => ("405 Method Not Allowed", "GET and HEAD are allowed"),
            Refusal::Timeout => ("408 Request Timeout", "the request did not come in time"),
            Refusal::HeadTooLarge => ("431 Request Header Fields Too Large", "the request's head is too large"),
        }
    }

    const fn request(self) -> Request {
        Request { wanted: Wanted::Refusal(self), head_only: false }
    }
}

impl Request {
    pub(super) const TIMEOUT: Request = Refusal::Timeout.request();
    pub(super) const BAD: Request = Refusal::BadRequest.request();

    /// Judges what came so far; `None` while more must come. What follows the head, a body or another request, is
    /// nobody's business.
    pub(super) fn of(bytes: &[u8]) -> Option<Request> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let head = &bytes[..bytes.len().min(HEAD_MAX)];
        let refusal = match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {
                let (Some(method), Some(path)) = (parsed.method, parsed.path) else { return Some(Request::BAD) };
                return Some(Request::asks(method, path));
            }
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_MAX => return None,
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => Refusal::HeadTooLarge,
            Err(_) => Refusal::BadRequest,
        };
        Some(refusal.request())
    }

    fn asks(method: &str, target: &str) -> Request {
        let head_only = method == "HEAD";
        let wanted = if !head_only && method != "GET" {
            Wanted::Refusal(Refusal::MethodNotAllowed)
        } else {
            match path_of(target) {
                "/metrics" => Wanted::Metrics,
                "/healthz" => Wanted::Health,
                _ => Wanted::Refusal(Refusal::NotFound),
            }
        };
        Request { wanted, head_only }
    }
}

/// The path of a target: without what follows `?`, and without the server that a proxy may put before it.
fn path_of(target: &str) -> &str {
    let target = target.split('?').next().unwrap_or_default();
    match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => target,
    }
}

/// Judges a request as the server does, for fuzzing: whether it is complete, in pieces of any size.
#[doc(hidden)]
#[must_use]
pub fn fuzz_request(bytes: &[u8], pieces: usize) -> bool {
    let whole = Request::of(bytes);
    let step = bytes.len().div_ceil(pieces.max(1)).max(1);
    let mut ends = (step..bytes.len()).step_by(step).chain([bytes.len()]);
    // What is settled by a part of it stays so, whatever comes behind.
    let first = ends.find_map(|end| Request::of(&bytes[..end]));
    assert_eq!(first.is_some(), whole.is_some(), "a request is judged by its bytes, not by their pieces");
    whole.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wanted(text: &str) -> Option<Wanted> {
        Request::of(text.as_bytes()).map(|request| request.wanted)
    }

    #[test]
    fn two_paths_and_two_methods_are_answered() {
        for (head, expected) in [
            ("GET /metrics HTTP/1.1", Wanted::Metrics),
            ("HEAD /metrics HTTP/1.1", Wanted::Metrics),
            ("GET /metrics?name[]=up HTTP/1.0", Wanted::Metrics),
            ("GET http://node:9090/metrics HTTP/1.1", Wanted::Metrics),
            ("GET /healthz HTTP/1.1", Wanted::Health),
            ("GET / HTTP/1.1", Wanted::Refusal(Refusal::NotFound)),
            ("GET /metrics/ HTTP/1.1", Wanted::Refusal(Refusal::NotFound)),
            ("GET http://node HTTP/1.1", Wanted::Refusal(Refusal::NotFound)),
            ("POST /metrics HTTP/1.1", Wanted::Refusal(Refusal::MethodNotAllowed)),
            ("get /metrics HTTP/1.1", Wanted::Refusal(Refusal::MethodNotAllowed)),
            ("GET /metrics", Wanted::Refusal(Refusal::BadRequest)),
            ("PRI * HTTP/2.0", Wanted::Refusal(Refusal::BadRequest)),
            ("\x16\x03\x01\x02", Wanted::Refusal(Refusal::BadRequest)),
        ] {
            assert_eq!(wanted(&format!("{head}\r\nHost: node\r\n\r\n")), Some(expected), "{head}");
            assert_eq!(wanted(&format!("{head}\n\n")), Some(expected), "{head}");
        }
        assert!(Request::of(b"HEAD /metrics HTTP/1.1\r\n\r\n").unwrap().head_only);
    }

    #[test]
    fn a_head_ends_at_8_kib_and_at_100_headers() {
        let head = |filler: usize| format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(filler));
        let room = HEAD_MAX - head(0).len();
        assert_eq!(wanted(&head(room)), Some(Wanted::Metrics));
        assert_eq!(wanted(&head(room + 1)), Some(Wanted::Refusal(Refusal::HeadTooLarge)));
        assert_eq!(wanted(&head(room)[..HEAD_MAX - 1]), None);
        let many = |headers: usize| format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a:b\r\n".repeat(headers));
        assert_eq!(wanted(&many(100)), Some(Wanted::Metrics));
        assert_eq!(wanted(&many(101)), Some(Wanted::Refusal(Refusal::HeadTooLarge)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged_and_the_same_in_pieces(bytes in prop::collection::vec(any::<u8>(), 0..200), pieces in 1_usize..9) {
            let _ = fuzz_request(&bytes, pieces);
        }

        #[test]
        fn a_request_is_complete_at_its_last_byte_only(path in "/[a-z]{0,9}", header in "[a-z]{1,9}: [a-z]{0,9}") {
            let request = format!("GET {path} HTTP/1.1\r\n{header}\r\n\r\n");
            for end in 0..request.len() {
                prop_assert_eq!(Request::of(&request.as_bytes()[..end]), None, "{}", end);
            }
            prop_assert!(Request::of(request.as_bytes()).is_some());
        }
    }
}
