"""scripts/flydsl-tests: results of pytest, and tests that are excluded by patterns."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/flydsl-tests"


@pytest.fixture(scope="module")
def runner() -> Any:
    spec = spec_from_loader("flydsl_tests", SourceFileLoader("flydsl_tests", str(SCRIPT)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["flydsl_tests"] = module
    spec.loader.exec_module(module)
    return module


def test_patterns(runner: Any):
    patterns = [("unit/test_a.py", "whole"), ("unit/test_b.py::test_x", "one"), ("c.py::t[1]", "p")]
    for name, reason in (
        ("unit/test_a.py::T::test_y[3]", "whole"),
        ("unit/test_a.py", "whole"),
        ("unit/test_b.py::test_x[fast-2]", "one"),
        ("unit/test_b.py::test_xy", None),
        ("c.py::t[1]", "p"),
        ("c.py::t[2]", None),
    ):
        assert runner.reason_of(name, patterns) == reason


def test_each_exclusion_has_a_reason(runner: Any):
    found = runner.excluded()
    assert all(reason for _, reason in found)
    assert len({pattern for pattern, _ in found}) == len(found)


def test_results(runner: Any, tmp_path: Path):
    (tmp_path / "tests/unit").mkdir(parents=True)
    (tmp_path / "tests/unit/test_b.py").write_text(
        "def test_1(): ...\nclass T:\n  def test_2(): ..."
    )
    report = ElementTree.fromstring(
        """<suite>
        <testcase classname="tests.unit.test_a.TestIt" name="test_x[1]"/>
        <testcase classname="unit.test_a" name="test_y"><skipped message="no GPU"/></testcase>
        <testcase classname="unit.test_a" name="test_z"><failure message="wrong"/></testcase>
        <testcase classname="" name="unit.test_b"><error message="m">
E   ImportError: no such name
        </error></testcase>
        </suite>"""
    )
    found = [runner._result(case, tmp_path) for case in report]
    assert found == [
        ("unit/test_a.py::TestIt::test_x[1]", "passed", "", 1),
        ("unit/test_a.py::test_y", "skipped", "no GPU", 1),
        ("unit/test_a.py::test_z", "failed", "wrong", 1),
        ("unit/test_b.py", "failed", "ImportError: no such name", 2),
    ]
