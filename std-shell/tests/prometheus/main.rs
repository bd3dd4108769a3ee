//! Metrics for Prometheus: the text, the server, the exporter.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod http;
mod page;
mod text;
