"""Exporters that are libraries of their own, chosen by a program or by the environment."""

import shutil
import subprocess

import pytest
import telering
from conftest import ROOT, run_program


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the CSV exporter in C, as plug-ins are built."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler, cc")
    folder = tmp_path_factory.mktemp("plug-ins")
    source = ROOT / "examples/exporter-csv-c/csv.c"
    options = ["-std=c99", "-shared", "-fPIC", "-I", ROOT / "bindings/c/include"]
    subprocess.run([compiler, *options, source, "-o", folder / "libtelering_exporter_csv.so"], check=True)
    return folder


def lines(folder):
    """The lines of the only CSV file in a folder, without its first one and those of the agent itself."""
    (path,) = folder.glob("*.csv")
    return [line.split(",", 1)[1] for line in path.read_text().splitlines()[1:] if "agent_st" not in line]


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_plug_in_is_chosen_by_its_name(folder, tmp_path, monkeypatch, kind, caplog):
    monkeypatch.setenv("CSV_EXPORTER_DIR", str(tmp_path))
    with telering.Agent("agent", enable=True, exporter="csv", plugin_dir=kind(folder)) as agent:
        assert agent.mode == "exported" and agent.path is None
        agent.event("cache_hit", 2**64 - 1)
    assert agent.counts().exported == 1 and not caplog.records
    assert lines(tmp_path) == [f'7,"cache_hit",{2**64 - 1}']


def test_the_environment_chooses_one_too(folder, tmp_path, monkeypatch):
    for name, value in (("ENABLE", "y"), ("EXPORTER", "csv")):
        monkeypatch.setenv(f"NIXL_TELEMETRY_{name}", value)
    monkeypatch.setenv("TELERING_PLUGIN_DIR", str(folder))
    monkeypatch.setenv("CSV_EXPORTER_DIR", str(tmp_path))
    with telering.Agent("agent") as agent:
        agent.event("one", 1)
    assert lines(tmp_path) == ['7,"one",1']


@pytest.mark.parametrize("name", ["carrier pigeon", "../csv", "CSV", "csv\0", "\ud800", "BUFFER"])
def test_an_exporter_that_is_not_there_is_one_warning_and_stats_go_on(folder, name, caplog):
    with telering.Agent("agent", True, enable=True, exporter=name, plugin_dir=folder) as agent:
        for _ in range(1000):
            with agent.transfer("write", 10) as transfer:
                transfer.posted()
            assert agent.get_xfer_telemetry(transfer).totalBytes == 10
    assert agent.mode == "captured" and len(caplog.records) == 1, caplog.text
    with pytest.raises(telering.StartError):
        telering.Agent("agent", enable=True, exporter=name, plugin_dir=folder, strict=True)


def test_children_that_end_as_usual_write_nothing_of_their_parents(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CSV_EXPORTER_DIR", str(tmp_path))
    monkeypatch.setenv("CSV_EXPORTER_MAX_BYTES", str(1 << 40))
    out = run_program(
        """
import os, sys, threading, time, warnings, telering
warnings.simplefilter("ignore", DeprecationWarning)
agent = telering.Agent("parent", enable=True, exporter="csv", plugin_dir=sys.argv[1], run_interval=0.001)
stop, recorded = threading.Event(), 0

def record():
    global recorded
    while not stop.is_set():
        for _ in range(500):
            agent.event("number", recorded)
            recorded += 1
        agent.flush()
        time.sleep(0.0005)

thread = threading.Thread(target=record)
thread.start()
for _ in range(200):
    child = os.fork()
    if child == 0:
        sys.exit(0)     # with what C keeps for the end of a process
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
counts = agent.close()
assert counts.lost == 0, counts
print(recorded)
""",
        folder,
    )
    assert lines(tmp_path) == [f'7,"number",{number}' for number in range(int(out))]
