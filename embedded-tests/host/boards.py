"""The emulated boards: how firmware is built for them, and how it runs."""

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent
PATIENCE = 60  # seconds for one run


@dataclass(frozen=True)
class Board:
    """A core, and the machine of the emulator that has it."""

    name: str
    target: str
    machine: tuple
    programs: tuple = ("--bins",)


M3 = Board("m3", "thumbv7m-none-eabi", ("qemu-system-arm", "-cpu", "cortex-m3", "-machine", "lm3s6965evb"))
M0 = Board("m0", "thumbv6m-none-eabi", ("qemu-system-arm", "-machine", "microbit"))
# The programs that are written for it as well.
RISCV = Board(
    "riscv", "riscv32imc-unknown-none-elf", ("qemu-system-riscv32", "-machine", "virt", "-bios", "none"), ("--bin", "black_box", "--bin", "endless", "--bin", "read_meanwhile"),
)  # fmt: skip
BOARDS = (M3, M0)


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "embedded"


def linker():
    """The linker that comes with the Rust toolchain; the one of Debian's is a link to nowhere."""
    environment = {name: value for name, value in os.environ.items() if name != "RUSTC"}
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    found = sorted(Path(sysroot).glob("lib/rustlib/*/bin/rust-lld"))
    return str(found[0]) if found else "rust-lld"


def cargo(*arguments, board, check=True, **options):
    """Cargo for a board: a stable toolchain's cargo, Debian's compiler with the sources of its library."""
    variable = f"CARGO_TARGET_{board.target.upper().replace('-', '_')}_LINKER"
    environment = os.environ | {"RUSTC": "/usr/bin/rustc", "RUSTC_BOOTSTRAP": "1", variable: linker()}
    command = ["cargo", *arguments, "-Zbuild-std=core", "--release", "--locked", "--target", board.target]
    return subprocess.run(command, env=environment, check=check, text=True, **options)


@cache
def build(board, variant="critical-section"):
    """Builds the firmware and gives the folder of its programs."""
    folder = target() / variant
    features = ["--no-default-features", "--features", variant]
    manifest = ["--manifest-path", str(HERE / "firmware" / "Cargo.toml"), "--target-dir", str(folder)]
    cargo("build", "--quiet", *board.programs, *manifest, *features, board=board)
    return folder / board.target / "release"


@cache
def build_c(board):
    """Builds the library for C, and the program in C with it."""
    folder = target() / "c"
    library = ROOT / "bindings" / "firmware"
    cargo("build", "--quiet", "--manifest-path", str(library / "Cargo.toml"), "--target-dir", str(folder), board=board)
    made = folder / board.target / "release"
    program, source = made / "program", HERE / "c"
    core = {"m3": "cortex-m3", "m0": "cortex-m0"}[board.name]
    flags = [f"-mcpu={core}", "-mthumb", "-Os", "-g", "-std=c11", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-nostdlib", "-Wl,--gc-sections,-z,noexecstack"]
    tool(
        "gcc", *flags, "-I", library / "include", "-T", source / "board.ld", source / "main.c", made / "libtelering_firmware.a",
        "-o", program,
    )  # fmt: skip
    return program


def emulator(board, program, *options):
    return [
        *board.machine, "-nographic", "-monitor", "none", "-serial", "none",
        "-semihosting-config", "enable=on,target=native", "-kernel", str(program), *options,
    ]  # fmt: skip


def run(board, program, folder, *options):
    """Runs a program to its end in a folder, where it leaves its dumps. Gives its exit status and what it said."""
    done = subprocess.run(
        emulator(board, program, *options), cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=PATIENCE, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def symbols(program):
    """Address and size of each symbol, by its readable name, with the letter of its kind."""
    lines = tool("nm", "--print-size", "--demangle", program).splitlines()
    rows = [line.split(maxsplit=3) for line in lines]
    return {row[3]: (int(row[0], 16), int(row[1], 16), row[2]) for row in rows if len(row) == 4 and len(row[2]) == 1}


def tool(name, *arguments):
    command = [f"arm-none-eabi-{name}", *map(str, arguments)]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
