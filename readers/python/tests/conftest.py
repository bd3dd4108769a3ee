import hashlib
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "src"))

from telering_reader import check, file  # noqa: E402


@pytest.fixture(params=["numpy", "plain", "seek"])
def anyhow(request, monkeypatch):
    """Runs a test with numpy, without it, and without `os.pread` as on Windows."""
    if request.param == "numpy":
        pytest.importorskip("numpy")
    else:
        monkeypatch.setattr(check, "numpy", None)
    if request.param == "seek":
        monkeypatch.setattr(file, "_pread", None)
        monkeypatch.delattr(os, "preadv", raising=False)
    return request.param


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "agent")


@pytest.fixture(scope="session")
def binaries():
    """The folder of the release build, with the example `paced` and the command `telering`."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    if not (target / "examples" / "paced").exists() or not (target / "telering").exists():
        pytest.fail(f"nothing built in {target}: cargo build --release -p telering --example paced -p telering-cli")
    return target


def digest(name):
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()
