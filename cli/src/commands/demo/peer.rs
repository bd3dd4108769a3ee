//! The far end of the loopback socket: takes bytes, gives bytes, and counts both for itself.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A side that hears nothing for this long gives up: a demo must not hang.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pieces that data is passed on in.
const CHUNK: usize = 64 * 1024;

/// What the near end asks for; followed by a length of eight bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Ask {
    /// Data follows; the answer is how much of it arrived.
    Take = 1,
    /// The answer is that much data.
    Give = 2,
    /// Data from a place that doesn't exist; the answer is a refusal.
    GiveUnknown = 3,
    /// Data follows, the answer is as much: names are exchanged.
    Exchange = 4,
}

impl Ask {
    fn from_byte(byte: u8) -> Option<Ask> {
        [Ask::Take, Ask::Give, Ask::GiveUnknown, Ask::Exchange].into_iter().find(|ask| *ask as u8 == byte)
    }
}

/// Bytes that the far end saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) taken: u64,
    pub(super) given: u64,
}

/// The near end.
pub(super) struct Link {
    stream: TcpStream,
    far: JoinHandle<io::Result<Seen>>,
}

impl Link {
    /// Starts the far end and connects to it.
    pub(super) fn connect() -> io::Result<Link> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let stream = TcpStream::connect(listener.local_addr()?)?;
        let (far, _) = listener.accept()?;
        for end in [&stream, &far] {
            end.set_nodelay(true)?;
            end.set_read_timeout(Some(PATIENCE))?;
            end.set_write_timeout(Some(PATIENCE))?;
        }
        let far = thread::Builder::new().name("demo-peer".into()).spawn(move || serve(far))?;
        Ok(Link { stream, far })
    }

    fn ask(&mut self, ask: Ask, len: u64) -> io::Result<()> {
        let mut request = [0; 9];
        request[0] = ask as u8;
        request[1..].copy_from_slice(&len.to_le_bytes());
        self.stream.write_all(&request)
    }

    /// Sends data. It is on its way when this returns; [`Link::arrived`] says when it is there.
    pub(super) fn send(&mut self, data: &[u8]) -> io::Result<()> {
        self.ask(Ask::Take, data.len() as u64)?;
        self.stream.write_all(data)
    }

    /// Waits until what was sent is there; how much of it was.
    pub(super) fn arrived(&mut self) -> io::Result<u64> {
        let mut count = [0; 8];
        self.stream.read_exact(&mut count)?;
        Ok(u64::from_le_bytes(count))
    }

    /// Asks for data; [`Link::receive`] takes it.
    pub(super) fn request(&mut self, len: u64) -> io::Result<()> {
        self.ask(Ask::Give, len)
    }

    /// Asks for data that doesn't exist.
    pub(super) fn request_unknown(&mut self) -> io::Result<()> {
        self.ask(Ask::GiveUnknown, 0)
    }

    /// Takes the data asked for; `false` if the far end refuses.
    pub(super) fn receive(&mut self, data: &mut [u8]) -> io::Result<bool> {
        let mut refused = [0];
        self.stream.read_exact(&mut refused)?;
        if refused[0] != 0 {
            return Ok(false);
        }
        self.stream.read_exact(data)?;
        Ok(true)
    }

    /// Exchanges names with the far end.
    pub(super) fn exchange(&mut self, name: &[u8]) -> io::Result<()> {
        self.ask(Ask::Exchange, name.len() as u64)?;
        self.stream.write_all(name)?;
        self.stream.read_exact(&mut vec![0; name.len()])
    }

    /// Hangs up; what the far end saw.
    pub(super) fn close(self) -> io::Result<Seen> {
        drop(self.stream);
        self.far.join().map_err(|_| io::Error::other("the far end of the socket panicked"))?
    }
}

fn serve(stream: TcpStream) -> io::Result<Seen> {
    let mut input = BufReader::with_capacity(CHUNK, stream.try_clone()?);
    let mut output = stream;
    let mut chunk = vec![0_u8; CHUNK];
    let mut seen = Seen::default();
    loop {
        let mut ask = [0];
        if input.read(&mut ask)? == 0 {
            return Ok(seen);
        }
        let mut len = [0; 8];
        input.read_exact(&mut len)?;
        let len = u64::from_le_bytes(len);
        let pieces = std::iter::successors(Some(len), |left| Some(left.saturating_sub(CHUNK as u64)))
            .take_while(|left| *left > 0)
            .map(|left| left.min(CHUNK as u64) as usize);
        match Ask::from_byte(ask[0]) {
            Some(Ask::Take) => {
                let mut taken = 0;
                for piece in pieces {
                    input.read_exact(&mut chunk[..piece])?;
                    taken += piece as u64;
                }
                seen.taken += taken;
                output.write_all(&taken.to_le_bytes())?;
            }
            Some(Ask::Give) => {
                output.write_all(&[0])?;
                for piece in pieces {
                    output.write_all(&chunk[..piece])?;
                    seen.given += piece as u64;
                }
            }
            Some(Ask::GiveUnknown) => output.write_all(&[1])?,
            Some(Ask::Exchange) => {
                for piece in pieces {
                    input.read_exact(&mut chunk[..piece])?;
                    output.write_all(&chunk[..piece])?;
                }
            }
            None => return Err(io::Error::other("the far end of the socket was asked for something unknown")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_count_the_same_bytes() {
        let mut link = Link::connect().unwrap();
        link.exchange(b"demo-0").unwrap();
        let data = vec![7; 3 * CHUNK + 5];
        link.send(&data).unwrap();
        assert_eq!(link.arrived().unwrap(), data.len() as u64);
        link.request(10).unwrap();
        assert!(link.receive(&mut [0; 10]).unwrap());
        link.request_unknown().unwrap();
        assert!(!link.receive(&mut [0; 10]).unwrap());
        assert_eq!(link.close().unwrap(), Seen { taken: data.len() as u64, given: 10 });
    }
}
