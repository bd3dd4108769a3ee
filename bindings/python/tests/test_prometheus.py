"""The numbers of agents for Prometheus."""

import urllib.request

import pytest
import telering


def value(page, series):
    (line,) = [line for line in page.splitlines() if line.startswith(series)]
    return int(line.rsplit(" ", 1)[1])


def test_an_agents_page_holds_all_that_was_recorded_before(agent):
    agent.record_transfer("write", 4096, 1, 2, 3)
    agent.record_transfer("write", 2**63, 1, 2, 3)
    agent.error(telering.Status.NOT_FOUND)
    page = agent.render_prometheus()
    assert value(page, 'agent_tx_bytes_total{agent_name="agent"') == 2**63 + 4096
    assert value(telering.render_prometheus(), 'agent_tx_bytes_total{agent_name="agent"') == 2**63 + 4096
    assert telering.PROMETHEUS_CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def test_agents_that_are_off_or_only_capture_have_their_pages():
    assert telering.Agent("off", ignore_environment=True).render_prometheus() == ""
    captured = telering.Agent("captured", True)
    captured.memory_registered(77)
    assert value(captured.render_prometheus(), "agent_memory_registered_total{") == 77


def test_the_exporter_prometheus_serves_the_same(tmp_path):
    with telering.Agent(
        "served", enable=True, exporter="Prometheus", prometheus_port=0, prometheus_local=True, run_interval=0.01
    ) as agent:
        assert agent.mode == "exported" and agent.path is None
        agent.record_transfer("read", 5, 1, 1, 1)
        agent.flush()
        host, port = agent.prometheus_address
        with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=30) as answer:
            assert answer.headers["Content-Type"] == telering.PROMETHEUS_CONTENT_TYPE
            assert value(answer.read().decode(), "agent_rx_bytes_total{") == 5
    assert agent.prometheus_address is None


def test_an_exporter_that_counts_and_drops():
    with telering.Agent("x", enable=True, exporter="nop") as agent:
        agent.event("x", 1)
        assert agent.flush()
    assert agent.counts().exported == 1
