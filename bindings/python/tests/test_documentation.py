"""What the documents show works, and the types are those of the stubs."""

import doctest
import os
import re
import runpy
import subprocess
import sys

import pytest
import telering
from conftest import LIMIT_SECONDS, ROOT, items

GUIDE = """\
telem = agent.get_xfer_telemetry(xfer_handle)
print(f"Transfer duration: {telem.xferDuration} us")
print(f"Total bytes: {telem.totalBytes}")
"""


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.M | re.S)


def test_the_guides_lines_run_as_they_stand_there(agent, capsys):
    assert GUIDE in blocks(ROOT / "docs/embedding-python.md")
    with agent.transfer("write", 65536) as xfer_handle:
        pass
    exec(GUIDE, {"agent": agent, "xfer_handle": xfer_handle})
    assert re.fullmatch(r"Transfer duration: \d+ us\nTotal bytes: 65536\n", capsys.readouterr().out)


def test_the_blocks_of_the_document_run_in_order(tmp_path, capsys):
    namespace, found = {}, blocks(ROOT / "docs/embedding-python.md")
    assert len(found) >= 7
    for block in found:
        exec(block.replace("/dev/shm/telemetry", str(tmp_path)), namespace)
    out = capsys.readouterr().out
    assert "exported" in out and "Total bytes: 1048576" in out and "rail_switch 3" in out
    namespace["decoder"].close()
    assert items(tmp_path / "decode-0") == []


def test_the_readmes_and_the_docstring_run(capsys):
    (block,) = blocks(ROOT / "bindings/python/README.md")
    exec(block, {})
    assert "Total bytes: 65536" in capsys.readouterr().out
    found = [block for block in blocks(ROOT / "README.md") if "import telering\n" in block]
    assert len(found) == 1
    exec(found[0], {})
    assert "Transfer duration:" in capsys.readouterr().out
    assert doctest.testmod(telering) == (0, 3)


def test_the_example_records_what_it_says(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["engine.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "bindings/python/examples/engine.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert "65536 bytes in 16 transfers" in out and "lost=0" in out and "failed: bytes 0" in out
    names = [name for name, _ in items(tmp_path / "engine")]
    assert names.count("agent_tx_bytes") == 16 and {"out_of_bounds", "NIXL_ERR_UNKNOWN"} <= set(names)


@pytest.mark.parametrize("command", [["mypy", "--strict"], ["mypy.stubtest"]])
def test_stubs_and_example_hold_for_mypy(tmp_path, command):
    pytest.importorskip("mypy")
    what = [str(ROOT / "bindings/python/examples")] if command[0] == "mypy" else ["telering", "--mypy-config-file", os.devnull]
    done = subprocess.run(
        [sys.executable, "-m", *command, *what],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_statuses_are_those_of_the_files():
    texts = [name for name in telering.Agent("x", True).totals() if name.startswith("NIXL_ERR_")]
    assert [status.text for status in telering.Status] == texts and [int(status) for status in telering.Status] == [
        -number for number in range(1, 13)
    ]
