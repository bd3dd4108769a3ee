//! The memory of the emulated board, and the linker scripts of the start-up code.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let board = std::path::Path::new(&here).join("../firmware/memory/lm3s6965.x");
    println!("cargo::rerun-if-changed={}", board.display());
    std::fs::copy(&board, out.join("memory.x")).expect("the board's memory is described");
    println!("cargo::rustc-link-search={}", out.display());
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    println!("cargo::rustc-link-arg-bins=--nmagic");
}
