//! A service with a `/metrics` of its own that shows its telering agents there: no second port, no second server.
//!
//!     cargo run -p telering-example-axum -- 127.0.0.1:8080
//!     curl http://127.0.0.1:8080/metrics
//!
//! The library itself brings no async runtime; this example is a package of its own for that reason.

use std::io;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use telering::{Operation, Telemetry, prometheus};
use tokio::net::TcpListener;

/// All agents of the process. A page may wait for a flush for a few milliseconds, so it is made on a thread that may.
async fn metrics() -> impl IntoResponse {
    let page = tokio::task::spawn_blocking(|| {
        let mut page = String::new();
        // The service's own metrics may follow: names of telering's begin with agent_ and telering_.
        prometheus::render(&mut page).map(|()| page)
    });
    let page = page.await.ok().and_then(Result::ok).unwrap_or_default();
    ([(header::CONTENT_TYPE, prometheus::CONTENT_TYPE)], page)
}

fn service() -> Router {
    Router::new().route("/metrics", get(metrics))
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".into());
    // Nothing is exported: the numbers are kept in the process, and the page asks for them.
    let agent = Telemetry::builder("prefill-0").capture_telemetry(true).build();
    let mut transfer = agent.begin_transfer(Operation::Write, 65_536, 1);
    transfer.posted();
    transfer.finish();
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("http://{}/metrics", listener.local_addr()?);
        axum::serve(listener, service()).await
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    #[test]
    fn a_scrape_of_the_service_shows_what_its_agents_moved() {
        let agent = Telemetry::builder("of the service").ignore_environment(true).capture_telemetry(true).build();
        agent.begin_transfer(Operation::Write, 1234, 1).finish();
        let (told, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                axum::serve(listener, service()).await.unwrap();
            });
        });
        let mut stream = TcpStream::connect(address.recv().unwrap()).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(text.contains(&format!("content-type: {}\r\n", prometheus::CONTENT_TYPE)), "{text}");
        let line = text.lines().find(|line| line.starts_with("agent_tx_bytes_total{agent_name=\"of the service\""));
        assert_eq!(line.and_then(|line| line.rsplit(' ').next()), Some("1234"));
    }
}
