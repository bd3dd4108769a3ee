//! A whole transfer through the C interface beside one through the Rust interface, in one run.
//!
//! The Rust side is compiled into this program; the C side is the shared library beside it, called as any program calls
//! it. Short slices of each take turns; the median of their quotients is what counts. Ends with 1 if it is above the
//! limit.
//!
//! A transfer through C has a place of its own, and each step is a call. So has the one in Rust that is held against it:
//! it stands in a request on the heap, and each step is a function, as in an engine that creates, posts and polls.
//! Beside it, for information, one that begins and ends in one function, which the compiler keeps in registers.

use std::ffi::c_char;
use std::hint::black_box;
use std::time::{Duration, Instant};

use libloading::Library;
use telering::{Operation, Telemetry, Transfer};

const LIMIT: f64 = 1.5;
const ROUNDS: usize = 301;
const SLICE: u64 = 4000;

type Begin = unsafe extern "C" fn(u64, u32, u64, u32, *mut u64) -> i32;
type OnTransfer = unsafe extern "C" fn(u64) -> i32;
type OpenAgent = unsafe extern "C" fn(
    *const c_char,
    *const telering_c::exports::agent::Options,
    *mut u64,
    *mut c_char,
    usize,
) -> i32;

/// The C interface, as a loader finds it.
struct C {
    agent: u64,
    begin: Begin,
    posted: OnTransfer,
    finish: OnTransfer,
    release: OnTransfer,
}

impl C {
    fn load() -> Result<C, Box<dyn std::error::Error>> {
        let program = std::env::current_exe()?;
        let folder = program.parent().and_then(std::path::Path::parent).ok_or("target/PROFILE/examples/PROGRAM")?;
        // SAFETY: our own library and the signatures of its header; it stays loaded.
        unsafe {
            let library = Box::leak(Box::new(Library::new(folder.join("libtelering_c.so"))?));
            let mut options: telering_c::exports::agent::Options = std::mem::zeroed();
            options.size = size_of_val(&options);
            options.enable = 1;
            options.ignore_environment = 1;
            options.exporter = c"NOP".as_ptr();
            let mut agent = 0;
            let open: OpenAgent = *library.get(b"telering_agent_open")?;
            let status = open(c"c".as_ptr(), &options, &mut agent, std::ptr::null_mut(), 0);
            assert_eq!(status, 0);
            Ok(C {
                agent,
                begin: *library.get(b"telering_transfer_begin")?,
                posted: *library.get(b"telering_transfer_posted")?,
                finish: *library.get(b"telering_transfer_finish")?,
                release: *library.get(b"telering_transfer_release")?,
            })
        }
    }

    #[inline(never)]
    fn transfer(&self, bytes: u64) {
        let mut transfer = 0;
        // SAFETY: handles of this library, and a place for one.
        let status = unsafe {
            (self.begin)(self.agent, 0, bytes, 1, &mut transfer)
                | (self.posted)(transfer)
                | (self.finish)(transfer)
                | (self.release)(transfer)
        };
        assert_eq!(status, 0);
    }
}

/// What an engine holds of an operation under way.
struct Request {
    transfer: Transfer,
}

#[inline(never)]
fn begin(agent: &Telemetry, bytes: u64) -> Box<Request> {
    Box::new(Request { transfer: agent.begin_transfer(Operation::Write, bytes, 1) })
}

#[inline(never)]
fn posted(request: &mut Request) {
    request.transfer.posted();
}

#[inline(never)]
fn finish(request: &mut Request) {
    request.transfer.finish();
}

#[inline(never)]
fn release(request: Box<Request>) {
    drop(request);
}

fn by_steps(agent: &Telemetry, bytes: u64) {
    let mut request = begin(agent, bytes);
    posted(&mut request);
    finish(&mut request);
    release(request);
}

#[inline(never)]
fn in_one_function(agent: &Telemetry, bytes: u64) {
    let mut transfer = agent.begin_transfer(Operation::Write, bytes, 1);
    transfer.posted();
    transfer.finish();
}

fn slice(one: impl Fn(u64)) -> Duration {
    let start = Instant::now();
    (0..SLICE).for_each(|bytes| one(black_box(bytes)));
    start.elapsed()
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let c = C::load()?;
    let rust = Telemetry::builder("rust").ignore_environment(true).enable(true).nop().build();
    let (mut ratios, mut beside_one_function, mut rust_ns, mut c_ns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let of_steps = slice(|bytes| by_steps(&rust, bytes)).as_secs_f64() * 1e9 / SLICE as f64;
        let of_c = slice(|bytes| c.transfer(bytes)).as_secs_f64() * 1e9 / SLICE as f64;
        let of_one = slice(|bytes| in_one_function(&rust, bytes)).as_secs_f64() * 1e9 / SLICE as f64;
        ratios.push(of_c / of_steps);
        beside_one_function.push(of_c / of_one);
        rust_ns.push(of_steps);
        c_ns.push(of_c);
    }
    let ratio = median(ratios);
    println!(
        "a transfer: Rust {:.1} ns, C {:.1} ns; C / Rust {ratio:.2} x, limit {LIMIT} x ({ROUNDS} rounds, medians); beside Rust \
         in one function {:.2} x",
        median(rust_ns),
        median(c_ns),
        median(beside_one_function)
    );
    println!("{} passed, {} failed", u32::from(ratio <= LIMIT), u32::from(ratio > LIMIT));
    std::process::exit(i32::from(ratio > LIMIT));
}
