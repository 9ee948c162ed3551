"""A sample of the random chains of `python -m host_chains`, and that it tells what is wrong."""

import pytest
from fly_common.errors import InputError
from fly_common.record import replace
from fly_host.domains.axes import Check
from fly_host.domains.domain import Allocation
from fly_host.domains.inference import infer
from fly_host.graph import Graph
from fly_host.native.emission import arithmetic
from fly_host.native.emission.guards import tensors
from host_chains import __main__ as driver
from host_chains import index_map, judge
from host_chains.chain import Chain, Choice, random_chain
from host_chains.native_code import EVERY_READER, Batch, by_native_code
from host_chains.readers import READERS, Leaves, by_definition
from hypothesis import given, settings
from hypothesis import strategies as st

CHAINS = 600  # of the sample


def test_sample():
    assert [*driver.judged(1, range(CHAINS))] == []


@settings(max_examples=100)
@given(st.data(), st.booleans())
def test_chains_that_hypothesis_makes(data, large):
    """The same chains, which it makes small when one is wrong."""
    choice = Choice(lambda count: data.draw(st.integers(0, count - 1)))
    assert judge.differences(random_chain(choice, large), choice) == []


def test_the_sample_has_all_kinds():
    """Chains that have strides, that have none, that are refused for either reason."""
    kinds = dict.fromkeys(("strides", "no strides", "joined", "wrong", "empty", "no axes"), 0)
    names = dict.fromkeys(("split", "merge", "reorder", "broadcast", "expand"), 0)
    for number in range(CHAINS):
        chain, _ = driver.made(1, number)
        for step in chain.steps:
            names[step[0]] += 1
        kinds["empty"] += 0 in chain.shape
        kinds["no axes"] += chain.shape == ()
        graph = Graph()
        try:
            found = infer(graph, [graph.const(e) for e in chain.shape], chain.allocation())
            kinds["no strides" if found.strides is None else "strides"] += 1
        except InputError as error:
            kinds["joined" if judge.REFUSED in str(error) else "wrong"] += 1
    assert min(kinds.values()) > 5, kinds
    assert min(names.values()) > 50, names


def changed(field, change):
    """An `infer` of which one field is another."""

    def wrong(graph, shape, allocation):
        found = infer(graph, shape, allocation)
        return replace(found, **{field: change(graph, getattr(found, field))})

    return wrong


def first_doubled(graph, indices):
    return indices and (graph.mul(indices[0], graph.const(2)), *indices[1:])


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("strides", first_doubled),
        ("strides", lambda graph, strides: None),
        ("axis_strides", first_doubled),
        ("axes", first_doubled),
        ("shape", first_doubled),
        ("elements", lambda graph, elements: graph.add(elements, graph.const(1))),
        ("checks", lambda graph, checks: ()),
        ("checks", lambda graph, checks: tuple(check._replace(message=()) for check in checks)),
    ],
)
def test_a_wrong_inference_is_told(field, change, monkeypatch):
    monkeypatch.setattr(judge, "infer", changed(field, change))
    assert any(judge.differences(*driver.made(1, number)) for number in range(100))


@pytest.mark.parametrize(
    "refusal", ["never", "split(0, 2): a merge joins them"], ids=["no reason", "a merge"]
)
def test_a_wrong_refusal_is_told(refusal, monkeypatch):
    def wrong(graph, shape, allocation):
        raise InputError(refusal)

    monkeypatch.setattr(judge, "infer", wrong)
    assert judge.differences(Chain((4, 6), (("split", 0, 2, True, False),)), Choice.of_seed(1))


def test_a_missing_refusal_is_told(monkeypatch):
    def wrong(graph, shape, allocation):
        return infer(graph, shape, Allocation(allocation.steps[:-1]))

    chain = Chain((6,), (("split", 0, 2, True, False), ("reorder", (1, 0)), ("merge", 0)))
    assert judge.differences(chain, Choice.of_seed(1)) == []
    monkeypatch.setattr(judge, "infer", wrong)
    assert any("it is not refused" in text for text in judge.differences(chain, Choice.of_seed(1)))


@pytest.mark.parametrize("said", [True, False])
def test_a_wrong_check_of_an_input_is_told(said, monkeypatch):
    def wrong(graph, *values):
        return () if said else (Check(graph.const(0), ("no",)),)

    monkeypatch.setattr(judge, "check_layout", wrong)
    assert any(judge.differences(*driver.made(1, number)) for number in range(100))


def test_a_wrong_reader_is_told():
    def wrong(graph, roots, leaves):
        return [value + 1 for value in by_definition(graph, roots, leaves)]

    found = judge.differences(Chain((4,), ()), Choice.of_seed(1), [*READERS, wrong])
    assert any("wrong" in text for text in found)


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        (arithmetic, "OVERFLOWING", arithmetic.OVERFLOWING | {"mul": "sadd"}),
        (tensors, "STRIDES", tensors.DIMENSIONS),
        (arithmetic, "COMPARING", arithmetic.COMPARING | {"le": "slt"}),
    ],
)
def test_wrong_native_code_is_told(module, name, wrong, monkeypatch):
    monkeypatch.setattr(module, name, wrong)
    found = [*driver.judged(1, range(60))]
    assert any("by native code" in text for text in found)


def test_native_code_has_no_value_where_the_others_have_none():
    """A division by zero, and a product that does not fit 64 bits."""
    graph = Graph()
    n = graph.extent("A", 0)
    square, quotient = graph.mul(n, n), graph.floordiv(graph.const(7), n)
    few, zero, many = (Leaves({"A": (extent,)}) for extent in (1 << 31, 0, 1 << 32))
    for read in EVERY_READER:
        assert read(graph, [square, quotient], few) == [1 << 62, 0]
        with pytest.raises(InputError):
            read(graph, [quotient], zero)
        with pytest.raises(InputError):
            read(graph, [square], many)
    batch = Batch(each=True)
    batch(graph, [square], few)
    for roots, leaves in (([quotient], zero), ([square], many)):
        with pytest.raises(InputError):
            batch(graph, roots, leaves)
    assert [*batch.differences()] == []


def test_native_code_gets_extents_that_no_array_has():
    """They are scalars then."""
    graph = Graph()
    total = graph.add(graph.extent("A", 0), graph.extent("A", 1))
    strides = graph.add(graph.stride("A", 0), graph.stride("A", 1))
    leaves = Leaves({"A": (1 << 40, 1 << 41)}, {"A": (3, 1 << 50)})
    assert by_native_code(graph, [total, strides], leaves) == [3 << 40, (1 << 50) + 3]


def test_the_index_map_by_hand():
    """NHWC as N, C/4, H, W, 4, and [2, 3] padded to [2, 2·2]."""
    chain = Chain((1, 2, 2, 8), (("split", 3, 4, True, False), ("reorder", (0, 3, 1, 2, 4))))
    found = index_map.meaning(chain)
    offsets = found.offsets(0)
    assert [offsets[0, 0, 0, c] for c in range(8)] == [0, 1, 2, 3, 16, 17, 18, 19]
    assert offsets[0, 1, 1, 7] == 31
    assert index_map.strides_of(found) is None
    assert not index_map.joined(found)
    padded = index_map.meaning(Chain((2, 3), (("split", 1, 2, True, True),)))
    assert len(padded.memory()) == 8
    assert index_map.strides_of(padded) == (4, 1)
    assert list(padded.offsets(0).values()) == [0, 1, 2, 4, 5, 6]


def test_the_driver(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["host_chains", "--chains", "20", "--seed", "5"])
    assert driver.main() == 0
    assert capsys.readouterr().out.startswith("host_chains: 20 chains, 0 differences")
    monkeypatch.setattr(judge, "infer", changed("elements", lambda graph, one: graph.const(7)))
    assert driver.main() == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("host_chains: --seed 5 --again 0: ")
    monkeypatch.setattr("sys.argv", ["host_chains", "--seed", "5", "--again", "0"])
    assert driver.main() == 1
    assert capsys.readouterr().out.splitlines()[0] == told[0]
