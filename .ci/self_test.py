"""Each check of the test command finds a planted fault: the checks of .ci and ./test itself.

A check that can't fail is worth nothing, and nobody notices when one stops working. So each fault is
planted in a copy, and the check must name it.
"""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import dependencies
import house

HERE = Path(__file__).resolve().parent


def failures(run, *arguments):
    """Runs checks and returns the messages of those that failed."""
    messages = []
    checks = dependencies.Checks()
    real = checks.check

    def check(rule, right, message):
        if not right:
            messages.append(f"{rule}: {message}")
        with mock.patch("builtins.print"):
            real(rule, right, message)

    checks.check = check
    with mock.patch("builtins.print"):
        run(checks, *arguments)
    return messages


class HouseRules(unittest.TestCase):
    def finds(self, part, run, *arguments):
        found = failures(run, *arguments)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_a_file_of_401_lines_of_code_needs_a_reason(self):
        code = "let x = 1;\n" * 400 + "// comment\n\n" * 50
        self.assertEqual(failures(house.check_length, {"a.rs": code}, {}), [])
        self.finds("a.rs", house.check_length, {"a.rs": code + "let y = 2;\n"}, {})
        self.assertEqual(failures(house.check_length, {"a.rs": code + "let y = 2;\n"}, {"a.rs": "a table"}), [])
        self.finds("a.rs", house.check_length, {"a.rs": code + "let y = 2;\n"}, {"a.rs": " "})

    def test_an_exception_that_is_not_needed_is_an_error(self):
        self.finds("no longer needs", house.check_length, {"a.rs": "let x = 1;\n"}, {"a.rs": "once long"})

    def test_unsafe_code_in_a_new_file_is_found_and_the_word_alone_is_not(self):
        self.finds("b.rs", house.check_unsafe, {"b.rs": "fn f() { unsafe { g() } }"}, {})
        harmless = '// unsafe\n#![forbid(unsafe_code)]\nlet s = "unsafe \\" {";'
        self.assertEqual(failures(house.check_unsafe, {"b.rs": 'let s = "over two \\\n lines, unsafe";'}, {}), [])
        self.assertEqual(failures(house.check_unsafe, {"b.rs": harmless}, {}), [])
        self.assertEqual(failures(house.check_unsafe, {"a/tests/b.rs": "unsafe { fork() }"}, {}), [])

    def test_an_order_label_without_its_other_side_is_found(self):
        sync = {"core/src/sync.rs": "//! `ORDER lease`, `ORDER wake`"}
        both = "a(); // ORDER lease: the store\nb(); // ORDER lease: the load\n"
        one = "a(); // ORDER wake: one side\n"
        orders = house.check_order_labels
        self.assertEqual(failures(orders, sync | {"a.rs": both}, {}), [])
        self.finds("no other side", orders, sync | {"a.rs": one}, {})
        self.finds("not listed", orders, sync | {"a.rs": both.replace("lease", "leese")}, {})
        self.assertEqual(failures(orders, sync | {"a.rs": one}, {"wake": "in another program"}), [])
        self.finds("both sides now", orders, sync | {"a.rs": both}, {"lease": "in another program"})
        self.finds("marks no line", orders, sync | {"a.rs": both}, {"wake": "in another program"})

    def test_a_path_of_this_machine_is_found_and_others_are_not(self):
        for path in (f"{house.ROOT}/core", "/home/" + "somebody/project"):
            self.finds("a.md:2", house.check_paths, {"a.md": f"text\nsee {path}/file\n"})
        self.assertEqual(failures(house.check_paths, {"a.md": "/dev/shm/a /tmp/a core/src /usr/bin/rustc"}), [])

    def test_an_ignored_test_without_a_reason_is_found(self):
        self.finds("a.rs:1", house.check_ignored, {"a.rs": "#[ignore]\nfn f() {}\n"})
        self.finds("a.rs:1", house.check_ignored, {"a.rs": "/// ```ignore\n/// f();\n"})
        self.finds("a.rs:1", house.check_ignored, {"a.rs": "//! ```rust,ignore\n"})
        self.assertEqual(failures(house.check_ignored, {"a.rs": '#[ignore = "takes a minute"]\n/// ```no_run\n'}), [])

    def test_a_package_without_the_shared_lints_is_found(self):
        self.finds("x/Cargo.toml", house.check_members, {"x/Cargo.toml": "[package]\nedition.workspace = true\n"})

    def test_a_step_that_nothing_runs_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            shutil.copytree(HERE, root / ".ci")
            shutil.copy(HERE.parent / "test", root)
            with mock.patch.object(house, "ROOT", root):
                self.assertEqual(failures(house.check_steps), [])
                (root / ".ci/steps/forgotten").write_text("# Purpose: a\n# Time: 1 s\ntrue\n")
                self.finds("forgotten would never run", house.check_steps)
                (root / ".ci/steps/forgotten").unlink()
                (root / ".ci/steps/fmt").write_text("cargo fmt --check\n")
                self.finds("fmt must start with", house.check_steps)
                (root / ".ci/steps/fmt").write_text("# Purpose: a\n# Time: 1 s\nif true; then\n")
                with mock.patch.object(subprocess, "run", quiet(subprocess.run)):
                    self.finds("steps/fmt", house.check_steps)


def quiet(run):
    return lambda *arguments, **options: run(*arguments, stderr=subprocess.DEVNULL, **options)


class Dependencies(unittest.TestCase):
    MEMBER = {"id": "ours", "name": "telering", "version": "1.0.0", "license": "Apache-2.0 OR MIT", "source": None}
    CRATE = {"id": "a", "name": "a", "version": "1.0.0", "license": "MIT", "source": dependencies.CRATES_IO}

    def packages(self, **changes):
        return failures(dependencies.check_packages, [self.MEMBER, self.CRATE | changes], {"ours"})

    def test_a_licence_that_is_not_allowed_is_found(self):
        self.assertEqual(self.packages(), [])
        for licence in ("GPL-3.0-only", None, "MIT AND SSPL-1.0"):
            self.assertIn("every licence is allowed: a 1.0.0", self.packages(license=licence)[0])

    def test_a_package_from_elsewhere_is_found(self):
        for source in (None, "git+https://example.org/a", "registry+https://example.org/index"):
            self.assertIn("every package comes from crates.io", self.packages(source=source)[0])

    def test_a_package_of_ours_without_the_licence_is_found(self):
        wrong = self.MEMBER | {"license": None}
        self.assertIn("our own", failures(dependencies.check_packages, [wrong], {"ours"})[0])

    def test_each_unwanted_kind_of_package_is_found(self):
        for name in ("tokio", "rustls", "openssl-sys", "metrics-util", "opentelemetry_sdk", "chrono", "hyper-util"):
            with mock.patch.object(dependencies, "tree", lambda *_: {(name, "1.0.0")}):
                found = failures(dependencies.check_tree, "telering", {}, set())
            self.assertIn(f"may not depend on {name}", found[0])

    def test_two_versions_of_one_package_need_a_reason(self):
        seen = set()
        with mock.patch.object(dependencies, "tree", lambda *_: {("syn", "2.0.0"), ("syn", "3.0.0")}):
            self.assertIn("syn 2.0.0 and 3.0.0", failures(dependencies.check_tree, "telering", {}, seen)[0])
            self.assertEqual(failures(dependencies.check_tree, "telering", {"syn": "a reason"}, seen), [])
        self.assertEqual(seen, {"syn"})

    def light(self, extra, links=None, readme=None):
        packages = [{"name": name, "version": "1.0.0", "links": None} for name in ("libc", "syn")]
        packages += [{"name": name, "version": "1.0.0", "links": links} for name in extra]
        below = {(package["name"], "1.0.0") for package in packages}
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(dependencies, "ROOT", Path(folder)),
            mock.patch.object(dependencies, "tree", lambda *_: below),
            mock.patch.object(dependencies, "metadata", lambda: {"packages": packages}),
            mock.patch.dict(os.environ),
        ):
            os.environ.pop("CI", None)
            if readme is not None:
                (Path(folder) / "README.md").write_text(readme)
            return failures(dependencies.light)

    def test_a_heavy_default_library_is_found(self):
        self.assertEqual(self.light([]), [])
        for name, kind in (("tokio", "async runtime"), ("native-tls", "TLS"), ("cc", "C build")):
            self.assertIn(kind, self.light([name])[0])
        self.assertIn("links z", self.light(["quiet-sys"], links="z")[0])

    def test_a_wrong_number_in_the_readme_is_found(self):
        right = "It links 2 packages, 2 of them through\n`telering-core`, and 0 more only while compiling."
        self.assertEqual(self.light([], readme=right), [])
        self.assertIn("word for word", self.light([], readme=right.replace("2", "3"))[0])


class TestCommand(unittest.TestCase):
    def run_steps(self, steps, *arguments, ci=False, not_yet=""):
        """Runs a copy of ./test whose steps are `steps`; returns its exit status and its last line."""
        status, output = self.output_of_steps(steps, *arguments, ci=ci, not_yet=not_yet)
        return status, output.splitlines()[-1]

    def output_of_steps(self, steps, *arguments, ci=False, not_yet=""):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / ".ci/steps").mkdir(parents=True)
            shutil.copy(HERE / "lib.sh", root / ".ci")
            lines = (HERE.parent / "test").read_text().splitlines()
            lines = [f"FAST=({' '.join(steps)})" if line.startswith("FAST=") else line for line in lines]
            lines = ['FULL=("${FAST[@]}")' if line.startswith("FULL=") else line for line in lines]
            lines = [f"NOT_YET=({not_yet})" if line.startswith("NOT_YET=") else line for line in lines]
            (root / "test").write_text("\n".join(lines))
            for name, text in steps.items():
                (root / ".ci/steps" / name).write_text(text)
            environment = {name: value for name, value in os.environ.items() if name != "CI"}
            environment |= {"CI": "true"} if ci else {}
            done = subprocess.run(
                ["bash", "test", *arguments], cwd=root, env=environment, text=True, capture_output=True, timeout=100
            )
            return done.returncode, done.stdout or done.stderr

    def test_results_are_counted_from_cargos_lines_and_from_closing_lines(self):
        cargo = "echo 'test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out'\n"
        steps = {"a": cargo * 2, "b": "echo '3 passed, 0 failed'", "c": "true"}
        self.assertEqual(self.run_steps(steps), (0, "28 passed, 0 failed, 4 skipped"))

    def test_results_are_counted_from_pythons_unittest(self):
        right = "printf 'Ran 4 tests in 0.1s\\n\\nOK (skipped=1)\\n'"
        self.assertEqual(self.run_steps({"a": right}), (0, "3 passed, 0 failed, 1 skipped"))
        wrong = "printf 'Ran 9 tests in 0.1s\\n\\nFAILED (failures=2, errors=1)\\n'"
        self.assertEqual(self.run_steps({"a": wrong}), (1, "6 passed, 3 failed"))

    def test_the_long_tests_are_no_longer_skipped_once_they_have_run(self):
        unit = "echo 'test result: ok. 5 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out'\n"
        stress = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out'\n"
        self.assertEqual(self.run_steps({"unit": unit, "stress": stress}), (0, "7 passed, 0 failed"))

    def test_a_step_that_fails_is_a_failure_and_the_others_still_run(self):
        self.assertEqual(self.run_steps({"a": "false\necho never", "b": "true"}), (1, "1 passed, 1 failed"))
        self.assertEqual(self.run_steps({"a": "exit 77"}), (1, "0 passed, 1 failed"))
        self.assertEqual(self.run_steps({"a": "exit 1 | true"}), (1, "0 passed, 1 failed"))
        self.assertEqual(self.run_steps({"a": "echo $nothing"}), (1, "0 passed, 1 failed"))

    def test_the_end_of_a_long_run_says_why_a_step_failed(self):
        early = "echo 'memory grew (TOO MUCH)'\nseq 1000\necho '1 passed, 1 failed'"
        status, output = self.output_of_steps({"a": early, "b": "seq 2000\necho '5 passed, 0 failed'"})
        self.assertEqual(status, 1)
        end = output.splitlines()[-50:]
        self.assertIn("===== why a failed", end)
        self.assertIn("memory grew (TOO MUCH)", end)
        self.assertNotIn("===== why b failed", end)

    def test_a_failed_test_counts_even_when_the_step_ends_well(self):
        text = "echo 'test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured'"
        self.assertEqual(self.run_steps({"a": text}), (1, "4 passed, 1 failed"))

    def test_a_test_step_that_ran_no_test_fails(self):
        steps = {"a": "# Counts: tests\ntrue"}
        self.assertEqual(self.run_steps(steps), (1, "0 passed, 1 failed"))
        self.assertEqual(self.run_steps(steps, not_yet="a"), (0, "0 passed, 0 failed, 1 skipped"))

    def test_a_missing_tool_fails_in_continuous_integration_and_is_skipped_elsewhere(self):
        steps = {"a": "missing 'a tool that is not there'"}
        self.assertEqual(self.run_steps(steps), (0, "0 passed, 0 failed, 1 skipped"))
        self.assertEqual(self.run_steps(steps, ci=True), (1, "0 passed, 1 failed"))

    def test_a_step_without_its_code_fails_unless_it_is_named_as_not_there_yet(self):
        steps = {"a": "# Needs: nowhere/file\ntrue"}
        self.assertEqual(self.run_steps(steps), (1, "0 passed, 1 failed"))
        self.assertEqual(self.run_steps(steps, not_yet="a"), (0, "0 passed, 0 failed, 1 skipped"))

    def test_a_step_that_hangs_is_stopped(self):
        self.assertEqual(self.run_steps({"a": "# Limit: 0.02\nsleep 60"}), (1, "0 passed, 1 failed"))

    def test_a_process_that_a_step_leaves_behind_is_ended(self):
        with tempfile.NamedTemporaryFile() as number:
            self.assertEqual(self.run_steps({"a": f"sleep 60 & echo $! >{number.name}"}), (0, "1 passed, 0 failed"))
            pid = Path(number.name).read_text().strip()
        status = Path(f"/proc/{pid}/status")
        self.assertFalse(status.exists() and "State:\tS" in status.read_text())

    def test_an_unknown_step_is_refused(self):
        status, message = self.run_steps({"a": "true"}, "b")
        self.assertEqual(status, 2)
        self.assertIn("no step named 'b'", message)


if __name__ == "__main__":
    unittest.main()
