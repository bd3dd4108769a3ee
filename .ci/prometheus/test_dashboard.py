"""The dashboard's structure, and that each check of it finds a planted fault."""

import copy
import importlib.util
import json
import unittest

import dashboard


def maker():
    spec = importlib.util.spec_from_file_location("make", dashboard.ROOT / "dashboards/make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Dashboard(unittest.TestCase):
    def setUp(self):
        self.board = dashboard.load()
        self.graph = next(panel for panel in self.board["panels"] if panel["type"] == "timeseries")

    def finds(self, part):
        found = dashboard.faults(self.board)
        self.assertTrue(any(part in fault for fault in found), found)

    def test_the_dashboard_is_what_its_maker_writes(self):
        self.assertEqual(dashboard.FILE.read_text(), maker().text(), "run python3 dashboards/make.py")

    def test_the_dashboard_has_no_fault(self):
        self.assertEqual(dashboard.faults(self.board), [])

    def test_grafana_knows_every_key_of_it(self):
        self.assertEqual(dashboard.unknown_to_grafana(self.board), [])

    def test_a_key_that_grafana_does_not_know_is_found(self):
        for holder in (self.board, self.graph, self.graph["options"]["legend"], self.graph["targets"][0]):
            holder["planted"] = 1
            self.assertEqual(len(dashboard.unknown_to_grafana(self.board)), 1)
            del holder["planted"]

    def test_a_data_source_of_one_machine_is_found(self):
        self.graph["targets"][0]["datasource"] = {"type": "prometheus", "uid": "P1809F7CD0C75ACF3"}
        self.finds("not the variable")

    def test_a_variable_that_does_not_exist_is_found(self):
        self.graph["targets"][0]["expr"] = "sum by ($bye) (rate(agent_tx_bytes_total[$__rate_interval]))"
        self.finds("no variable bye")

    def test_a_query_by_a_label_that_may_be_missing_is_found(self):
        for label in ("agent_name", "pid"):
            self.graph["targets"][0]["expr"] = f"sum by ({label}) (rate(agent_tx_bytes_total[$__rate_interval]))"
            self.finds("stable label sets")

    def test_a_counter_without_rate_is_found(self):
        for name in ("agent_tx_bytes_total", "agent_xfer_time_us_bucket", "agent_errors_total"):
            self.graph["targets"][0]["expr"] = f"sum({name})"
            self.finds("without rate()")

    def test_a_filter_that_leaves_out_series_without_the_label_is_found(self):
        dashboard.variables(self.board)["local_rank"]["allValue"] = ".+"
        self.finds("without the label")

    def test_panels_over_each_other_and_equal_ids_are_found(self):
        other = copy.deepcopy(self.graph)
        self.board["panels"].append(other | {"title": "another"})
        self.finds("lies over")
        self.finds("one id")

    def test_a_variable_without_a_value_is_no_query(self):
        self.assertEqual(dashboard.substituted("a{b=~\"$job\"}[${__range}]", {"job": "x"}), 'a{b=~"x"}[60s]')
        with self.assertRaises(ValueError):
            dashboard.substituted("a{b=~\"$jobs\"}", {"job": "x"})

    def test_it_is_small_enough_to_review(self):
        self.assertLess(len(json.dumps(self.board)), 100_000)


if __name__ == "__main__":
    unittest.main()
