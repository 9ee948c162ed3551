"""A pass that returns False has changed nothing: the module is not verified then."""

from pathlib import Path

import pytest
from fly_opt.passes.base import Pass
from fly_opt.pipeline import registry, stage
from fly_opt.pipeline.options import Options
from fly_opt.pipeline.text import Step
from fly_trace.session.trace import trace_file

EXAMPLES = Path(__file__).parents[3] / "examples"
FUNCTIONS = ("vector_add", "row_softmax:row_softmax_shuffle", "histogram", "top_k", "saxpy")
TARGETS = ("gfx942", "gfx1100", "sm_90a")


class Watched:
    """A pass, and whether its results were true."""

    def __init__(self, made: Pass, results: list[tuple[str, bool]]) -> None:
        self.made, self.results = made, results
        self.anchor, self.builds = made.anchor, made.builds

    def run(self, op) -> bool | None:
        before = str(op)
        result = self.made.run(op)
        self.results.append((self.made.name, result is not False or str(op) == before))
        return result


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_passes_that_claim_it_change_nothing(function, target, monkeypatch):
    source, _, entry = function.partition(":")
    module = trace_file(str(EXAMPLES / f"{source}.py"), entry or None, target=target)
    results: list[tuple[str, bool]] = []
    load = registry.load

    def watched(step: Step) -> Watched:
        return Watched(load(step), results)

    monkeypatch.setattr(registry, "load", watched)
    stage.compile(module.encode(), Options(target=target))
    assert len(results) > 10
    assert [name for name, is_true in results if not is_true] == []
