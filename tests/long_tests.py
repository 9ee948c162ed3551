"""The tests that `make test` leaves to `make heavy` because they took long when last measured.

    python -m pytest -m "heavy or not heavy" --junitxml=times.xml tests
    PYTHONPATH=tests python -m long_tests times.xml [--over SECONDS]

writes long_tests.txt, a line for each test: the time is measured, so it is not decided in each
file. Tests that the report does not have stay as they were. A test that always takes long has the
mark `heavy` where it is written.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).with_suffix(".txt")
ROOT = Path(__file__).parents[1]


def read() -> frozenset[str]:
    """The listed tests, by pytest's node identifiers."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines())


def missing() -> list[str]:
    """The listed tests whose function is not in their file any more."""
    lost = []
    for identifier in sorted(read()):
        file, function = identifier.split("[")[0].split("::")
        path = ROOT / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if not re.search(rf"^(async )?def {function}\(", text, re.MULTILINE):
            lost.append(identifier)
    return lost


def times(report: Path) -> dict[str, float]:
    """The seconds of each test in a JUnit report."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.attrib["classname"].replace(".", "/") + ".py"
        found[f"{file}::{case.attrib['name']}"] = float(case.attrib["time"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--over", type=float, default=1.0, metavar="SECONDS")
    asked = parser.parse_args()
    measured = times(asked.report)
    kept = read().difference(measured, missing())
    long = kept.union(name for name, seconds in measured.items() if seconds > asked.over)
    LIST.write_text("".join(f"{name}\n" for name in sorted(long)), encoding="utf-8")


if __name__ == "__main__":
    main()
