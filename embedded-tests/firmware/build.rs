//! The memory of the emulated board, and the linker script of the start-up code.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=memory");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let board = match target.split('-').next() {
        Some("thumbv6m") => "memory/microbit.x",
        Some("riscv32imc") => "memory/virt.x",
        _ => "memory/lm3s6965.x",
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::copy(board, out.join("memory.x")).expect("the board's memory is described");
    println!("cargo::rustc-link-search={}", out.display());
    if target.starts_with("riscv32") {
        println!("cargo::rustc-link-arg-bins=-Tmemory.x");
    }
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    println!("cargo::rustc-link-arg-bins=--nmagic");
}
