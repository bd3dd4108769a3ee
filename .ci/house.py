"""The house rules that no compiler checks. Each failure says where, and what to do.

Exceptions, each with a reason, are in .ci/exceptions.toml. CONTRIBUTING.md explains the rules.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

from dependencies import ROOT, Checks

LONGEST = 400
COMMENT = {".rs": "//", ".c": "//", ".h": "//", ".hpp": "//", ".cpp": "//", ".py": "#", ".sh": "#", "": "#"}


def git(*arguments):
    return subprocess.run(["git", "-c", "safe.directory=*", *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout


def tracked_texts():
    """Tracked files, and new ones that are not ignored, as {path: text}; binary files are left out."""
    texts = {}
    for path in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        file = ROOT / path
        if not path or file.is_symlink() or not file.is_file():
            continue
        data = file.read_bytes()
        try:
            if b"\0" not in data:
                texts[path] = data.decode()
        except UnicodeDecodeError:
            continue
    return texts


def lines_of_code(path, text):
    """Lines that are neither empty nor only a comment; 0 for a file that is no code."""
    suffix = Path(path).suffix
    if suffix not in COMMENT or (suffix == "" and not text.startswith("#!")):
        return 0
    lines = (line.strip() for line in text.splitlines())
    return sum(1 for line in lines if line and not line.startswith(COMMENT[suffix]))


def without_comments_and_strings(text):
    return re.sub(r'//[^\n]*|"(?:\\[\s\S]|[^"\\])*"', "", text)


def with_exceptions(checks, rule, section, entries, offending, advice):
    """`offending` files must be listed with a reason; a listed file must still need it."""
    checks.check(rule, True, "")
    for path in offending:
        checks.check(
            rule,
            entries.get(path, "").strip(),
            f"{path}; {advice}, or give the reason under [{section}] in .ci/exceptions.toml",
        )
    for path in entries.keys() - set(offending):
        checks.check(rule, False, f"{path} no longer needs its exception; take it out of .ci/exceptions.toml")


def check_length(checks, texts, exceptions):
    long = [path for path, text in texts.items() if lines_of_code(path, text) > LONGEST]
    rule = f"no file has more than {LONGEST} lines of code"
    with_exceptions(checks, rule, "long_files", exceptions, long, "split it by idea")


def check_unsafe(checks, texts, exceptions):
    """clippy sees to the SAFETY lines, in tests as well; this sees to the places, in what users run."""
    unsafe = []
    for path, text in texts.items():
        if path.endswith(".rs") and "/tests/" not in path and re.search(r"\bunsafe\b", without_comments_and_strings(text)):
            unsafe.append(path)
    rule = "unsafe code is only in files that say what it is for"
    with_exceptions(checks, rule, "unsafe_files", exceptions, unsafe, "use a safe way")


def check_order_labels(checks, texts, exceptions):
    """`ORDER label` marks both sides of a happens-before edge; a label alone has lost its other side."""
    rule = "every ORDER label is listed and marks two places or more"
    places = defaultdict(list)
    for path, text in texts.items():
        if not path.endswith(".rs"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for comment in re.findall(r"//.*", line):
                # In backticks it is a mention, not a mark.
                for label in re.findall(r"(?<!`)\bORDER ([a-z][a-z0-9-]*)", comment):
                    places[label].append(f"{path}:{number}")
    listed = set(re.findall(r"`ORDER ([a-z][a-z0-9-]*)`", texts.get("core/src/sync.rs", "")))
    checks.check(rule, listed, "core/src/sync.rs lists no label; this check reads them at its top")
    for label, where in sorted(places.items()):
        paired = len(where) > 1
        checks.check(
            rule,
            paired or exceptions.get(label, "").strip(),
            f"{where[0]}: ORDER {label} has no other side; mark the line it pairs with, or say where it is "
            "under [one_sided_orders] in .ci/exceptions.toml",
        )
        stale = paired and label in exceptions
        checks.check(rule, not stale, f"ORDER {label} has both sides now; take it out of .ci/exceptions.toml")
        checks.check(rule, label in listed, f"{where[0]}: ORDER {label} is not listed at the top of core/src/sync.rs")
    for label in exceptions.keys() - places.keys():
        checks.check(rule, False, f"ORDER {label} marks no line; take it out of .ci/exceptions.toml")
    if unused := listed - places.keys():
        print(f"note: labels in core/src/sync.rs that mark no line yet: {', '.join(sorted(unused))}")


def machine_paths():
    """Absolute paths that only this machine has."""
    roots = {ROOT, Path(git("rev-parse", "--path-format=absolute", "--git-common-dir").strip()).parent}
    roots |= {root.parent for root in roots}
    roots |= {Path(os.environ[name]) for name in ("HOME", "CARGO_TARGET_DIR", "CARGO_HOME") if os.environ.get(name)}
    common = {Path(path) for path in ("/", "/tmp", "/home", "/usr", "/usr/src", "/opt", "/srv", "/var", "/mnt", "/src")}
    return sorted(str(root) for root in roots - common if root.is_absolute())


def check_paths(checks, texts):
    here = "|".join(re.escape(path) for path in machine_paths())
    # Not inside a longer path, and with something below it.
    pattern = re.compile(rf"(?<![\w.}}/-])(?:{here}|/home/(?!user\b|me\b)[a-z][\w.-]*)/")
    for path, text in texts.items():
        hits = [number for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
        where = f"{path}:{hits[0]}" if hits else ""
        checks.check("no file holds a path of a build machine", not hits, f"{where}; write a relative path")


def check_ignored(checks, texts):
    for path, text in texts.items():
        if not path.endswith(".rs"):
            continue
        for number, line in enumerate(map(str.strip, text.splitlines()), 1):
            checks.check(
                "every ignored test says why",
                not line.startswith("#[ignore") or re.match(r'#\[ignore = ".+"\]', line),
                f'{path}:{number}; write #[ignore = "takes 40 s; ./test stress runs it"]',
            )
            checks.check(
                "no example is ignored",
                not re.match(r"//[/!] ?```.*\bignore\b", line),
                f"{path}:{number}; use no_run, or text if it is no code",
            )


def check_steps(checks):
    """A step that no form names would never run; a step without a header explains nothing."""
    lists = dict(re.findall(r"^(FAST|FULL|NOT_YET)=\((.*)\)", (ROOT / "test").read_text(), re.M))
    named = set(lists["FAST"].split()) | set(lists["FULL"].split())
    steps = sorted((ROOT / ".ci/steps").iterdir())
    for file in steps:
        text = file.read_text()
        checks.check("./test names every step", file.name in named, f".ci/steps/{file.name} would never run")
        checks.check(
            "every step says its purpose and time",
            re.search(r"^# Purpose: \S", text, re.M) and re.search(r"^# Time: \S", text, re.M),
            f".ci/steps/{file.name} must start with '# Purpose:' and '# Time:'",
        )
    for script in [ROOT / "test", ROOT / ".ci/run", ROOT / ".ci/lib.sh", *steps]:
        right = subprocess.run(["bash", "-n", script]).returncode == 0
        checks.check("every script is valid bash", right, str(script.relative_to(ROOT)))


def check_members(checks, texts):
    for path, text in texts.items():
        if path.endswith("Cargo.toml") and "edition.workspace" in text:
            checks.check(
                "every package takes the shared lints",
                re.search(r"^\[lints\]\nworkspace = true", text, re.M),
                f"{path}; add '[lints]' with 'workspace = true'",
            )


def main():
    exceptions = tomllib.loads((ROOT / ".ci/exceptions.toml").read_text())
    texts = tracked_texts()
    checks = Checks()
    check_length(checks, texts, exceptions["long_files"])
    check_unsafe(checks, texts, exceptions["unsafe_files"])
    check_order_labels(checks, texts, exceptions["one_sided_orders"])
    check_paths(checks, texts)
    check_ignored(checks, texts)
    check_steps(checks)
    check_members(checks, texts)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
