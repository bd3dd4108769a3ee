"""The command that the wheel brings."""

import json
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import telering
from conftest import LIMIT_SECONDS

COMMAND = Path(sys.executable).parent / "telering"


def run(*arguments, **options):
    return subprocess.run(
        [*arguments], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, **options
    )


def test_the_command_is_of_the_same_version_as_both_packages():
    done = run(COMMAND, "--version")
    assert (done.returncode, done.stdout) == (0, f"telering {telering.__version__}\n")
    assert version("telering") == version("telering-reader") == telering.__version__
    assert run(sys.executable, "-m", "telering", "--version").stdout == done.stdout


def test_it_reads_what_python_recorded(agent):
    agent.event("cache_hit", 7)
    agent.close()
    done = run(COMMAND, "read", agent.path, "--format", "jsonl", "--event", "cache_hit")
    assert done.returncode == 0 and json.loads(done.stdout)["value"] == 7
    assert "complete -F" in run(COMMAND, "completions", "bash").stdout


def test_its_exit_statuses_are_those_of_the_program():
    nowhere = run(COMMAND, "read", "/no/such/file")
    assert nowhere.returncode == 2 and "no/such/file" in nowhere.stderr and "Traceback" not in nowhere.stderr
    wrong = run(COMMAND, "frobnicate")
    assert wrong.returncode == 2 and "frobnicate" in wrong.stderr
    assert run(COMMAND).returncode == 2
    assert run(COMMAND, "--help").returncode == 0


def test_the_demo_runs(tmp_path):
    done = run(COMMAND, "demo", "--seconds", "1", "--dir", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(tmp_path.iterdir())


def test_ctrl_c_ends_it_as_it_ends_the_program(agent):
    agent.event("x", 1)
    agent.flush()
    process = subprocess.Popen(
        [COMMAND, "tail", agent.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 0 and "Traceback" not in err + out, (process.returncode, err)


def test_a_reader_of_its_output_that_goes_away_is_no_error(agent):
    for _ in range(5000):
        agent.event("x", 1)
    agent.close()
    done = run("bash", "-c", f"set -o pipefail; '{COMMAND}' read '{agent.path}' | head -n 1")
    assert done.returncode == 0 and done.stderr == "" and len(done.stdout.splitlines()) == 1
