//! What callers hand over by pointer. Null is told by a status; anything else the header asks for.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::Status;

/// Writes a result.
///
/// # Safety
/// `out` is null or a place for a `T` that the caller may write.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) -> Result<(), Status> {
    if out.is_null() {
        return Err(Status::INVALID_PARAM);
    }
    // SAFETY: not null, and the caller says the rest.
    unsafe { out.write(value) };
    Ok(())
}

/// A text that must be there.
///
/// # Safety
/// `text` is null or a string of C that stays for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Status> {
    // SAFETY: the caller says so.
    unsafe { optional(text) }?.ok_or(Status::INVALID_PARAM)
}

/// A text that may be left out.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional<'a>(text: *const c_char) -> Result<Option<&'a str>, Status> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and the caller says the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Status::INVALID_PARAM)
}

/// A path that may be left out: any bytes.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_path<'a>(path: *const c_char) -> Option<&'a Path> {
    if path.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller says the rest.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Some(Path::new(OsStr::from_bytes(bytes)))
}

/// Copies text out, with a NUL behind it, and says how long it is. Text that does not fit is cut.
///
/// # Safety
/// `buffer` is null or has `capacity` bytes that the caller may write; `length` is null or a place for a number.
pub(crate) unsafe fn copy_text(
    text: &[u8],
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Result<(), Status> {
    if !length.is_null() {
        // SAFETY: not null, and the caller says the rest.
        unsafe { length.write(text.len()) };
    }
    if buffer.is_null() || capacity == 0 {
        return if length.is_null() { Err(Status::INVALID_PARAM) } else { Err(Status::BUFFER_TOO_SMALL) };
    }
    let fits = text.len().min(capacity - 1);
    // SAFETY: the buffer has room for `fits` bytes and one more.
    unsafe {
        buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), fits);
        buffer.add(fits).write(0);
    }
    if fits == text.len() { Ok(()) } else { Err(Status::BUFFER_TOO_SMALL) }
}
