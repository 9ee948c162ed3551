"""docs/primitives.md lists all primitives, and what they cost is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fly_trace.primitives import block, random, warp

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import primitive_costs as costs
import primitive_peers as peers

PAGE = costs.PAGE.read_text(encoding="utf-8")


def test_costs_are_measured():
    assert costs.FIRST + costs.table() + costs.LAST in PAGE


def test_our_counts_beside_tritons_are_measured():
    """Triton's own are measured where it is installed."""
    written = PAGE.split(peers.FIRST)[1].split(peers.LAST)[0].splitlines()
    found, _ = peers.table(None)
    for line, own in zip(written[2:], found.splitlines()[2:], strict=True):
        *problem, kernel, _, alone, their, ratio, _ = (one.strip() for one in line.split("|"))
        cells = [one.strip() for one in own.split("|")]
        assert [*problem, kernel, alone] == [*cells[:7], cells[8]], line
        assert ratio == f"{int(alone) / int(their):.2f}", line
        assert float(ratio) <= peers.ALLOWED, line


@pytest.mark.parametrize("module", [warp, block, random], ids=lambda m: m.__name__)
def test_all_primitives_are_listed_and_say_their_cost(module):
    for name in module.__all__:
        assert name in PAGE, name
        text = getattr(module, name).__doc__
        if name not in ("thread_rank", "torch_position"):
            assert "cost" in text.lower(), f"{name} does not say what it costs"
