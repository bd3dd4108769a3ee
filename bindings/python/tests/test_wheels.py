"""The check of the wheels finds what it is there for."""

import io
import runpy
import zipfile

import pytest
from conftest import ROOT

problems_of = runpy.run_path(str(ROOT / "bindings/python/tools/check_wheels.py"))["problems_of"]

OURS = """\
Metadata-Version: 2.4
Name: telering
Version: 0.1.0
Summary: x
Requires-Python: >=3.9
License-Expression: Apache-2.0 OR MIT
Classifier: Typing :: Typed
Requires-Dist: telering-reader==0.1.0

# telering
"""
THEIRS = """\
Metadata-Version: 2.4
Name: telering-reader
Version: 0.1.0
Summary: x
Requires-Python: >=3.9
Classifier: Typing :: Typed

# telering-reader
"""
FILES = [
    "telering/py.typed",
    "telering/_telering.pyi",
    "telering/_telering.abi3.so",
    "telering/__init__.py",
    "telering-0.1.0.dist-info/licenses/LICENSE-APACHE",
    "telering-0.1.0.dist-info/licenses/LICENSE-MIT",
]


def wheel(name, metadata, files, points=""):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as out:
        for file in files:
            out.writestr(file, "")
        out.writestr(f"{name}-0.1.0.dist-info/METADATA", metadata)
        out.writestr(f"{name}-0.1.0.dist-info/entry_points.txt", points)
    return zipfile.ZipFile(data)


def both(ours=OURS, theirs=THEIRS, files=FILES, more=(), points="[console_scripts]\ntelering=telering._command:main\n"):
    return [
        wheel("telering", ours, files, points),
        wheel("telering_reader", theirs, ["telering_reader/__init__.py", *more]),
    ]


def test_what_is_right_passes():
    assert problems_of(both()) == []


@pytest.mark.parametrize(
    "wheels, says",
    [
        (lambda: both(more=["telering/__init__.py"]), "is in telering and in telering-reader"),
        (lambda: both(files=FILES[1:]), "lacks telering/py.typed"),
        (lambda: both(files=FILES[:-1]), "lacks LICENSE-MIT"),
        (lambda: both(points=""), "no command"),
        (lambda: both(ours=OURS.replace("OR MIT", "")), "License-Expression"),
        (lambda: both(ours=OURS.replace("==0.1.0", ">=0.1.0")), "not the telering-reader beside it"),
        (lambda: both(ours=OURS.replace("Version: 0.1.0", "Version: 0.2.0")), "versions differ"),
        (lambda: both(ours=OURS.replace("# telering", "telering")), "not its README"),
        (lambda: both(theirs=THEIRS.replace(">=3.9", ">=3.8")), "Requires-Python"),
        (lambda: both()[:1], "the dists are"),
    ],
)
def test_what_is_wrong_is_said(wheels, says):
    assert says in " ".join(problems_of(wheels()))
