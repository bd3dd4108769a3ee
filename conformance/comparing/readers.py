"""The readers that are compared: how each is built and started, and a process that answers for many files."""

import os
import queue
import shlex
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = {"PYTHONPATH": str(ROOT / "readers" / "python" / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
PATIENCE = 20  # seconds for one file
MOST_MEMORY = 64  # megabytes in one piece, for C++ under its sanitizers; all answers about the largest files fit
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()


class Reader:
    """A reader's program."""

    def __init__(self, name, command, environment=None):
        self.name, self.command = name, command
        self.environment = os.environ | (environment or {})

    def answers(self, paths):
        """The line for each path, in order. Where the program ended or hung, a word in its place: see `is_answer`."""
        paths = list(paths)
        answers = []
        while len(answers) < len(paths):
            answers += self._run(paths[len(answers) :])
        return answers

    def _run(self, paths):
        """The answers of one process: for all paths, or up to the first that it did not survive."""
        process = subprocess.Popen(
            self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        lines, errors = queue.Queue(), []
        threads = [
            threading.Thread(target=_feed, args=(process.stdin, paths), daemon=True),
            threading.Thread(target=_lines, args=(process.stdout, lines), daemon=True),
            threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True),
        ]
        for thread in threads:
            thread.start()
        answers = []
        try:
            while len(answers) < len(paths):
                line = lines.get(timeout=PATIENCE)
                if line is None:
                    break
                answers.append(line)
        except queue.Empty:
            process.kill()
            answers.append(f"hung for more than {PATIENCE} seconds")
            return answers
        finally:
            if len(answers) == len(paths) or process.poll() is not None:
                try:
                    status = process.wait(timeout=PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    status = "no end of its input"
            else:
                process.kill()
                status = process.wait()
            for thread in threads:
                thread.join(timeout=5)
            process.stdout.close()
            process.stderr.close()
        if len(answers) < len(paths) or status != 0:
            said = b"".join(errors).decode("utf-8", "replace").strip()
            where = f"ended with status {status}: {said[-2000:]}"
            if len(answers) < len(paths):
                answers.append(where)
            else:
                answers[-1] = where
        return answers


def is_answer(line):
    """Whether a line is a reader's and not what is said of one that failed."""
    return line.startswith("{")


def _feed(pipe, paths):
    try:
        pipe.write("".join(f"{path}\n" for path in paths).encode())
        pipe.close()
    except BrokenPipeError:
        pass


def _lines(pipe, lines):
    for line in pipe:
        lines.put(line.decode("utf-8", "replace").rstrip("\n"))
    lines.put(None)


def rust(release=False):
    kind = ["--release"] if release else []
    subprocess.run(["cargo", "build", "--locked", "--quiet", "-p", "telering", "--example", "conformance", *kind], cwd=ROOT, check=True)
    return Reader("rust", [str(target() / ("release" if release else "debug") / "examples" / "conformance")])


def interpreter():
    """The Python that the Python reader runs in: one that has numpy, if $TELERING_PYTHON names it."""
    return os.environ.get("TELERING_PYTHON") or sys.executable


def python(release=False):
    if subprocess.run([interpreter(), "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode != 0:
        print("numpy is missing: python and plain read in the same way. Name a Python that has it in TELERING_PYTHON", file=sys.stderr)
    return Reader("python", [interpreter(), "-m", "telering_reader.conformance"], PYTHON)


def plain(release=False):
    """The Python reader as it is where numpy is missing."""
    without = "import runpy, sys; sys.modules['numpy'] = None; runpy.run_module('telering_reader.conformance', run_name='__main__', alter_sys=True)"
    return Reader("plain", [interpreter(), "-c", without], PYTHON)


def cpp(release=False):
    """Under the address and the undefined-behaviour sanitizer, except where speed matters."""
    folder = target() / "conformance"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / ("cpp-release" if release else "cpp")
    flags = ["-O2"] if release else ["-O1", "-g", *SANITIZERS]
    cpp_folder = ROOT / "readers" / "cpp"
    command = [os.environ.get("CXX", "c++"), "-std=c++17", *flags, "-I", str(cpp_folder / "include")]
    source = cpp_folder / "conformance.cpp"
    newest = max(path.stat().st_mtime for path in [source, *cpp_folder.glob("include/**/*.hpp")])
    if not program.exists() or program.stat().st_mtime < newest:
        subprocess.run([*command, str(source), "-o", str(program)], check=True)
    # A number in a file must not decide how much memory is taken: no single piece is larger than this.
    return Reader("cpp", [str(program)], {"ASAN_OPTIONS": f"max_allocation_size_mb={MOST_MEMORY}"})


OURS = {"rust": rust, "python": python, "plain": plain, "cpp": cpp}


def add_arguments(parser):
    parser.add_argument("--only", metavar="NAMES", default=",".join(OURS), help="which of ours, with commas between: rust, python, plain (python without numpy), cpp")
    parser.add_argument("--reader", metavar="CMD", action="append", default=[], help="another reader's program")


def chosen(arguments, release=False):
    ours = [name for name in arguments.only.split(",") if name]
    unknown = set(ours) - OURS.keys()
    if unknown:
        raise SystemExit(f"no reader named {', '.join(sorted(unknown))}; there are {', '.join(OURS)}")
    readers = [OURS[name](release) for name in ours]
    for number, command in enumerate(arguments.reader, 1):
        readers.append(Reader(f"reader {number}", shlex.split(command)))
    return readers
