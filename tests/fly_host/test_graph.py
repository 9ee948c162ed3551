"""The graph simplifies nothing away: beside the same expressions as they were written."""

from itertools import product

import pytest
from fly_common.errors import InputError
from fly_host.graph import Graph
from fly_host.integers import BINARY, HIGHEST, LOWEST
from host_chains.readers import Leaves, by_definition
from hypothesis import example, given, settings
from hypothesis import strategies as st

I64 = (
    st.integers(-9, 9)
    | st.sampled_from([LOWEST, LOWEST + 1, HIGHEST, 62, 63, 64, 2**31, -(2**31), 2**32, 2**62])
    | st.integers(LOWEST, HIGHEST)
)
EXTENT = st.integers(0, 9) | st.sampled_from([2**31, 2**62, HIGHEST])
LEAF = (
    st.tuples(st.just("const"), I64)
    | st.tuples(st.just("const"), st.sampled_from([0, 1, -1, 2, 4]))
    | st.tuples(st.just("extent"), st.just("A"), st.integers(0, 1))
    | st.tuples(st.just("stride"), st.just("A"), st.integers(0, 1))
    | st.tuples(st.just("scalar"), st.just("n"))
    | st.tuples(st.just("variable"), st.just(0))
)


def larger(expressions):
    """A tree: an operator and its operands, which are trees."""
    return st.tuples(st.sampled_from(sorted(BINARY)), expressions, expressions) | st.tuples(
        st.just("select"), expressions, expressions, expressions
    )


TREES = st.recursive(LEAF, larger, max_leaves=12)
LEAVES = st.builds(
    lambda shape, strides, n, i: Leaves({"A": shape}, {"A": strides}, {"n": n}, (i,)),
    st.tuples(EXTENT, EXTENT),
    st.tuples(I64, I64),
    I64 | st.just(2**64 - 1),
    I64,
)


def simplified(graph: Graph, tree) -> int:
    name, *operands = tree
    made = (simplified(graph, one) if isinstance(one, tuple) else one for one in operands)
    return graph.make(name, *made)


def as_written(expressions: list, tree) -> int:
    name, *operands = tree
    made = [as_written(expressions, one) if isinstance(one, tuple) else one for one in operands]
    expressions.append((name, *made))
    return len(expressions) - 1


def value(graph: Graph, index: int, leaves: Leaves) -> int | None:
    try:
        return by_definition(graph, [index], leaves)[0]
    except InputError:
        return None


@settings(max_examples=600)
@given(TREES, LEAVES)
@example(("mul", ("scalar", "n"), ("const", 0)), Leaves({}, {}, {"n": 2**63}))
@example(
    ("floordiv", ("mul", ("scalar", "n"), ("const", 4)), ("const", 4)), Leaves(scalars={"n": 2**62})
)
def test_value_and_definedness_stay(tree, leaves):
    graph, expressions = Graph(), []
    index, written = simplified(graph, tree), as_written(expressions, tree)
    raw = Graph(expressions)
    expected = value(raw, written, leaves)
    assert value(graph, index, leaves) == expected
    for one, at in ((graph, index), (raw, written)):
        low, high, defined = one.bounds(at)
        assert expected is None or low <= expected <= high
        assert not (defined and expected is None)


E, S, N = ("extent", "A", 0), ("stride", "A", 0), ("scalar", "n")


def c(number):
    return ("const", number)


# What an operand may be, to a simplification: each constant that means something to an operator,
# leaves of which more or less is known, and products, remainders and quotients.
CONSTANTS = [c(n) for n in (LOWEST, -8, -1, 0, 1, 2, 4, 8, 63, 64, 2**62, HIGHEST)]
OPERANDS = [
    *CONSTANTS,
    *(E, S, N, ("variable", 0)),
    *(("mul", leaf, c(factor)) for leaf in (E, S, N) for factor in (-1, 2, 4, 2**62)),
    *(("mul", ("floordiv", E, c(8)), c(factor)) for factor in (2, 8)),
    *(("mod", E, c(4)), ("rem", S, c(4)), ("and", E, c(7)), ("lt", S, c(0)), ("floordiv", E, S)),
    ("max", ("mul", E, c(4)), c(8)),  # at least 8, if it has a value
]
VALUES = [
    Leaves({"A": (extent,)}, {"A": (stride,)}, {"n": n}, (variable,))
    for extent, stride, n, variable in (
        (0, 0, 0, 0),
        (1, -1, 1, -1),
        (5, 3, 2**63, 64),
        (8, -8, -3, 2**40),
        (2**61, -(2**62), 2**62, -(2**63)),
        (HIGHEST, LOWEST, 2**64 - 1, HIGHEST),
        (2**62, 2**62, HIGHEST, 63),
    )
]


@pytest.mark.parametrize("op", sorted(BINARY))
def test_every_operator_on_every_pair_of_operands(op):
    graph, plain = Graph(), []
    written = [as_written(plain, tree) for tree in OPERANDS]
    simple = [simplified(graph, tree) for tree in OPERANDS]
    pairs = list(product(range(len(OPERANDS)), repeat=2))
    plain += [(op, written[a], written[b]) for a, b in pairs]
    results = [graph.make(op, simple[a], simple[b]) for a, b in pairs]
    raw = Graph(plain)
    first = len(plain) - len(pairs)
    for leaves in VALUES:
        for at, (a, b) in enumerate(pairs):
            expected = value(raw, first + at, leaves)
            assert value(graph, results[at], leaves) == expected, (OPERANDS[a], OPERANDS[b], leaves)


@pytest.mark.parametrize("condition", OPERANDS)
def test_select_of_every_condition(condition):
    risky = ("floordiv", c(1), S)
    for a, b in ((E, N), (N, N), (risky, E), (E, risky), (risky, risky)):
        tree = ("select", condition, a, b)
        graph, plain = Graph(), []
        index, raw = simplified(graph, tree), as_written(plain, tree)
        for leaves in VALUES:
            assert value(graph, index, leaves) == value(Graph(plain), raw, leaves), (tree, leaves)


@pytest.mark.parametrize("operand", OPERANDS)
def test_truth_of_every_operand(operand):
    graph = Graph()
    index = simplified(graph, operand)
    for leaves in VALUES:
        known = value(graph, index, leaves)
        expected = None if known is None else int(known != 0)
        assert value(graph, graph.truth(index), leaves) == expected


@pytest.fixture
def graph():
    return Graph()


def test_each_expression_exists_once(graph):
    a, n = graph.extent("A", 0), graph.scalar("n")
    assert graph.extent("A", 0) == a != graph.extent("A", 1)
    assert graph.mul(a, n) == graph.mul(n, a)
    assert graph.add(graph.const(3), a) == graph.add(a, graph.const(3))
    assert graph.expressions[graph.add(a, graph.const(3))][1:] == (a, graph.const(3))
    assert graph.sub(a, n) != graph.sub(n, a)
    assert len(set(graph.expressions)) == len(graph.expressions)


@pytest.mark.parametrize("op", sorted(BINARY))
def test_operands_that_may_be_exchanged(graph, op):
    a, b = graph.extent("A", 0), graph.stride("A", 0)
    same = {"add", "mul", "min", "max", "and", "or", "xor", "eq", "ne"}
    assert (graph.make(op, a, b) == graph.make(op, b, a)) == (op in same)


def test_leaves_have_the_plans_form(graph):
    made = [graph.const(-5), graph.extent("A", 2), graph.stride("A", 1), graph.scalar("n")]
    made.append(graph.variable(3))
    assert [graph.expressions[index] for index in made] == [
        ("const", -5), ("extent", "A", 2), ("stride", "A", 1), ("scalar", "n"), ("variable", 3)
    ]  # fmt: skip


def test_given_expressions_keep_their_indices():
    graph = Graph([("const", 1), ("extent", "A", 0), ("mul", 1, 0), ("const", 1)])
    assert graph.expressions[2:] == [("mul", 1, 0), ("const", 1)]
    assert graph.const(1) == 0
    assert graph.ceildiv(1, graph.const(4)) == 5


def simple(graph, tree):
    return graph.expressions[simplified(graph, tree)]


@pytest.mark.parametrize(
    ("tree", "result"),
    [
        (("add", c(2), c(3)), c(5)),
        (("and", c(-4), c(7)), c(4)),
        (("or", c(-3), c(0)), c(-3)),
        (("mod", ("mul", N, c(0)), c(4)), ("mul", 0, 1)),
        (("mul", ("mul", N, c(7)), c(HIGHEST // 7)), ("mul", 0, 4)),
        (("add", N, c(0)), N),
        (("sub", N, c(0)), N),
        (("mul", c(1), N), N),
        (("floordiv", N, c(1)), N),
        (("ceildiv", N, c(1)), N),
        (("min", N, N), N),
        (("select", c(7), N, ("floordiv", c(1), c(0))), N),
        (("select", c(0), ("floordiv", c(1), c(0)), N), N),
        (("select", S, N, N), N),
        (("mul", E, c(0)), c(0)),
        (("mod", E, c(1)), c(0)),
        (("sub", S, S), c(0)),
        (("le", c(0), E), c(1)),
        (("lt", E, c(0)), c(0)),
        (("max", E, c(0)), E),
        (("mod", ("mod", E, c(4)), c(8)), ("mod", 0, 1)),
        (("floordiv", ("mod", E, c(4)), c(4)), c(0)),
        (("mod", ("mul", ("floordiv", E, c(8)), c(8)), c(4)), c(0)),
        (("floordiv", ("mul", ("floordiv", E, c(8)), c(8)), c(8)), ("floordiv", 0, 1)),
        (("mul", ("mul", N, c(-4)), c(8)), ("mul", 0, 4)),
        (("mul", ("mul", N, c(2**31)), c(-(2**31))), ("mul", 2, 3)),
        (("mul", ("mul", N, c(-(2**31))), c(2**32)), ("mul", 0, 4)),
        (("and", N, c(-1)), N),
        (("or", c(0), N), N),
        (("xor", N, c(0)), N),
        (("shl", N, c(0)), N),
        (("shr", N, c(0)), N),
        (("truncdiv", N, c(1)), N),
        (("max", N, N), N),
        (("and", N, N), N),
        (("or", N, N), N),
        (("xor", S, S), c(0)),
        (("eq", S, S), c(1)),
        (("ne", S, S), c(0)),
        (("le", S, S), c(1)),
        (("lt", S, S), c(0)),
        (("min", ("mod", E, c(4)), c(3)), ("mod", 0, 1)),
        (("max", E, c(-1)), E),
        (("rem", ("mod", E, c(4)), c(4)), ("mod", 0, 1)),
        (("shl", c(-3), c(2)), c(-12)),
        (("and", c(-3), c(-7)), c(-7)),
        (("xor", c(LOWEST), c(-1)), c(HIGHEST)),
        (("and", c(LOWEST), c(-5)), c(LOWEST)),
        (("or", c(-3), c(64)), c(-3)),
        (("rem", c(-5), c(1)), c(0)),
        (("rem", c(-5), c(3)), c(-2)),
        (("mod", c(-5), c(3)), c(1)),
        (("mod", c(5), c(-3)), c(-1)),
        (("xor", c(-3), c(2)), c(-1)),
        (("ceildiv", ("mul", ("floordiv", E, c(8)), c(8)), c(-4)), ("mul", 2, 5)),
        (("rem", ("mul", ("floordiv", E, c(8)), c(8)), c(2)), c(0)),
        (("select", ("add", ("mod", E, c(4)), c(1)), E, N), E),
        (("select", ("sub", ("mod", E, c(4)), c(4)), E, N), E),
    ],
)  # fmt: skip
def test_simplified(graph, tree, result):
    assert simple(graph, tree) == result


@pytest.mark.parametrize(
    "tree",
    [
        ("floordiv", c(1), c(0)),
        ("add", c(HIGHEST), c(1)),
        ("shl", c(1), c(64)),
        ("mul", ("mul", S, c(2)), c(0)),
        ("mul", N, c(0)),  # a u64 scalar may have no value in 64 signed bits
        ("sub", N, N),
        ("select", N, E, E),
        ("mod", ("mul", E, c(4)), c(4)),  # the product may leave 64 bits
        ("min", ("mul", E, c(4)), c(-1)),
        ("mul", ("mul", S, c(2)), c(-1)),  # 2^62 times 2 has no value, times -2 it has
        ("mul", ("mul", S, c(2**62)), c(4)),
        ("le", c(0), S),
    ],
)
def test_not_simplified(graph, tree):
    """What may be undefined stays, and so does what is not known."""
    name, *operands = tree
    op, *indices = simple(graph, tree)
    assert op == name
    assert sorted(simplified(graph, one) for one in operands) == sorted(indices)


def test_conditions(graph):
    a, b = graph.lt(E_of(graph), graph.const(4)), graph.logical_not(graph.extent("A", 1))
    assert graph.expressions[graph.logical_and(a, b)] == ("and", min(a, b), max(a, b))
    assert graph.expressions[graph.logical_or(a, b)] == ("or", min(a, b), max(a, b))
    risky = graph.eq(graph.mod(E_of(graph), graph.scalar("n")), graph.const(0))
    zero, one = graph.const(0), graph.const(1)
    assert graph.expressions[graph.logical_and(a, risky)] == ("select", a, risky, zero)
    assert graph.expressions[graph.logical_or(a, risky)] == ("select", a, one, risky)
    assert graph.logical_and(zero, risky) == zero
    assert graph.logical_or(one, risky) == one
    assert graph.truth(graph.const(-3)) == one


def E_of(graph):
    return graph.extent("A", 0)


@given(I64, I64)
def test_conditions_are_pythons(a, b):
    graph = Graph()
    n, m = graph.stride("A", 0), graph.stride("A", 1)
    leaves = Leaves({}, {"A": (a, b)})
    for index, expected in (
        (graph.logical_and(n, m), bool(a and b)),
        (graph.logical_or(n, m), bool(a or b)),
        (graph.logical_not(n), not a),
    ):
        assert value(graph, index, leaves) == int(expected)


def test_text(graph):
    blocks = graph.ceildiv(E_of(graph), graph.const(256))
    assert graph.text(blocks) == "ceildiv(A.shape[0], 256)"
    assert graph.text(graph.mul(graph.variable(2), blocks)) == "ceildiv(A.shape[0], 256) * v2"


def test_a_constant_fits_64_bits(graph):
    graph.const(LOWEST)
    with pytest.raises(InputError, match=r"^9223372036854775808 does not fit 64 bits$"):
        graph.const(HIGHEST + 1)
