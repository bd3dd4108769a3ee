//! Looks into a library before it is loaded: loading one runs its code.
//!
//! This is no guard against malice: whoever may write into the folder of plug-ins may run code here anyway. It is
//! for mistakes, which are many: a text file, another machine's library, a plug-in of NIXL's, one for a later version.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;

/// Tables larger than this are not read.
const TABLE_MAX: u64 = 64 << 20;

const HEADER: usize = 64;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
const SEGMENT: usize = 56;

const SHARED_OBJECT: u16 = 3;
const DYNAMIC_SYMBOLS: u32 = 11;
const LOADED: u32 = 1;
/// A symbol that the library wants from others.
const UNDEFINED: u16 = 0;
const OBJECT: u8 = 1;

/// The machine that this program is for, in the numbers of ELF; 0 for one that has none here.
const MACHINE: u16 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else if cfg!(target_arch = "s390x") {
    22
} else if cfg!(target_arch = "powerpc64") {
    21
} else if cfg!(target_arch = "loongarch64") {
    258
} else {
    0
};

/// Why a file can't be a plug-in, as the end of the sentence "FILE ...".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        match error.kind() {
            ErrorKind::UnexpectedEof => Refusal("is a damaged library: a table ends behind its end".into()),
            _ => Refusal(format!("can't be read: {error}")),
        }
    }
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(why.into()))
}

/// Numbers in a piece of a file.
struct Bytes(Vec<u8>);

impl Bytes {
    /// Reads a piece whose size was looked at.
    fn read(file: &File, offset: u64, len: usize) -> Result<Bytes, Refusal> {
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Bytes(bytes))
    }

    /// Reads a table of entries of one size: no more than the file has, and never much.
    fn table(file: &File, offset: u64, len: u64) -> Result<Bytes, Refusal> {
        let rest = file.metadata()?.len().saturating_sub(offset);
        if len > rest || len > TABLE_MAX {
            return refuse("is a damaged library: a table is longer than the file");
        }
        Bytes::read(file, offset, len as usize)
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.array(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.array(at))
    }

    /// Whether the text at this place is the one given.
    fn is(&self, at: u32, text: &str) -> bool {
        let rest = self.0.get(at as usize..).unwrap_or_default();
        rest.strip_prefix(text.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }
}

/// A library that this process could load, with the list of what it defines.
pub(super) struct Library {
    file: File,
    header: Bytes,
    symbols: Bytes,
    names: Bytes,
}

impl Library {
    /// Reads a library's list of symbols.
    pub(super) fn read(file: File) -> Result<Library, Refusal> {
        if !file.metadata()?.is_file() {
            return refuse("is no file");
        }
        let header = match Bytes::read(&file, 0, HEADER) {
            Ok(header) if header.0.starts_with(b"\x7fELF") => header,
            Ok(_) => return refuse("is no library"),
            Err(_) if file.metadata()?.len() < HEADER as u64 => return refuse("is no library"),
            Err(refusal) => return Err(refusal),
        };
        let (class, order) = (header.0[4], header.0[5]);
        let native = if cfg!(target_endian = "little") { 1 } else { 2 };
        if class != 2 || order != native || (MACHINE != 0 && header.u16(18) != MACHINE) {
            return refuse(format!("is a library for another kind of machine than this ({})", std::env::consts::ARCH));
        }
        if header.u16(16) != SHARED_OBJECT {
            return refuse("is no shared library");
        }
        let (offset, count) = (header.u64(40), header.u16(60));
        if usize::from(header.u16(58)) != SECTION {
            return refuse("is a library without a list of symbols");
        }
        let sections = Bytes::table(&file, offset, u64::from(count) * SECTION as u64)?;
        let section = |index: usize| index * SECTION;
        let Some(dynamic) = (0..usize::from(count)).find(|&index| sections.u32(section(index) + 4) == DYNAMIC_SYMBOLS)
        else {
            return refuse("is a library without a list of symbols");
        };
        let table =
            |index: usize| Bytes::table(&file, sections.u64(section(index) + 24), sections.u64(section(index) + 32));
        let symbols = table(dynamic)?;
        let link = sections.u32(section(dynamic) + 40) as usize;
        let names = if link < usize::from(count) { table(link)? } else { Bytes(Vec::new()) };
        Ok(Library { file, header, symbols, names })
    }

    /// Place of a symbol that the library defines.
    fn find(&self, name: &str) -> Option<usize> {
        (0..self.symbols.0.len() / SYMBOL)
            .map(|index| index * SYMBOL)
            .find(|&at| self.symbols.u16(at + 6) != UNDEFINED && self.names.is(self.symbols.u32(at), name))
    }

    /// Whether the library defines a symbol.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The first bytes of a constant that the library defines, and its whole size; `None` if it defines no such.
    pub(super) fn constant<const N: usize>(&self, name: &str) -> Result<Option<([u8; N], u64)>, Refusal> {
        let Some(at) = self.find(name) else { return Ok(None) };
        let (kind, address, size) = (self.symbols.0[at + 4] & 15, self.symbols.u64(at + 8), self.symbols.u64(at + 16));
        if kind != OBJECT || size < N as u64 {
            return Ok(None);
        }
        let (offset, count) = (self.header.u64(32), self.header.u16(56));
        let segments = Bytes::table(&self.file, offset, u64::from(count) * SEGMENT as u64)?;
        for index in 0..usize::from(count) {
            let segment = index * SEGMENT;
            let (offset, start) = (segments.u64(segment + 8), segments.u64(segment + 16));
            let (in_file, in_memory) = (segments.u64(segment + 32), segments.u64(segment + 40));
            let Some(into) = address.checked_sub(start).filter(|into| *into < in_memory) else { continue };
            if segments.u32(segment) != LOADED {
                continue;
            }
            // Behind the part that is in the file, memory begins as zeros.
            let mut bytes = [0; N];
            let there = in_file.saturating_sub(into).min(N as u64) as usize;
            let Some(from) = offset.checked_add(into) else { break };
            self.file.read_exact_at(&mut bytes[..there], from)?;
            return Ok(Some((bytes, size)));
        }
        refuse("is a damaged library: a symbol is nowhere in it")
    }
}
