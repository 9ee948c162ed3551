"""What a call may change is searched for among the user's objects only."""

from __future__ import annotations

from typing import Any

import pytest
from fly_trace import expr as fx
from fly_trace.effects.snapshots import FEW, Origin, Snapshot


@pytest.mark.parametrize(
    "function", [fx.Int32, fx.Vector, fx.gpu.barrier], ids=("type", "class", "function")
)
def test_the_languages_own_code_is_not_searched(function: Any) -> None:
    """`fx.Int32` would lead to most functions and classes of the language, which are more than
    there are objects: these would all be compared."""
    held: list[list[int]] = [[number] for number in range(FEW + 1)]
    made = Snapshot(Origin.OUTSIDE)
    made.add([(one, (f"held[{number}]", None)) for number, one in enumerate(held)])
    found = made.reached_by((held[3], function))
    assert [entry.value for entry in found] == [held[3]]


def test_a_function_of_the_languages_is_searched_for_what_it_was_given() -> None:
    """`functools.wraps` and closures lead to the user's functions, whoever defines the wrapper."""
    held: list[list[int]] = [[number] for number in range(FEW + 1)]

    def wrapper() -> Any:
        return held[3]

    wrapper.__module__ = "fly_trace.expr"
    made = Snapshot(Origin.OUTSIDE)
    made.add([(one, (f"held[{number}]", None)) for number, one in enumerate(held)])
    assert held[3] in [entry.value for entry in made.reached_by((wrapper,))]
