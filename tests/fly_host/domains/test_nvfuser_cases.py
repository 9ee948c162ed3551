"""The cases of nvFuser's host IR tests, as far as shapes, strides and sizes go, and of its pull
request 4581, as expressions. `native/test_nvfuser_programs.py` has them as programs."""

import pytest
from fly_common.errors import InputError
from fly_host.domains.domain import Allocation, parse
from fly_host.domains.inference import infer
from fly_host.graph import Graph
from host_chains.native_code import EVERY_READER
from host_chains.nvfuser_cases import CASES
from host_chains.readers import Leaves


@pytest.mark.parametrize("name", CASES)
def test_numbers(name):
    shape, text, logical, strides, elements = CASES[name]
    graph = Graph()
    inferred = infer(graph, [graph.const(extent) for extent in shape], parse(text))
    assert inferred.strides is not None, inferred.reason
    assert tuple(map(graph.constant, inferred.shape)) == logical
    assert tuple(map(graph.constant, inferred.strides)) == strides
    assert graph.constant(inferred.elements) == elements
    assert inferred.checks == ()


@pytest.mark.parametrize("name", CASES)
def test_extents_of_the_running_program(name):
    """Of one graph for all shapes of the rank."""
    shape, text, logical, strides, elements = CASES[name]
    graph = Graph()
    extents = [graph.extent("A", axis) for axis in range(len(shape))]
    inferred = infer(graph, extents, parse(text))
    assert inferred.strides is not None, inferred.reason
    roots = [*inferred.shape, *inferred.strides, inferred.elements]
    conditions = [check.condition for check in inferred.checks]
    leaves = Leaves({"A": shape})
    for read in EVERY_READER:
        assert tuple(read(graph, roots, leaves)) == (*logical, *strides, elements)
        assert all(read(graph, conditions, leaves))
    exact = [step for step in parse(text).steps if getattr(step, "padded", None) is False]
    assert len(conditions) == len(exact)


def test_a_blocked_layout_has_no_logical_strides():
    """NHWC as N, C/4, H, W, 4, which nvFuser refuses too: c is at (c // 4)·(4·5·4) + c % 4, which
    is no multiple of c. Its view: 4 is 1 apart, W 4, H 4·5, C/4 4·5·4, N 4·5·4·2."""
    graph = Graph()
    shape = [graph.const(extent) for extent in (3, 4, 5, 8)]
    inferred = infer(graph, shape, Allocation().split(3, 4).reorder(0, 3, 1, 2, 4))
    assert inferred.strides is None
    assert inferred.reason == (
        "there are no logical strides: the parts of split(3, 4) are not adjacent in memory"
    )
    assert tuple(map(graph.constant, inferred.axes)) == (3, 2, 4, 5, 4)
    assert tuple(map(graph.constant, inferred.axis_strides)) == (160, 80, 20, 4, 1)


@pytest.mark.parametrize(
    "text",
    [
        "split(0, 4) reorder(1, 0) merge(0)",  # the parts in another order
        "split(0, 4) broadcast(1) reorder(2, 0, 1) merge(1) merge(0)",
    ],
)
def test_a_reorder_that_a_merge_does_not_undo(text):
    graph = Graph()
    with pytest.raises(InputError) as caught:
        infer(graph, [graph.extent("A", 0)], parse(text))
    assert str(caught.value) == (
        "split(0, 4): its parts are not adjacent in memory, and a merge joins them: the axis that"
        " it makes counts no axis of the tensor\n  leave the merge out, or the reorder before it"
    )
