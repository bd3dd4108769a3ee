"""deploy/ by parsing alone: manifests and Containerfile; each check finds a planted fault."""

import copy
import re
import subprocess
import unittest

import deploy
from tools import ROOT, promtool

FILE = deploy.FOLDER / "Containerfile"


class Containerfile(unittest.TestCase):
    def test_the_containerfile_has_no_fault(self):
        self.assertEqual(deploy.containerfile_faults(FILE.read_text()), [])

    def test_each_fault_is_found(self):
        right = FILE.read_text()
        for before, after, part in [
            ("RUN cargo", "RUM cargo", "RUM is no instruction"),
            ("--from=build", "--from=built", "no stage built"),
            ("COPY . .", "COPY missing .", "is not there"),
            ("COPY . .", "COPY .", "a source and a destination"),
            ("USER 65532:65532", "USER nobody", "USER takes a number"),
            ("USER 65532:65532", "USER 0", "runs as root"),
            ("USER 65532:65532\n", "", "runs as root"),
            ('ENTRYPOINT ["/usr/local/bin/telering"]', "ENTRYPOINT /usr/local/bin/telering", "no list of texts"),
            ("EXPOSE 9464", "EXPOSE port", "takes numbers"),
            ("FROM debian:bookworm-slim", "FROM debian", "no tag"),
            ("FROM debian:bookworm-slim", "FROM debian:bookworm-slim as the last", "takes an image"),
            ("FROM rust", "WORKDIR /\nFROM rust", "before the first FROM"),
            ("EXPOSE 9464", "EXPOSE", "says nothing"),
        ]:
            with self.subTest(after=after):
                self.assertIn(before, right)
                found = deploy.containerfile_faults(right.replace(before, after, 1))
                self.assertTrue(any(part in fault for fault in found), found)

    def test_a_file_that_ends_in_the_middle_is_found(self):
        self.assertTrue(deploy.containerfile_faults(FILE.read_text() + "RUN true \\\n"))

    def test_its_rust_is_the_project_s(self):
        wanted = re.search(r'^rust-version = "([\d.]+)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
        self.assertIn(f"FROM rust:{wanted}-", FILE.read_text())


class Manifests(unittest.TestCase):
    def setUp(self):
        self.documents = copy.deepcopy(deploy.documents())
        self.kinds = {document["kind"]: document for _, document in self.documents}
        self.pod = self.kinds["Deployment"]["spec"]["template"]["spec"]

    def finds(self, part):
        found = deploy.set_faults(self.documents)
        self.assertTrue(any(part in fault for fault in found), found)

    def test_every_manifest_is_valid(self):
        self.assertEqual(set(self.kinds), {"Deployment", "PodMonitor", "NetworkPolicy"})
        for file, document in self.documents:
            self.assertEqual(deploy.manifest_faults(file, document), [])

    def test_a_key_that_kubernetes_does_not_know_is_found(self):
        self.pod["initContainers"][0]["restartPolice"] = "Always"
        self.assertIn("restartPolice", deploy.manifest_faults("x", self.kinds["Deployment"])[0])

    def test_the_manifests_fit_together(self):
        self.assertEqual(deploy.set_faults(self.documents), [])

    def test_a_monitor_that_selects_nothing_is_found(self):
        self.kinds["PodMonitor"]["spec"]["selector"]["matchLabels"] = {"app": "other"}
        self.finds("selects no pod")

    def test_ports_that_do_not_fit_are_found(self):
        self.kinds["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["port"] = "metrics"
        self.finds("no port metrics")
        self.pod["initContainers"][0]["ports"][0]["containerPort"] = 9000
        self.finds("other ports")
        self.finds("another port than it names")

    def test_a_volume_on_disk_or_without_limit_is_found(self):
        for volume in ({}, {"medium": "Memory"}):
            self.pod["volumes"][0]["emptyDir"] = volume
            self.finds("not in memory, or without a limit")

    def test_a_sidecar_that_ends_and_one_with_root_s_rights_are_found(self):
        del self.pod["initContainers"][0]["restartPolicy"]
        self.finds("the sidecar is none")
        self.pod["containers"][0]["securityContext"]["runAsUser"] = 0
        self.finds("more rights")

    def test_a_volume_that_is_not_there_is_found(self):
        self.pod["containers"][0]["volumeMounts"][0]["name"] = "other"
        self.finds("no volume other")


class ScrapeConfig(unittest.TestCase):
    def test_prometheus_takes_the_configuration(self):
        done = subprocess.run([promtool(), "check", "config", deploy.FOLDER / "prometheus.yml"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_documents_show_the_files_as_they_are(self):
        text = (ROOT / "docs/prometheus.md").read_text()
        self.assertIn((deploy.FOLDER / "prometheus.yml").read_text(), text)


if __name__ == "__main__":
    unittest.main()
