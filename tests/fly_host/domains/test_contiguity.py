"""Checks that an input has an allocation."""

import pytest
from fly_common.errors import InputError
from fly_host.domains.contiguity import check_layout
from fly_host.domains.domain import Allocation, Dynamic, parse
from fly_host.graph import Graph
from host_chains.readers import READERS, Leaves

STRIDE = "of the allocation domain has stride"


def complaint(shape, strides, text="", contiguous=None, scalars=None, graph=None):
    """What the first check says that does not hold of such an input; None if all hold."""
    graph = graph or Graph()
    allocation = parse(text) if isinstance(text, str) else text
    checks = check_layout(graph, "A", len(shape), allocation, contiguous)
    leaves = Leaves({"A": shape}, {"A": strides}, scalars or {})
    said = set()
    for read in READERS:
        failed = (c for c in checks if not read(graph, [c.condition], leaves)[0])
        message = next(failed, checks[0]._replace(message=())).message if checks else ()
        said.add(
            "".join(p if isinstance(p, str) else str(*read(graph, [p], leaves)) for p in message)
        )
    (only,) = said
    return only or None


@pytest.mark.parametrize(
    ("shape", "strides", "text", "expected"),
    [
        ((), (), "", None),
        ((5,), (1,), "", None),
        ((5,), (2,), "", f"A: axis 0 {STRIDE} 2, and has to have 1"),
        ((3, 5), (5, 1), "", None),
        ((3, 5), (6, 1), "", f"A: axis 0 {STRIDE} 6, and has to have 5"),
        ((3, 5), (1, 3), "reorder(1, 0)", None),
        (
            (3, 5),
            (5, 1),
            "reorder(1, 0)",
            f"A: axis 1 {STRIDE} 5, and has to have 1",
        ),
        ((2, 3, 4, 5), (60, 1, 15, 3), "reorder(0, 2, 3, 1)", None),
        # The stride of one position says nothing, nor does any of an empty tensor.
        ((3, 1, 5), (5, 77, 1), "", None),
        ((3, 1, 5), (5, -(2**62), 1), "merge(0)", None),
        ((3, 0, 5), (7, 77, 9), "", None),
        ((3, 0, 5), (2**62, 2**62, 9), "merge(1) split(1, 4)", None),
        # A merge of axes that are not contiguous with each other.
        ((3, 4, 5), (20, 5, 1), "merge(1)", None),
        (
            (3, 4, 5),
            (40, 10, 1),
            "merge(1)",
            "A: merge(1): axes of strides 10 and 1 are not contiguous",
        ),
        ((3, 2), (2, 1), "merge(0)", None),
        ((3, 1), (1, 7), "merge(0)", None),
        # A split that does not divide; its padding can't be seen.
        ((3, 8), (8, 1), "split(1, 4)", None),
        ((3, 10), (10, 1), "split(1, 4)", "A: split(1, 4): the extent 10 is not a multiple of 4"),
        ((3, 8), (8, 1), "split(1, 4, padded=True)", None),
        (
            (3, 10),
            (12, 1),
            "split(1, 4, padded=True)",
            "A: split(1, 4, padded=True): the extent 10 is not a multiple of 4, and an input is not"
            " padded",
        ),
        # Broadcast and expanded axes.
        ((64, 1, 32), (32, 0, 1), "broadcast(1)", None),
        ((64, 1, 32), (32, 32, 1), "broadcast(1)", None),
        ((64, 2, 32), (32, 0, 1), "broadcast(1)", "A: extent 1 is 2, and has to be 1"),
        ((64, 5, 32), (32, 0, 1), "broadcast(1) expand(1, 5)", None),
        ((64, 5, 32), (32, 0, 1), "expand(1, 5)", None),
        ((64, 4, 32), (32, 0, 1), "expand(1, 5)", "A: extent 1 is 4, and has to be 5"),
        (
            (64, 5, 32),
            (160, 32, 1),
            "expand(1, 5)",
            "A: stride 1 is 32, and an expanded axis has stride 0",
        ),
        ((4, 6), (1, 4), "reorder(1, 0) broadcast(1)", None),
    ],
)  # fmt: skip
def test_inputs(shape, strides, text, expected):
    assert complaint(shape, strides, text) == expected


@pytest.mark.parametrize(
    ("shape", "strides", "contiguous", "expected"),
    [
        ((3, 5), (9, 1), (False, True), None),
        ((3, 5), (9, 2), (False, False), None),
        ((3, 5), (9, 2), (False, True), f"A: axis 1 {STRIDE} 2, and has to have 1"),
        ((3, 5), (10, 2), (True, False), None),
        ((3, 5), (9, 2), (True, False), f"A: axis 0 {STRIDE} 9, and has to have 10"),
        # What lies inside an axis of one position is what lies inside that.
        ((3, 1, 5), (5, 77, 1), (True, False, True), None),
        ((3, 2, 5), (14, 7, 1), (True, False, True), None),
    ],
)  # fmt: skip
def test_what_need_not_be_contiguous(shape, strides, contiguous, expected):
    assert complaint(shape, strides, "", contiguous) == expected


def test_a_part_of_a_blocked_layout():
    """N, C/4, H, W, 4 of NHWC: its channels lie in blocks, but an input's strides are of NHWC."""
    text = "split(3, 4) reorder(0, 3, 1, 2, 4)"
    with pytest.raises(InputError) as caught:
        complaint((2, 3, 5, 8), (120, 40, 8, 1), text)
    assert str(caught.value) == (
        "A: there are no logical strides: the parts of split(3, 4) are not adjacent in memory\n"
        "  pass the tensor in the shape of its allocation domain"
    )
    free = (False,) * 5
    assert complaint((2, 3, 5, 8), (120, 40, 8, 1), text, free) is None


def test_a_factor_of_the_running_program():
    for n, said in (
        (4, None),
        (3, "A: split(0, 3): the extent 8 is not a multiple of 3"),
        (0, "A: split(0, 0): the factor is less than 1"),
    ):
        graph = Graph()
        allocation = Allocation().split(0, Dynamic(graph.scalar("n")))
        assert complaint((8,), (1,), allocation, None, {"n": n}, graph) == said


@pytest.mark.parametrize(
    ("rank", "text", "contiguous", "message"),
    [
        (0, "broadcast(0)", None, "broadcast(0): too many new axes for a tensor of rank 0"),
        (2, "split(2, 4)", None, "split(2, 4): there is no axis 2, the domain has 2 axes here"),
        (2, "merge(0)", (True, True), "A: 2 flags for an allocation domain of rank 1"),
    ],
)  # fmt: skip
def test_what_is_refused_at_once(rank, text, contiguous, message):
    with pytest.raises(InputError) as caught:
        check_layout(Graph(), "A", rank, parse(text), contiguous)
    assert str(caught.value) == message
