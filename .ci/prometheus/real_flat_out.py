"""Two threads that move data as fast as they can, at default settings: Prometheus still counts every transfer.

NIXL's exporter shows one of ten to one of twenty there (docs/prometheus-nixl.md).
Run by ./test prometheus, with TELERING and PROMETHEUS in the environment.
"""

import json
import os
import unittest

from server import Program, Prometheus, free_port

TELERING = os.environ.get("TELERING", "telering")


class FlatOut(unittest.TestCase):
    def test_no_transfer_is_missing(self):
        port = free_port()
        prometheus = Prometheus({"flat": f"127.0.0.1:{port}"})
        self.addCleanup(prometheus.end)
        demo = Program(
            [TELERING, "demo", "--environment", "--agents", 1, "--threads", 2, "--rate", 0, "--size", 64, "--seconds", 3, "--hold", 3, "--json"],
            {"NIXL_TELEMETRY_EXPORTER": "prometheus", "NIXL_TELEMETRY_PROMETHEUS_PORT": str(port), "NIXL_TELEMETRY_PROMETHEUS_LOCAL": "yes"},
        )
        self.addCleanup(demo.end)
        status, out, err = demo.finish()
        self.assertEqual((status, err), (0, ""))
        told = json.loads(out)
        made = told["tx_requests"] + told["rx_requests"]
        self.assertGreater(made, 100_000)
        print(f"{made} transfers in 3 s; of {told['recorded']} events {told['lost']} were lost")
        for query, moved in (
            ("agent_tx_requests_num_total", told["tx_requests"]),
            ("agent_rx_requests_num_total", told["rx_requests"]),
            ("agent_tx_bytes_total", told["tx_bytes"]),
            ("agent_rx_bytes_total", told["rx_bytes"]),
            ("agent_xfer_time_us_count", made),
            ('agent_xfer_time_us_bucket{le="+Inf"}', made),
        ):
            self.assertEqual(prometheus.number(f"last_over_time({query}[5m])"), moved, query)


if __name__ == "__main__":
    unittest.main()
