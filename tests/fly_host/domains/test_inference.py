"""Shapes, strides, sizes and checks, one property at a time. tests/host_chains judges random
chains; tests/fly_host/domains/test_nvfuser_cases.py has more numbers."""

import pytest
from fly_common.errors import InputError
from fly_host.domains.domain import Allocation, Dynamic, parse
from fly_host.domains.inference import address, infer
from fly_host.graph import Graph
from host_chains.readers import Leaves, by_definition


def inferred_of(shape, text=""):
    """Of constants, and of extents of A where the shape has a text."""
    graph = Graph()
    extents = [
        graph.const(extent) if isinstance(extent, int) else graph.extent("A", axis)
        for axis, extent in enumerate(shape)
    ]
    return graph, infer(graph, extents, parse(text))


def numbers(graph, indices):
    return None if indices is None else tuple(map(graph.constant, indices))


def shown(graph, check):
    pieces = (
        piece if isinstance(piece, str) else f"{{{graph.text(piece)}}}" for piece in check.message
    )
    return f"{graph.text(check.condition)}: {''.join(pieces)}"


def test_no_axes():
    graph, found = inferred_of(())
    assert (found.shape, found.strides, found.axes, found.checks) == ((), (), (), ())
    assert graph.constant(found.elements) == 1
    graph, found = inferred_of((), "broadcast(0) split(0, 3, padded=True) merge(0) reorder(0)")
    assert (numbers(graph, found.shape), numbers(graph, found.strides)) == ((1,), (0,))
    assert graph.constant(found.elements) == 1


def test_a_new_axis_that_a_merge_joins_has_stride_0():
    graph, found = inferred_of((5,), "broadcast(0) merge(0)")
    assert (numbers(graph, found.strides), numbers(graph, found.axes)) == ((0, 1), (5,))


def test_extents_over_two_to_the_31():
    graph, found = inferred_of((2**32, 2**20, 2**10 - 1), "reorder(2, 0, 1)")
    assert numbers(graph, found.strides) == (2**20, 1, 2**52)
    assert graph.constant(found.elements) == 2**52 * (2**10 - 1)


def test_what_leaves_64_bits_has_no_value():
    """It stays an expression, and is an error when it is needed."""
    graph, found = inferred_of((2**40, 2**40))
    assert graph.constant(found.elements) is None
    with pytest.raises(InputError, match="64 bits"):
        by_definition(graph, [found.elements], Leaves())
    graph, found = inferred_of((2**40, 2**40, 1), "expand(2, 5)")
    assert numbers(graph, found.strides) == (2**40, 1, 0)


def test_equal_parts_are_one_expression():
    """Outputs that have extents in common share what is computed of them."""
    graph = Graph()
    shape = [graph.extent("A", axis) for axis in range(3)]
    first = infer(graph, shape, parse("split(2, 4) reorder(0, 2, 3, 1)"))
    count = len(graph.expressions)
    assert infer(graph, shape, parse("split(2, 4) reorder(0, 2, 3, 1)")) == first
    assert len(graph.expressions) == count


def test_what_an_exact_split_leaves_as_it_was():
    """The program computes no quotient for it: strides and size are those without the split."""
    graph = Graph()
    shape = [graph.extent("A", axis) for axis in range(3)]
    plain, split = (infer(graph, shape, parse(text)) for text in ("", "split(2, 4) split(1, 2)"))
    assert split.strides == plain.strides
    assert split.elements == plain.elements
    padded = infer(graph, shape, parse("split(2, 4, padded=True)"))
    assert padded.elements != plain.elements


MULTIPLE = "the extent {%s} is not a multiple of {%s}"
ONE = "the axis has extent %s, and only an axis of extent 1 can be expanded"
LATE = "the logical axes have their extents by now"


@pytest.mark.parametrize(
    ("shape", "text", "checks"),
    [
        (
            ("h", "w"),
            "split(1, 4)",
            ["(A.shape[1] % 4) == 0: split(1, 4): " + MULTIPLE % ("A.shape[1]", 4)],
        ),
        (("h", "w"), "split(1, 4, padded=True)", []),
        (("h", "w"), "split(1, 1) split(0, 1, inner=False)", []),
        (("h", 8), "split(1, 4) merge(0)", []),
        (("h", 8), "expand(0, 3)", ["A.shape[0] == 1: expand(0, 3): " + ONE % "{A.shape[0]}"]),
        # The extent of a part is the factor, a number; that of the other one is a quotient.
        (
            ("h",),
            "split(0, 8) split(1, 2)",
            ["(A.shape[0] % 8) == 0: split(0, 8): " + MULTIPLE % ("A.shape[0]", 8)],
        ),
    ],
)
def test_checks(shape, text, checks):
    graph, found = inferred_of(shape, text)
    assert [shown(graph, check) for check in found.checks] == checks


@pytest.mark.parametrize(
    ("shape", "text", "message"),
    [
        ((3, 10), "split(1, 16)", "split(1, 16): the extent 10 is not a multiple of 16"),
        (
            (3, 10),
            "split(-1, 4, inner=False)",
            "split(1, 4, inner=False): the extent 10 is not a multiple of 4",
        ),
        ((3, -1), "", "extent 1 is -1, less than 0"),
        ((3, 2), "expand(1, 4)", "expand(1, 4): " + ONE % 2),
        (
            (3, 1),
            "expand(1, 4) merge(0)",
            "merge(0): one of the axes is expanded, its elements are one in memory",
        ),
        ((1, 1), "merge(0) expand(0, 4)", f"expand(0, 4): {LATE}"),
        ((1, 1), "reorder(1, 0) expand(0, 4)", f"expand(0, 4): {LATE}"),
        ((1,), "split(0, 1) expand(0, 4)", f"expand(0, 4): {LATE}"),
        ((1,), "split(0, 1) expand(1, 4)", f"expand(1, 4): {LATE}"),
        ((3, 2), "split(2, 4)", "split(2, 4): there is no axis 2, the domain has 2 axes here"),
        ((3, 2), "split(1, %99)", "%99: the graph has no such expression"),
    ],
)
def test_what_is_refused_at_once(shape, text, message):
    with pytest.raises(InputError) as caught:
        inferred_of(shape, text)
    assert str(caught.value).split("\n")[0] == message


def test_an_expression_that_does_not_exist():
    graph = Graph()
    shape, factor = [graph.const(4)], graph.const(2)
    assert factor == len(graph.expressions) - 1
    infer(Graph(graph.expressions), shape, Allocation().split(0, Dynamic(factor)))
    with pytest.raises(InputError, match="%2: the graph has no such expression"):
        infer(graph, shape, parse("split(0, %2)"))


def test_a_factor_of_the_running_program():
    graph = Graph()
    factor = Dynamic(graph.scalar("n"))
    shape = [graph.extent("A", 0), graph.extent("A", 1)]
    found = infer(graph, shape, Allocation().split(1, factor).reorder(1, 0, 2))
    assert [shown(graph, check) for check in found.checks] == [
        "1 <= n: split(1, {n}): the factor is less than 1",
        "(A.shape[1] % n) == 0: split(1, {n}): the extent {A.shape[1]} is not a multiple of {n}",
    ]
    assert found.reason == (
        f"there are no logical strides: the parts of split(1, {factor}) are not adjacent in memory"
    )
    roots = [*found.axes, *found.axis_strides, found.elements]
    leaves = Leaves({"A": (3, 20)}, {}, {"n": 5})
    assert by_definition(graph, roots, leaves) == [4, 3, 5, 15, 5, 1, 60]
    bad = Leaves({"A": (3, 20)}, {}, {"n": 0})
    assert by_definition(graph, [found.checks[0].condition], bad) == [0]


def test_an_extent_of_the_running_program_may_be_negative():
    graph = Graph()
    shorter = graph.sub(graph.extent("A", 0), graph.const(5))
    found = infer(graph, [graph.const(3), shorter])
    assert [shown(graph, check) for check in found.checks] == [
        "0 <= (A.shape[0] - 5): extent 1 is {A.shape[0] - 5}, less than 0"
    ]


def test_an_expanded_extent_of_the_running_program():
    graph = Graph()
    many = graph.sub(graph.scalar("n"), graph.const(1))
    found = infer(graph, [graph.const(4)], Allocation().broadcast(0).expand(0, Dynamic(many)))
    assert found.shape == (many, graph.const(4))
    assert numbers(graph, found.strides) == (0, 1)
    assert graph.constant(found.elements) == 4
    assert [shown(graph, check) for check in found.checks] == [
        "0 <= (n - 1): expand(0, {n - 1}): the extent is less than 0"
    ]


def test_a_broadcast_after_the_logical_domain_is_of_the_allocation_domain_alone():
    graph, found = inferred_of((4, 6), "reorder(1, 0) broadcast(1) expand(1, 3)")
    assert numbers(graph, found.shape) == (4, 6)
    assert numbers(graph, found.strides) == (1, 4)
    assert numbers(graph, found.axes) == (6, 3, 4)
    assert numbers(graph, found.axis_strides) == (4, 0, 1)
    assert graph.constant(found.elements) == 24


@pytest.mark.parametrize(
    ("shape", "text", "regular"),
    [
        # h·w·n as one axis and as three: equal products of the same extents.
        (("h", "w", "n", "c"), "split(0, 4) merge(2) merge(1)", True),
        (("h", "w", "n", "c"), "merge(0) merge(1) split(0, 8) merge(1) merge(0)", True),
        # An exact split's two parts are what was split: w/3 of 3 are w.
        (("h", "w"), "merge(0) split(0, 2, inner=False) split(1, 3)", True),
        # With padding they may be more, and then there is something between.
        (("h",), "split(0, 2, inner=False) split(1, 3, padded=True)", False),
    ],
)
def test_parts_are_adjacent_whatever_order_products_are_made_in(shape, text, regular):
    assert (inferred_of(shape, text)[1].strides is not None) == regular


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("merge(0) split(0, 6, inner=False) split(1, 7) merge(0) merge(0)", ""),
        ("split(0, 4) split(1, 2)", ""),
        ("split(0, 4) reorder(1, 0, 2)", "the parts of split(0, 4) are not adjacent in memory"),
    ],
)
def test_without_elements_strides_are_where_they_would_be_with_some(text, reason):
    """Though with ones for zeros 7 does not divide, and what is between parts has one position."""
    _, found = inferred_of((0, 12), text)
    assert found.reason.endswith(reason)
    assert (found.strides is None) == bool(reason)


def test_without_elements_a_merge_is_refused_as_with_some():
    with pytest.raises(InputError, match="a merge joins them"):
        inferred_of((0, 12), "split(0, 4) reorder(1, 0, 2) merge(0)")


def test_what_lies_between_does_so_whatever_its_extent():
    """With h = 1 the parts of w would be neighbours; whether it is, the program does not know."""
    text = "split(1, 4) reorder(1, 0, 2)"
    assert inferred_of(("h", "w"), text)[1].strides is None
    assert inferred_of((1, "w"), text)[1].strides is not None


def test_products_of_products_end():
    """A stride that is a square of squares of squares has more factors than can be counted."""
    graph = Graph()
    square = graph.maximum(graph.extent("A", 0), graph.const(1))
    for _ in range(60):
        square = graph.mul(square, square)
    found = infer(graph, [graph.extent("A", 1), square], parse("split(0, 4)"))
    assert found.axis_strides[1:] == (square, graph.const(1))
    few = infer(graph, [graph.extent("A", 1), graph.mul(square, square)], parse("merge(0)"))
    assert few.strides is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # The outer part is the irregular one, then the inner one, then both.
        ("split(0, 16) split(0, 4) reorder(0, 3, 1, 2)", "split(0, 4)"),
        ("split(0, 16) split(1, 4) reorder(0, 1, 3, 2)", "split(1, 4)"),
        ("split(0, 16) split(1, 4) split(0, 2) reorder(0, 4, 1, 2, 3)", "split(0, 2)"),
    ],
)
def test_a_split_of_a_part_is_the_reason(text, reason):
    _, found = inferred_of(("h", "w"), text)
    assert found.strides is None
    assert found.reason == (
        f"there are no logical strides: the parts of {reason} are not adjacent in memory"
    )


@pytest.mark.parametrize(
    ("how", "refused"),
    [("", False), (", padded=True", True)],
)
def test_padding_within_a_part_is_between_parts(how, refused):
    """8 in parts of 4, of which the first is merged with what is outside it, and the second one is
    in blocks. Nothing is between them where 4 divides 8; where it need not, 8 are more."""
    graph = Graph()
    shape, n = [graph.extent("A", 0)], Dynamic(graph.scalar("n"))
    text = f"split(0, {n}) split(1, 4{how}) split(2, 2) merge(0) reorder(1, 2, 0)"
    allocation = parse(text)
    if refused:
        with pytest.raises(InputError, match="a merge joins them"):
            infer(graph, shape, allocation)
    else:
        assert infer(graph, shape, allocation).strides is None


@pytest.mark.parametrize("extent", [12, "h"])
@pytest.mark.parametrize(
    ("text", "refused"),
    [
        # 2, 3, 2 positions: the parts of 3 and 2 are adjacent, one piece of 6, the first one is
        # outside of it. A merge of the last part with the first one joins what is not adjacent,
        # whichever of the two splits it undoes.
        ("split(0, 2) split(0, 3) reorder(1, 2, 0)", None),
        ("split(0, 2) split(0, 3) reorder(1, 2, 0) merge(0)", None),
        ("split(0, 2) split(0, 3) reorder(1, 2, 0) merge(1)", "split(0, 2)"),
        ("split(0, 6) split(1, 2) reorder(1, 2, 0) merge(1)", "split(0, 6)"),
        (
            "split(0, 6, inner=False, padded=True) reorder(1, 0) split(1, 3, padded=True)"
            " reorder(2, 0, 1) merge(1)",
            "split(0, 6, inner=False, padded=True)",
        ),
    ],
)
def test_a_merge_of_the_first_and_the_last_of_three_parts(extent, text, refused):
    if refused is None:
        assert inferred_of((extent,), text)[1].strides is None
        return
    with pytest.raises(InputError) as caught:
        inferred_of((extent,), text)
    assert str(caught.value).startswith(f"{refused}: its parts are not adjacent in memory, and a")


@pytest.mark.parametrize("extent", [12, "h"])
def test_a_part_of_one_position_is_between_no_others(extent):
    """Parts of 2, 1, 3 and 2 positions, the last one outermost in memory and the one position
    innermost: the first and the third are adjacent, so that they may be merged."""
    _, found = inferred_of(
        (extent,), "split(0, 6) split(1, 6) split(2, 2) reorder(3, 0, 2, 1) merge(1)"
    )
    assert found.reason == (
        "there are no logical strides: the parts of split(2, 2) are not adjacent in memory"
    )


def test_addresses_go_through_the_steps():
    graph = Graph()
    shape = [graph.extent("A", axis) for axis in range(2)]
    found = infer(graph, shape, parse("split(1, 4) reorder(1, 0, 2)"))
    row, column = graph.variable(0), graph.variable(1)
    at = address(graph, found, [row, column])
    for i, j in [(0, 0), (2, 3), (1, 4), (2, 11)]:
        leaves = Leaves({"A": (3, 12)}, variables=(i, j))
        # Three blocks of 3 rows of 4.
        assert by_definition(graph, [at], leaves) == [j // 4 * 12 + i * 4 + j % 4]
    with pytest.raises(InputError, match=r"^an index of 1 numbers into 2 axes$"):
        address(graph, found, [row])


def test_an_address_where_nothing_moves_costs_nothing():
    graph = Graph()
    shape = [graph.extent("A", axis) for axis in range(2)]
    found = infer(graph, shape, parse("broadcast(1)"))
    at = address(graph, found, [graph.variable(0), graph.variable(1), graph.variable(2)])
    assert graph.text(at) == "v2 + (max(A.shape[1], 1) * v0)"
