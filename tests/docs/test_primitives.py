"""docs/primitives.md lists all primitives, and what they cost is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fly_trace.primitives import block, random, warp

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import primitive_costs as costs

PAGE = costs.PAGE.read_text(encoding="utf-8")


def test_costs_are_measured():
    assert costs.FIRST + costs.table() + costs.LAST in PAGE


@pytest.mark.parametrize("module", [warp, block, random], ids=lambda m: m.__name__)
def test_all_primitives_are_listed_and_say_their_cost(module):
    for name in module.__all__:
        assert name in PAGE, name
        text = getattr(module, name).__doc__
        if name not in ("thread_rank", "torch_position"):
            assert "cost" in text.lower(), f"{name} does not say what it costs"
