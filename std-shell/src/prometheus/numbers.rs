//! Whole numbers as text, exactly, and without the detours of the general formatter.

use std::fmt::{self, Write};

/// Digits of the largest `u64`.
const DIGITS: usize = 20;

/// Writes a number in decimal digits: exact also where a double is not.
pub(super) fn write_number(out: &mut (impl Write + ?Sized), mut number: u64) -> fmt::Result {
    let mut digits = [b'0'; DIGITS];
    let mut at = DIGITS;
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    // Digits are ASCII.
    out.write_str(std::str::from_utf8(&digits[at..]).unwrap_or_default())
}

/// Writes microseconds as seconds, exactly.
pub(super) fn write_seconds(out: &mut (impl Write + ?Sized), us: u64) -> fmt::Result {
    write_number(out, us / 1_000_000)?;
    write!(out, ".{:06}", us % 1_000_000)
}
