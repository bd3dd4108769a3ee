"""Holds the two wheels of a folder against what their dists promise.

    python3 check_wheels.py DIST
"""

import sys
import zipfile
from email.parser import Parser
from pathlib import Path

EXPECTED = {
    "telering": {
        "Requires-Python": ">=3.9",
        "License-Expression": "Apache-2.0 OR MIT",
        "Classifier": "Typing :: Typed",
    },
    "telering-reader": {"Requires-Python": ">=3.9", "Classifier": "Typing :: Typed"},
}


def metadata(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def problems_of(wheels):
    """What is wrong with `wheels`, a list of opened ones, as sentences."""
    problems, owners, versions = [], {}, {}
    for wheel in wheels:
        about = metadata(wheel)
        dist = about["Name"]
        versions[dist] = about["Version"]
        for name in wheel.namelist():
            if name in owners:
                problems.append(f"{name} is in {owners[name]} and in {dist}")
            owners[name] = dist
        for key, value in EXPECTED.get(dist, {}).items():
            if value not in about.get_all(key, []):
                problems.append(f"{dist}: {key} is {about.get_all(key)}, not {value}")
        if not about.get_payload().startswith(f"# {dist}\n"):
            problems.append(f"{dist}: its description is not its README")
        if not about["Summary"]:
            problems.append(f"{dist}: no summary")
    if set(versions) != set(EXPECTED):
        return [*problems, f"the dists are {sorted(versions)}, not {sorted(EXPECTED)}"]
    (ours,) = [wheel for wheel in wheels if metadata(wheel)["Name"] == "telering"]
    about, names = metadata(ours), ours.namelist()
    if about.get_all("Requires-Dist") != [f"telering-reader=={versions['telering-reader']}"]:
        problems.append(f"telering requires {about.get_all('Requires-Dist')}, not the telering-reader beside it")
    if len(set(versions.values())) != 1:
        problems.append(f"the versions differ: {versions}")
    for wanted in ("telering/py.typed", "telering/_telering.pyi", "telering/_telering.abi3.so", "telering/__init__.py"):
        if wanted not in names:
            problems.append(f"telering lacks {wanted}")
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        if not any(name.endswith(f".dist-info/licenses/{licence}") for name in names):
            problems.append(f"telering lacks {licence}")
    points = [ours.read(name).decode() for name in names if name.endswith("entry_points.txt")]
    if not any("telering=telering._command:main" in text.replace(" ", "") for text in points):
        problems.append("telering brings no command")
    return problems


def main():
    paths = sorted(Path(sys.argv[1]).glob("*.whl"))
    problems = problems_of([zipfile.ZipFile(path) for path in paths])
    if "-cp39-abi3-" not in " ".join(path.name for path in paths):
        problems.append(f"no wheel for all Pythons from 3.9 on: {[path.name for path in paths]}")
    for problem in problems:
        print(f"failed: {problem}")
    print(f"{0 if problems else 1} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
