//! The way out of an emulator (or a debug probe) to the host: files and the exit status.

use core::arch::asm;
use core::sync::atomic::Ordering;

use telering_core::sync::AtomicU64;

const OPEN: usize = 0x01;
const CLOSE: usize = 0x02;
const WRITE0: usize = 0x04;
const WRITE: usize = 0x05;
const EXIT: usize = 0x18;

const WRITE_BINARY: usize = 5;
const APPLICATION_EXIT: usize = 0x2_0026;
const RUN_TIME_ERROR: usize = 0x2_0023;

/// One call to the host. `argument` is what the call takes: a number, or the address of a block that it reads.
fn call(operation: usize, argument: usize) -> usize {
    let result;
    // SAFETY: the debugger or emulator reads the block of the argument, which our callers keep alive and of the right
    // form, and changes nothing but the result. Without a debugger the core stops here.
    #[cfg(target_arch = "arm")]
    unsafe {
        asm!("bkpt 0xab", inlateout("r0") operation => result, in("r1") argument, options(nostack))
    };
    // SAFETY: the same. The instructions around the break are the sign of a call, uncompressed and on one page.
    #[cfg(target_arch = "riscv32")]
    unsafe {
        asm!(
            ".balign 16",
            ".option push",
            ".option norvc",
            "slli x0, x0, 0x1f",
            "ebreak",
            "srai x0, x0, 7",
            ".option pop",
            inlateout("a0") operation => result,
            in("a1") argument,
            options(nostack)
        )
    };
    result
}

fn call_with<const N: usize>(operation: usize, block: [usize; N]) -> usize {
    let block = core::hint::black_box(block);
    call(operation, block.as_ptr() as usize)
}

/// Says something on the host's terminal. `text` ends in a NUL.
pub fn say(text: &'static core::ffi::CStr) {
    call(WRITE0, text.as_ptr() as usize);
}

/// Writes the words of an image into a file on the host. Returns whether that worked.
pub fn dump(path: &'static core::ffi::CStr, words: &[AtomicU64]) -> bool {
    let file = call_with(OPEN, [path.as_ptr() as usize, WRITE_BINARY, path.to_bytes().len()]);
    if file == usize::MAX {
        return false;
    }
    let written = words.iter().all(|word| {
        let bytes = core::hint::black_box(word.load(Ordering::Relaxed).to_ne_bytes());
        call_with(WRITE, [file, bytes.as_ptr() as usize, bytes.len()]) == 0
    });
    call_with(CLOSE, [file]) == 0 && written
}

/// Ends the emulator: status 0 if all went well, else 1.
pub fn exit(well: bool) -> ! {
    loop {
        call(EXIT, if well { APPLICATION_EXIT } else { RUN_TIME_ERROR });
    }
}
