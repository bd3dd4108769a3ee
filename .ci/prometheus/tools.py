"""Where the tools are: Prometheus and promtool, as the steps of ./test found them."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def promtool():
    """promtool, from $PROMTOOL or the search path."""
    return os.environ.get("PROMTOOL", "promtool")


def prometheus():
    """Prometheus itself, from $PROMETHEUS or the search path."""
    return os.environ.get("PROMETHEUS", "prometheus")
