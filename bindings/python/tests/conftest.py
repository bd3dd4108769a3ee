import os
import subprocess
import sys
from pathlib import Path

import pytest

# Nothing of the outside reaches an agent of the tests, and nothing of the source folder is imported.
for variable in [name for name in os.environ if name.startswith(("NIXL_TELEMETRY_", "TELERING_"))]:
    del os.environ[variable]

import telering  # noqa: E402
from telering_reader import Reader  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
# Far more than anything needs; a test that takes this long hangs.
LIMIT_SECONDS = 120


@pytest.fixture
def agent(tmp_path):
    """An agent with a telemetry file that holds all that a small test records."""
    with telering.Agent("agent", True, enable=True, dir=tmp_path, buffer_size=1 << 14) as agent:
        yield agent


def items(path):
    """All events of a file as (name, value), oldest first."""
    with Reader(str(path)) as reader:
        found = [(event.name, event.value) for event in reader]
        assert reader.lost == 0
        return [(name, value) for name, value in found if name not in ("agent_started", "agent_stopped")]


def run_program(text, *arguments, **options):
    """Runs a Python program of its own; returns what it printed. It must end well, in time."""
    done = start_program(text, *arguments, **options)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def start_program(text, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
        **options,
    )
