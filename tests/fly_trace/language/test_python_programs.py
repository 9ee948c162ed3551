"""A sample of the random programs of `python_programs`, and that a difference is noticed."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))
from fly_trace.control.calls import builtin_functions, call
from python_programs.judge import Case, difference, differences
from python_programs.shorten import shortened
from python_programs.statements import program, scalars


def sample(count: int):
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def case(choices: random.Random) -> Case:
    return Case(program(choices), (scalars(choices), scalars(choices)))


@sample(60)
@given(choices=st.randoms(use_true_random=False))
def test_traced(choices: random.Random, tmp_path: Path) -> None:
    found = difference(case(choices), tmp_path, emulator=False)
    assert found is None, found.text


@pytest.mark.parametrize("seed", range(2))
def test_on_the_emulator(seed: int, tmp_path: Path) -> None:
    choices = random.Random(f"sample {seed}")
    found = list(differences([case(choices) for _ in range(8)], tmp_path))
    assert [one.text for one in found] == []


@pytest.mark.parametrize("emulator", [False, True])
def test_a_difference_is_noticed(emulator: bool, monkeypatch, tmp_path: Path) -> None:
    right = Case("I[0] = a", ((3, 4, 0.5, 0.5),))
    wrong = Case("I[0] = max(a, b)", ((3, 4, 0.5, 0.5),))
    assert differences([right, wrong], tmp_path, emulator) == []
    monkeypatch.setattr(call, "TRACED", {max: builtin_functions.min_})
    (found,) = differences(
        [right, Case("I[0] = max(a, b)\nI[1] = b", wrong.runs)], tmp_path, emulator
    )
    assert found.kind == "differs"
    assert "I[1] = b" in found.text


def test_what_is_refused_is_noticed(tmp_path: Path) -> None:
    found = difference(Case("I[a] = print(a)", ((3, 4, 0.5, 0.5),)), tmp_path)
    assert found is not None
    assert found.kind.startswith("refused: print()")


def test_a_program_that_does_not_end_is_noticed(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("python_programs.judge.LIMIT", 1)
    body = "n = a\nwhile n > 0:\n    n = n + 0\nI[0] = n"
    found = difference(Case(body, ((3, 4, 0.5, 0.5),)), tmp_path, emulator=False)
    assert found is not None
    assert "does not end" in found.text


def test_a_program_is_shortened() -> None:
    body = (
        "x = 1\nfor i in range(3):\n    y = x + f(i, 2)\n    if x:\n        x = 2\nelse:\n    z = 3"
    )
    assert shortened(body, lambda text: "f(" in text) == "y = f(i, 2)"
