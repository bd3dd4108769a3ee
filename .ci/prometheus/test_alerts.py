"""The alerts by promtool: they are well formed, their tests pass, and each test fails with a wrong rule."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml
from tools import ROOT, promtool

FOLDER = ROOT / "dashboards"

ENDED = '          unless on (job, instance) sum by (job, instance) (telering_processes{state=~"alive|ring"}) == 0\n'

RESTARTED = "          unless sum by (job, instance, hostname, local_rank) (increase(agent_started_total[10m])) > 0\n"
STOPPED = (
    "          unless (\n            sum by (job, instance, hostname, local_rank) (agent_stopped_total)\n"
    "            >= sum by (job, instance, hostname, local_rank) (agent_started_total)\n          ) > 0\n"
)

# What a rule must not be: (what is changed, into what, part of the name of a test that must fail).
WRONG = [
    # Firing when it must not.
    ('up{job=~"(.*/)?(telering|nixl).*"} == 0', "up == 0", "a target that is down"),
    ("        for: 1m\n        labels:\n          severity: critical", "        labels:\n          severity: critical", "a target that is down"),
    ("(agent_xfer_time_us_count) > 0\n          )", "(agent_xfer_time_us_count) >= 0\n          )", "a restart under another pid"),
    ("            and sum by (job, instance, hostname, local_rank) (increase(agent_xfer_time_us_count[30m])) > 0\n", "", "until it counts as idle"),
    ("            and sum by (job, instance, hostname, local_rank) (increase(agent_xfer_time_us_count[30m])) > 0\n            and sum by (job, instance, hostname, local_rank) (agent_xfer_time_us_count) > 0\n", "", "never had traffic"),
    ("            and sum by (job, instance, hostname, local_rank) (agent_xfer_time_us_count) > 0\n", "", "a planned stop says nothing"),
    (ENDED, "", "a planned stop says nothing"),
    ("(increase(agent_xfer_time_us_count[2m])) == 0", "(delta(agent_xfer_time_us_count[2m])) <= 0", "a restart with traffic afterwards"),
    ("[5m]))\n          ) > 0.01", "[5m]))\n          ) > 0.001", "more than one error in a hundred"),
    ("increase(telering_events_lost_total[5m])) > 0", "telering_events_lost_total) > 0", "lost events are told"),
    ("increase(agent_telemetry_events_dropped_total[5m])) > 0", "agent_telemetry_events_dropped_total) > 0", "lost events are told"),
    ("max_over_time(telering_processes{state=\"dead\"}[5m]) > 0", "max_over_time(telering_processes{state=\"dead\"}[1h]) > 0", "a process that died"),
    ('|not_consumable"}) > 0\n        for: 2m', '|not_consumable"}) > 0', "files that stay unreadable"),
    ('"unreadable|not_consumable"', '"unreadable|not_consumable|foreign"', "files that stay unreadable"),
    ("telering_directory_readable offset 15m == 0)\n        for: 1m", "telering_directory_readable offset 15m == 0)", "a directory that can't be listed"),
    (" and max_over_time(telering_directory_readable[15m]) == 1)", ")", "a directory that can't be listed"),
    (RESTARTED, "", "ranks with stable labels"),
    (STOPPED, "", "ranks with stable labels"),
    ("increase(telering_ring_rivals_total[5m]) > 0", "telering_ring_rivals_total > 0", "two consumers"),
    ("(rate(agent_xfer_time_us_bucket[5m]))", "(agent_xfer_time_us_bucket)", "a rank that got slow"),
    ("histogram_quantile(0.99,", "histogram_quantile(0.999,", "a rank that got slow"),
    # Silent when it must fire.
    ("(.*/)?(telering", "(telering", "a target that is down"),
    (ENDED, ENDED.replace("unless", "and").replace("== 0", "> 0"), "without process counts"),
    ('state=~"alive|ring"', 'state="alive"', "only NIXL's own ring"),
    ("sum by (job, instance, hostname, local_rank) (increase(agent_xfer_time_us_count[2m])) == 0", "sum by (job) (increase(agent_xfer_time_us_count[2m])) == 0", "until it counts as idle"),
    ("for: 1m\n        labels:\n          severity: critical", "for: 10m\n        labels:\n          severity: critical", "a target that is down"),
    ("            sum by (job, instance, hostname, local_rank) (rate(agent_errors_total[5m]))\n            + ", "            ", "more than one error in a hundred"),
    ("          or sum by (job, instance, hostname, local_rank) (increase(agent_telemetry_events_dropped_total[5m])) > 0\n", "", "lost events are told"),
    ("max_over_time(telering_processes{state=\"dead\"}[5m]) > 0", "telering_processes{state=\"dead\"} > 0", "a process that died"),
    ('"unreadable|not_consumable"', '"unreadable"', "files that stay unreadable"),
    ("(telering_directory_readable == 0", "(telering_directory_readable > 1", "a directory that can't be listed"),
    ("telering_directory_readable offset 15m == 0)", "telering_directory_readable offset 15m > 1)", "a directory that can't be listed"),
    ("(increase(agent_started_total[10m])) > 0", "(agent_started_total) > 0", "until it counts as idle"),
    ("(increase(agent_started_total[10m])) > 0", "(increase(agent_started_total[1h])) > 0", "ranks with stable labels"),
    (STOPPED, STOPPED.replace(">= ", "<= ").replace(") > 0", ") >= 0"), "until it counts as idle"),
    ("increase(telering_ring_rivals_total[5m]) > 0", "increase(telering_ring_rivals_total[5m]) > 9", "two consumers"),
    (") > 1000000", ") > 9000000", "a rank that got slow"),
]


def test(folder):
    """Runs the unit tests of a folder: whether they passed, and what promtool said."""
    done = subprocess.run(
        [promtool(), "test", "rules", "alerts_test.yml"], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.returncode == 0, done.stdout


class Alerts(unittest.TestCase):
    def test_the_rules_are_well_formed(self):
        subprocess.run([promtool(), "check", "rules", FOLDER / "alerts.yml"], check=True, stdout=subprocess.DEVNULL)

    def test_what_each_alert_must_and_must_not_say(self):
        passed, said = test(FOLDER)
        self.assertTrue(passed, said)

    def test_each_wrong_rule_fails_the_test_that_is_about_it(self):
        right = (FOLDER / "alerts.yml").read_text()
        tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())
        for before, after, name in WRONG:
            with self.subTest(before=before, after=after), tempfile.TemporaryDirectory() as folder:
                self.assertIn(before, right)
                (Path(folder) / "alerts.yml").write_text(right.replace(before, after, 1))
                # That test alone: no other one may notice in its place.
                chosen = [one for one in tests["tests"] if name in one["name"]]
                self.assertEqual(len(chosen), 1, name)
                (Path(folder) / "alerts_test.yml").write_text(yaml.safe_dump(tests | {"tests": chosen}))
                passed, said = test(folder)
                self.assertFalse(passed, "the test did not notice")
                self.assertIn("FAILED:", said, "the rule is not only wrong, it is no rule")

    def test_every_alert_has_a_test_in_which_it_fires(self):
        rules = (FOLDER / "alerts.yml").read_text().split("- alert: ")[1:]
        tests = (FOLDER / "alerts_test.yml").read_text()
        for rule in rules:
            name = rule.split("\n", 1)[0]
            self.assertRegex(tests, rf"alertname: {name}\n\s+exp_alerts:")


if __name__ == "__main__":
    unittest.main()
