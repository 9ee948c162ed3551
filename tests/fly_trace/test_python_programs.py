"""A sample of the random programs of `python_programs`, and that a difference is noticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

sys.path.insert(0, str(Path(__file__).parents[1]))
from fly_trace.control.calls import builtin_functions, call
from python_programs.judge import compare
from python_programs.programs import bodies, scalars


def sample(count: int):
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


@sample(60)
@given(body=bodies(), first=scalars(), second=scalars())
def test_traced(body: str, first: tuple, second: tuple, tmp_path: Path) -> None:
    compare(body, [first, second], tmp_path, emulator=False)


@sample(10)
@given(body=bodies(), first=scalars(), second=scalars())
def test_on_the_emulator(body: str, first: tuple, second: tuple, tmp_path: Path) -> None:
    compare(body, [first, second], tmp_path, emulator=True)


def test_a_difference_is_noticed(monkeypatch, tmp_path: Path) -> None:
    body = "I[0] = max(a, b)"
    runs = [(3, 4, 0.5, 0.5)]
    compare(body, runs, tmp_path, emulator=False)
    replaced = {max: builtin_functions.min_}
    monkeypatch.setattr(call, "TRACED", replaced)
    with pytest.raises(AssertionError, match=r"I\[0\] = max"):
        compare(body, runs, tmp_path, emulator=False)
