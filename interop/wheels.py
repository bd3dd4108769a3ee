"""NIXL wheels from PyPI, each version in its own virtual environment below the project's target folder."""

import os
import re
import shutil
import struct
import sys

from processes import Failed, note, run

PACKAGE = "nixl-cu12"
INSTALL_SECONDS = 600


class Wheel:
    """One installed NIXL version."""

    def __init__(self, version, folder):
        self.version = version
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"

    @property
    def packages(self):
        return next((self.folder / "venv" / "lib").glob("python3*")) / "site-packages"

    @property
    def libraries(self):
        return self.packages / ".nixl_cu12.mesonpy.libs"

    def environment(self):
        """Our own environment without any telemetry variable, for processes of this NIXL."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("NIXL_", "TELERING_"))}
        clean["UCX_LOG_LEVEL"] = "error"
        return clean

    def has_exporter(self, name):
        return any(self.packages.glob(f"*.libs/**/libtelemetry_exporter_{name}.so"))

    def telemetry_reader(self):
        """A runnable copy of the version's own telemetry_reader, and whether it had to be repaired."""
        shipped = self.packages / "nixl_cu12.scripts" / "telemetry_reader"
        if not shipped.exists():
            raise Failed(f"{PACKAGE} {self.version} brings no telemetry_reader")
        copy = self.folder / "telemetry_reader"
        data = bytearray(shipped.read_bytes())
        repaired = make_dynamic_section_writable(data)
        copy.unlink(missing_ok=True)
        copy.write_bytes(data)
        copy.chmod(0o755)
        return copy, repaired

    def reader_environment(self):
        return self.environment() | {"LD_LIBRARY_PATH": str(self.libraries)}


def install(version, cache):
    """The wheel of `version`, installed once and kept."""
    if not re.fullmatch(r"[0-9][0-9A-Za-z.+-]*", version):
        raise Failed(f"{version!r} is no version number; give one as on PyPI, such as 1.5.1")
    wheel = Wheel(version, cache / version)
    done = wheel.folder / "installed"
    if done.exists():
        return wheel
    note(f"{version}: installing {PACKAGE}=={version} from PyPI (40 to 80 MB, once)")
    shutil.rmtree(wheel.folder, ignore_errors=True)
    wheel.folder.mkdir(parents=True)
    try:
        run([sys.executable, "-m", "venv", wheel.folder / "venv"], INSTALL_SECONDS)
        pip = [wheel.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        run([*pip, "numpy"], INSTALL_SECONDS)
        # Without its dependencies: torch and CUDA are not needed to move memory on a CPU.
        run([*pip, "--no-deps", f"{PACKAGE}=={version}"], INSTALL_SECONDS)
    except Failed:
        shutil.rmtree(wheel.folder, ignore_errors=True)
        raise
    done.write_text(version + "\n")
    return wheel


PT_LOAD, PT_DYNAMIC, PF_W, PAGE = 1, 2, 2, 4096


def make_dynamic_section_writable(elf):
    """Repairs a fault of the wheels of 1.2.0 to 1.3.2: the dynamic section reaches into a page of a read-only
    segment, and the loader, which writes to it, crashes before main. Works on a copy of the file; returns whether it was needed."""
    if elf[:5] != b"\x7fELF\x02":
        return False
    table, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
    segments = []
    for index in range(count):
        at = table + index * size
        kind, flags = struct.unpack_from("<II", elf, at)
        address, memory = struct.unpack_from("<Q", elf, at + 16)[0], struct.unpack_from("<Q", elf, at + 40)[0]
        segments.append((at, kind, flags, address, memory))
    dynamic = next((segment for segment in segments if segment[1] == PT_DYNAMIC), None)
    repaired = False
    for at, kind, flags, address, memory in segments:
        # A segment is mapped by whole pages.
        first, end = address & -PAGE, (address + memory + PAGE - 1) & -PAGE
        overlaps = dynamic and first < dynamic[3] + dynamic[4] and dynamic[3] < end
        if kind == PT_LOAD and overlaps and not flags & PF_W:
            struct.pack_into("<I", elf, at + 4, flags | PF_W)
            repaired = True
    return repaired
