"""What the project depends on: licence, origin, necessity, number.

    python3 .ci/dependencies.py deny     every package of Cargo.lock, and the forbidden ones
    python3 .ci/dependencies.py light    what the default library brings along

This is the part of cargo-deny that needs no advisory database, in a second instead of minutes.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
# The tree is counted for this target: another one has other system crates.
TARGET = "x86_64-unknown-linux-gnu"

# Licences that let the project be Apache-2.0 OR MIT without further duties than their notices.
LICENCES = {
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}

# The core is trusted with other processes' memory: nothing joins these without a decision.
CORE_MAY_USE = {
    "bytemuck",
    "byteorder",
    "critical-section",
    "hash32",
    "heapless",
    "portable-atomic",
    "stable_deref_trait",
    "static_assertions",
}

ASYNC = r"tokio|tokio-.*|async-std|smol|async-io|async-executor|futures-executor|mio|hyper|hyper-.*|reqwest|axum"
TLS = r"openssl.*|native-tls|rustls.*|ring|aws-lc.*|boring.*|schannel|security-framework"
C_BUILD = r"cc|cmake|bindgen|pkg-config|vcpkg|autotools|nasm-rs"
# A guest in other people's processes stays small. Each of these was weighed and left out.
UNWANTED = (
    r"tiny_http|prometheus|prometheus-client|metrics|metrics-.*|quanta|fs4|globset|abi_stable|stabby"
    r"|opentelemetry.*|numpy|chrono|snafu|miette|shuttle|divan|assert_cmd|trycmd"
)


class Checks:
    """Counts rules: one is passed when every check under its name was right. Prints each check that was not."""

    def __init__(self):
        self.rules = {}

    def check(self, rule, right, message):
        self.rules.setdefault(rule, True)
        if not right:
            self.rules[rule] = False
            print(f"failed: {rule}: {message}")

    def finish(self):
        for rule, right in self.rules.items():
            print(f"{'ok' if right else 'FAILED':6} {rule}")
        failed = list(self.rules.values()).count(False)
        print(f"{len(self.rules) - failed} passed, {failed} failed")
        return 1 if failed else 0


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout


def metadata():
    return json.loads(cargo("metadata", "--format-version", "1", "--locked"))


def tree(package, edges, *options):
    """The packages below `package`, as (name, version), itself left out."""
    out = cargo("tree", "-p", package, "-e", edges, "--prefix", "none", "--target", TARGET, "--locked", *options)
    found = {tuple(line.split()[:2]) for line in out.splitlines() if line}
    return {(name, version.removeprefix("v")) for name, version in found if name != package}


def licence_is_allowed(expression):
    """Evaluates an SPDX expression: OR, AND, WITH, parentheses; the old "/" means OR."""
    tokens = re.findall(r"\(|\)|[\w.+-]+", expression.replace("/", " OR "))
    at = 0

    def either():
        nonlocal at
        right = both()
        while at < len(tokens) and tokens[at] == "OR":
            at += 1
            right = both() or right
        return right

    def both():
        nonlocal at
        right = one()
        while at < len(tokens) and tokens[at] == "AND":
            at += 1
            right = one() and right
        return right

    def one():
        nonlocal at
        if at >= len(tokens):
            return False
        token = tokens[at]
        at += 1
        if token == "(":
            right = either()
            at += 1
            return right
        if at + 1 < len(tokens) and tokens[at] == "WITH":
            token = f"{token} WITH {tokens[at + 1]}"
            at += 2
        return token in LICENCES

    return bool(tokens) and either() and at == len(tokens)


def check_evaluator(checks):
    """The evaluator decides about other people's rights: it proves itself first."""
    for expression, right in [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception OR MIT", True),
        ("LGPL-2.1-or-later OR MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("Apache-2.0 WITH Unknown-exception", False),
        ("", False),
    ]:
        checks.check(
            "licence expressions are read right",
            licence_is_allowed(expression) is right,
            f"{expression!r} must be {'allowed' if right else 'refused'}",
        )


def check_packages(checks, packages, members):
    """Licence and origin of every package of Cargo.lock, those of other systems and of the tests included."""
    for package in packages:
        label = f"{package['name']} {package['version']}"
        if package["id"] in members:
            checks.check(
                "our own packages are Apache-2.0 OR MIT",
                package["license"] == "Apache-2.0 OR MIT",
                f"{label} says {package['license']}; write license.workspace = true",
            )
            continue
        checks.check(
            "every package comes from crates.io",
            package["source"] == CRATES_IO,
            f"{label} comes from {package['source']}",
        )
        checks.check(
            "every licence is allowed",
            licence_is_allowed(package["license"] or ""),
            f"{label} has {package['license']}; add it to LICENCES in .ci/dependencies.py if it may be used",
        )


def check_tree(checks, package, duplicates, seen):
    """Everything that users of `package` compile, whatever features they choose."""
    versions = {}
    for name, version in tree(package, "normal,build", "--all-features"):
        versions.setdefault(name, []).append(version)
        checks.check(
            f"{package} keeps out what was left out",
            not re.fullmatch(f"{ASYNC}|{TLS}|{UNWANTED}", name),
            f"it may not depend on {name} {version}",
        )
    for name, several in versions.items():
        seen.update([name] if len(several) > 1 else [])
        checks.check(
            f"{package} brings one version of each package",
            len(several) == 1 or name in duplicates,
            f"{name} {' and '.join(sorted(several))}; agree on one, or give the reason in .ci/exceptions.toml",
        )


def deny(checks):
    check_evaluator(checks)
    data = metadata()
    members = set(data["workspace_members"])
    check_packages(checks, data["packages"], members)

    ours = {package["name"] for package in data["packages"] if package["id"] in members}
    shipped = {"telering-core", "telering", "telering-cli", "telering-python"}
    duplicates = tomllib.loads((ROOT / ".ci/exceptions.toml").read_text())["duplicates"]
    seen = set()
    for package in sorted(ours & shipped):
        check_tree(checks, package, duplicates, seen)
    for name in duplicates.keys() - seen:
        checks.check("no exception is stale", False, f".ci/exceptions.toml: there is only one version of {name}")

    for name, version in tree("telering-core", "normal,no-proc-macro", "--all-features"):
        checks.check(
            "telering-core depends only on what CORE_MAY_USE lists",
            name in CORE_MAY_USE,
            f"{name} {version}",
        )


def light(checks):
    packages = {(package["name"], package["version"]): package for package in metadata()["packages"]}
    everything = {pair for pair in tree("telering", "normal,build") if not pair[0].startswith("telering")}
    linked = {pair for pair in tree("telering", "normal,no-proc-macro") if not pair[0].startswith("telering")}
    core = tree("telering-core", "normal,no-proc-macro")
    checks.check("cargo tree shows the dependencies", {"libc", "syn"} <= {name for name, _ in everything}, "it does not")

    for kind, pattern in [("async runtime", ASYNC), ("TLS", TLS), ("C build", C_BUILD)]:
        found = sorted(name for name, _ in everything if re.fullmatch(pattern, name))
        checks.check(f"the default library brings no {kind}", not found, ", ".join(found))
    for pair in sorted(everything):
        links = packages[pair]["links"]
        checks.check("the default library links no C library", links is None, f"{pair[0]} {pair[1]} links {links}")

    sentence = (
        f"{len(linked)} packages, {len(core)} of them through `telering-core`, "
        f"and {len(everything - linked)} more only while compiling"
    )
    print(f"the default library links {sentence}")
    print("linked:", ", ".join(sorted(name for name, _ in linked)))
    print("compiling only:", ", ".join(sorted(name for name, _ in everything - linked)))
    readme = ROOT / "README.md"
    if readme.exists() or os.environ.get("CI"):
        text = " ".join(readme.read_text().split()) if readme.exists() else ""
        checks.check("README.md states the numbers", sentence in text, f'it must say, word for word: "{sentence}"')
    else:
        print("NOT CHECKED: the numbers in README.md, which is missing")


def main():
    command = {"deny": deny, "light": light}.get(sys.argv[1] if len(sys.argv) == 2 else "")
    if command is None:
        print(__doc__, file=sys.stderr)
        return 2
    checks = Checks()
    command(checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
