//! `telering serve`.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use telering::config::Config;
use telering::prometheus::{Directory, DirectoryOptions, LabelSet, Service};

use super::Outcome;
use crate::args::{Labels, ServeArguments};
use crate::terminal;
use crate::time;

/// Where to listen: a name may stand for several addresses.
#[derive(Clone, Debug)]
pub(crate) struct Addresses(Vec<SocketAddr>);

/// Reads `ADDR:PORT`; without ADDR it is all interfaces.
pub(crate) fn address(text: &str) -> Result<Addresses, String> {
    let wrong = |why: &str| format!("{why}; write an address and a port, such as 127.0.0.1:9464 or [::]:9464");
    let (_, port) = text.rsplit_once(':').ok_or_else(|| wrong("there is no port"))?;
    if port.parse::<u16>().is_err() || port.starts_with('+') {
        return Err(wrong("the port is no number from 0 to 65535"));
    }
    if let Some(port) = text.strip_prefix(':') {
        return address(&format!("[::]:{port}"));
    }
    match text.to_socket_addrs().map(Vec::from_iter) {
        Ok(addresses) if !addresses.is_empty() => Ok(Addresses(addresses)),
        Ok(_) => Err(wrong("this name has no address")),
        Err(error) => Err(wrong(&format!("this is no address: {error}"))),
    }
}

/// Reads `30s`, `5m`, or a number of seconds.
pub(crate) fn ttl(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().ok().map(|seconds| Duration::from_secs(seconds.min(u64::from(u32::MAX))));
    let duration = || time::parse_duration(text).map(Duration::from_micros);
    seconds.or_else(duration).ok_or_else(|| "write a time such as 30s, 5m or 1h30m".to_owned())
}

pub(super) fn run(arguments: ServeArguments) -> anyhow::Result<Outcome> {
    let directory = &arguments.directory;
    let shown = terminal::path(directory);
    let is_there = look_at(directory)
        .with_context(|| format!("cannot read the directory {shown}: name the one that NIXL_TELEMETRY_DIR names"))?;
    let mut options = DirectoryOptions::default();
    options.labels = match arguments.labels {
        Labels::Full => LabelSet::Full,
        Labels::Stable => LabelSet::Stable,
    };
    options.ttl = arguments.ttl;
    options.consume = !arguments.once;
    options.bounds = bounds();
    let mut served = Directory::new(directory, options);
    if arguments.once {
        anyhow::ensure!(is_there, "cannot read the directory {shown}: there is none");
        let mut page = String::new();
        served.render(&mut page);
        io::stdout().lock().write_all(page.as_bytes())?;
        return Ok(Outcome::Done);
    }

    // Before anything is taken out of a ring: from here on a signal ends in good order.
    let mut signalled = signals()?;
    let Addresses(addresses) = arguments.listen;
    let service = Service::start(served, &addresses, arguments.remove_dead).with_context(|| {
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        format!("cannot listen on {}: name another address or port with --listen", addresses.join(" and "))
    })?;
    if !is_there {
        terminal::complain(format_args!("{shown} is not there yet; its agents are served as soon as it is"));
    }
    let mut out = io::stdout().lock();
    writeln!(out, "serving {shown} at http://{}/metrics", service.address())?;
    out.flush()?;
    drop(out);
    let _ = signalled.read(&mut [0]);
    drop(service);
    Ok(Outcome::Done)
}

/// The bounds of the histograms that are made of the events in NIXL's rings: the variable that gives engines theirs.
fn bounds() -> Vec<u64> {
    let lookup = |name: &str| name.ends_with("_HISTOGRAM_BUCKETS_US").then(|| std::env::var_os(name)).flatten();
    let (config, warnings) = Config::from_lookup(lookup, Vec::new());
    warnings.iter().for_each(|warning| terminal::complain(format_args!("{}", warning.message)));
    config.histogram_bounds
}

/// Whether there is a directory to be read.
fn look_at(directory: &Path) -> io::Result<bool> {
    match std::fs::read_dir(directory) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Can be read from once a signal has asked for the end; a second one doesn't wait for it.
fn signals() -> anyhow::Result<UnixStream> {
    let (read, write) = UnixStream::pair().context("cannot watch for signals")?;
    super::watch_signals(&Arc::new(AtomicBool::new(false)))?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let write = write.try_clone().context("cannot watch for signals")?;
        signal_hook::low_level::pipe::register(signal, write).context("cannot watch for signals")?;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_may_have_no_host() {
        assert_eq!(address("127.0.0.1:0").unwrap().0, ["127.0.0.1:0".parse().unwrap()]);
        assert_eq!(address(":9464").unwrap().0, ["[::]:9464".parse().unwrap()]);
        assert_eq!(address("[::1]:80").unwrap().0, ["[::1]:80".parse().unwrap()]);
        for wrong in ["", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "1.2.3:x", "::1"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_has_a_unit_or_is_in_seconds() {
        assert_eq!(ttl("30"), Ok(Duration::from_secs(30)));
        assert_eq!(ttl("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(ttl("0"), Ok(Duration::ZERO));
        for wrong in ["", "x", "-1", "5 apples"] {
            assert!(ttl(wrong).is_err(), "{wrong}");
        }
    }
}
