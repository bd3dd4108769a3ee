//! Sockets that listen, for both kinds of addresses, and not in a forked child.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketType, sockopt};

use crate::file::fork::Descriptor;

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 128;
/// Free ports that are tried until one is free on all addresses.
const TRIES: usize = 16;

/// The addresses of an endpoint: the loopback interface only, or all interfaces; of both kinds of addresses.
#[must_use]
pub fn addresses(port: u16, local: bool) -> Vec<SocketAddr> {
    if local {
        vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))]
    } else {
        vec![SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))]
    }
}

/// A socket that listens. A forked child doesn't have it: clients would wait there for ever.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: Descriptor,
    pub(super) address: SocketAddr,
}

impl Listener {
    /// The next connection that waits. It doesn't block.
    pub(super) fn accept(&self) -> io::Result<TcpStream> {
        let socket = close_on_exec(accept(self.socket.file()))?;
        let stream = TcpStream::from(socket);
        stream.set_nonblocking(true)?;
        // The head of an answer is small and the page follows at once.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

/// Listens on all addresses: see [`Server::start`](super::Server::start).
pub(super) fn listen(addresses: &[SocketAddr]) -> io::Result<Vec<Listener>> {
    let mut tries = TRIES;
    loop {
        match listen_once(addresses) {
            // A port that is free on the first address may be taken on the next.
            Err((error, true)) if tries == 0 => return Err(error),
            Err((_, true)) => tries -= 1,
            Err((error, false)) => return Err(error),
            Ok(listeners) => return Ok(listeners),
        }
    }
}

/// The error comes with whether another port may do.
fn listen_once(addresses: &[SocketAddr]) -> Result<Vec<Listener>, (io::Error, bool)> {
    let mut listeners: Vec<Listener> = Vec::new();
    let any_port = addresses.first().is_some_and(|first| first.port() == 0);
    let mut missing = None;
    for &(mut address) in addresses {
        if let (0, Some(first)) = (address.port(), listeners.first()) {
            address.set_port(first.address.port());
        }
        match open(address) {
            Ok(listener) => listeners.push(listener),
            Err(error) if has_no_such_addresses(&error) => missing = Some(error),
            Err(error) => return Err((error, any_port && !listeners.is_empty())),
        }
    }
    if listeners.is_empty() {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "no address to listen on");
        return Err((missing.unwrap_or_else(none), false));
    }
    Ok(listeners)
}

fn open(address: SocketAddr) -> io::Result<Listener> {
    match open_one(address) {
        Err(error) if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && has_no_such_addresses(&error) => {
            open_one(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
        }
        done => done,
    }
}

/// Whether the machine lacks this kind of address, IPv6 as a rule.
fn has_no_such_addresses(error: &io::Error) -> bool {
    [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL, Errno::PROTONOSUPPORT]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn open_one(address: SocketAddr) -> io::Result<Listener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = close_on_exec(socket(family))?;
    // Connections of a server that was here before may still be winding down.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if let SocketAddr::V6(v6) = address {
        // One socket for both kinds, whatever the system's default; for a single address it means nothing.
        sockopt::set_ipv6_v6only(&socket, !v6.ip().is_unspecified())?;
    }
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    let address = SocketAddr::try_from(net::getsockname(&socket)?).unwrap_or(address);
    Ok(Listener { socket: Descriptor::new(File::from(socket)), address })
}

#[cfg(target_os = "linux")]
fn socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    net::socket_with(family, SocketType::STREAM, net::SocketFlags::CLOEXEC, None)
}

#[cfg(not(target_os = "linux"))]
fn socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    net::socket(family, SocketType::STREAM, None)
}

#[cfg(target_os = "linux")]
fn accept(socket: &File) -> rustix::io::Result<OwnedFd> {
    net::accept_with(socket, net::SocketFlags::CLOEXEC)
}

#[cfg(not(target_os = "linux"))]
fn accept(socket: &File) -> rustix::io::Result<OwnedFd> {
    net::accept(socket)
}

/// For systems that can't say so when they make the socket.
fn close_on_exec(socket: rustix::io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let socket = socket?;
    if cfg!(not(target_os = "linux")) {
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(socket)
}
