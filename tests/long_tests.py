"""The tests that `make test` leaves to `make heavy` because they took long when last measured.

    python -m pytest -m "heavy or not heavy" --junitxml=times.xml tests
    PYTHONPATH=tests python -m long_tests times.xml [--over SECONDS]

writes long_tests.txt, a line for each test: the time is measured, so it is not decided in each
file. A test that always takes long has the mark `heavy` where it is written.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
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


def measured(report: Path, over: float) -> Iterator[str]:
    """The tests of a JUnit report that took longer than so many seconds."""
    for case in ElementTree.parse(report).iter("testcase"):
        if float(case.attrib["time"]) > over:
            file = case.attrib["classname"].replace(".", "/") + ".py"
            yield f"{file}::{case.attrib['name']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--over", type=float, default=1.0, metavar="SECONDS")
    asked = parser.parse_args()
    LIST.write_text("".join(f"{one}\n" for one in sorted(measured(asked.report, asked.over))))


if __name__ == "__main__":
    main()
