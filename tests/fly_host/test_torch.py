"""Strides as torch has them. tests/host_chains views torch's tensors through random chains."""

import pytest
import torch
from fly_common.record import replace
from fly_host.domains.domain import Allocation, parse
from fly_host.domains.inference import infer
from fly_host.graph import Graph
from host_chains import judge
from host_chains.chain import Chain, Choice


def inferred_of(shape, allocation):
    graph = Graph()
    return graph, infer(graph, [graph.const(extent) for extent in shape], allocation)


def numbers(graph, indices):
    return tuple(map(graph.constant, indices))


@pytest.mark.parametrize(
    "shape", [(0,), (0, 3), (3, 0), (5, 0, 3), (0, 0, 2), (2, 0, 0, 5), (1, 1)]
)
@pytest.mark.parametrize("text", ["", "merge(0)"])
def test_strides_of_tensors_without_elements_are_torchs(shape, text):
    text = text if len(shape) > 1 else ""
    graph, found = inferred_of(shape, parse(text))
    made = torch.empty(shape)
    assert numbers(graph, found.strides) == made.stride()
    assert graph.constant(found.elements) == made.numel()


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 0, 4), (2**31 + 1, 3, 2**20)])
def test_reorder_is_a_permuted_tensor(shape, order):
    """Memory in the order of `order`, as torch makes it; strides in the order of the axes."""
    graph, found = inferred_of(shape, Allocation().reorder(*order))
    made = torch.empty([shape[axis] for axis in order], device="meta")
    expected = made.permute([order.index(axis) for axis in range(3)])
    assert numbers(graph, found.strides) == expected.stride()
    assert numbers(graph, found.axis_strides) == made.stride()


@pytest.mark.parametrize("field", ["strides", "elements"])
def test_torch_tells_what_is_too_large_to_enumerate(field, monkeypatch):
    def wrong(graph, shape, allocation):
        found = infer(graph, shape, allocation)
        more = found.strides[::-1] if field == "strides" else shape[0]
        return replace(found, **{field: more})

    chain = Chain((2**33, 6), (("split", 1, 2, True, False),))
    assert judge.differences(chain, Choice.of_seed(1)) == []
    monkeypatch.setattr(judge, "infer", wrong)
    told = judge.differences(chain, Choice.of_seed(1))
    assert any(f" {field}: " in text for text in told)
