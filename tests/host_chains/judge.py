"""Everything that is said of a chain, held against enumeration, torch and each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from fly_common.errors import InputError
from fly_host.domains.axes import Check
from fly_host.domains.contiguity import check_layout
from fly_host.domains.domain import Dynamic, parse
from fly_host.domains.inference import Inferred, address, infer
from fly_host.graph import Graph

from host_chains import index_map
from host_chains.chain import Chain, Choice
from host_chains.index_map import Meaning, Wrong
from host_chains.readers import READERS, Leaves, Reader

TORCH = find_spec("torch") is not None
REFUSED = "a merge joins them"
MOST_ENUMERATED = 4000


def differences(
    chain: Chain, choice: Choice, readers: Sequence[Reader] = READERS, torch: bool = TORCH
) -> list[str]:
    """What is wrong with what the library says of a chain; usually nothing."""
    return [f"{chain}: {wrong}" for wrong in _differences(chain, choice, readers, torch)]


def _differences(
    chain: Chain, choice: Choice, readers: Sequence[Reader], torch: bool
) -> Iterator[str]:
    if parse(str(chain.allocation())) != chain.allocation():
        yield "its text is another chain's"
    graph = Graph()
    shape = [graph.const(extent) for extent in chain.shape]
    inferred = _attempt(graph, shape, chain.allocation())
    try:
        found = index_map.meaning(chain)
    except Wrong as why:
        if not isinstance(inferred, InputError) or REFUSED in str(inferred):
            yield f"it is to be refused, for {why}, and gives {inferred}"
        yield from _symbolic(chain, choice, readers, inferred, None)
        return
    ones = index_map.meaning(chain, ones=True)
    if _few(ones):
        yield from _by_enumeration(graph, inferred, found, ones)
    if torch:
        yield from _by_torch(graph, inferred, found, ones)
    yield from _symbolic(chain, choice, readers, inferred, ones)
    if isinstance(inferred, Inferred) and inferred.strides is not None:
        yield from _layout(chain, choice, readers, inferred, graph, found)


def _attempt(graph: Graph, shape: Sequence[int], allocation) -> Inferred | InputError:
    try:
        return infer(graph, shape, allocation)
    except InputError as error:
        return error


def _few(found: Meaning) -> bool:
    """Whether there are few enough coordinates to follow them all. A zero hides no large extent:
    `itertools.product` makes lists of all of them first."""
    sizes = (math.prod(max(extent, 1) for extent in one.extents) for one in found.domains())
    return max(sizes) <= MOST_ENUMERATED


def _constants(graph: Graph, indices: Sequence[int]) -> tuple[int | None, ...]:
    return tuple(graph.constant(index) for index in indices)


def _by_enumeration(
    graph: Graph, inferred: Inferred | InputError, found: Meaning, ones: Meaning
) -> Iterator[str]:
    strides = index_map.strides_of(ones)
    empty = 0 in found.logical.extents  # nothing can be seen of what lies between parts
    if isinstance(inferred, InputError):
        if empty:
            return
        if strides is not None:
            yield f"it lies at {strides}, and is refused: {inferred}"
        elif REFUSED not in str(inferred) or index_map.joined(ones) is False:
            yield f"its allocation domain has a view, and it is refused: {inferred}"
        return
    if strides is None and index_map.joined(ones) and not empty:
        yield "no axis of the allocation domain counts the logical axis, and it is not refused"
    if (strides is None) != (inferred.strides is None) and not empty:
        yield f"strides {inferred.strides}, by enumeration {strides}"
    yield from _equal("shape", _constants(graph, inferred.shape), tuple(found.logical.extents))
    yield from _equal("axes", _constants(graph, inferred.axes), tuple(found.allocated.extents))
    yield from _equal("elements", graph.constant(inferred.elements), len(found.memory()))
    if strides is not None and inferred.strides is not None:
        given = _constants(graph, inferred.strides)
        yield from _equal("strides", *_visible(given, strides, ones.logical.extents))
    last = index_map.regular(ones.offsets(len(ones.moves)))
    given = _constants(graph, inferred.axis_strides)
    yield from _equal("axis strides", *_visible(given, last, ones.allocated.extents))
    offsets = found.offsets(0)
    for coordinate in [*offsets][:: max(1, len(offsets) // 5)]:
        index = [graph.const(place) for place in coordinate]
        at = graph.constant(address(graph, inferred, index))
        yield from _equal(f"address of {coordinate}", at, offsets[coordinate])


def _visible(
    given: Sequence[Any], wanted: Sequence[Any], extents: Sequence[int]
) -> tuple[list[Any], list[Any]]:
    """Strides of axes of more than one position: nothing can be seen of others, and nothing at all
    of a tensor without elements."""
    extents = [0] * len(extents) if 0 in extents else extents
    if not len(given) == len(wanted) == len(extents):
        return list(given), [*wanted, "of other axes"]
    pairs = zip(extents, given, wanted, strict=True)
    shown = [(one, other) for extent, one, other in pairs if extent > 1]
    return [one for one, _ in shown], [other for _, other in shown]


def _equal(what: str, given: object, wanted: object) -> Iterator[str]:
    if given != wanted:
        yield f"{what}: {given}, and it has to be {wanted}"


def _by_torch(
    graph: Graph, inferred: Inferred | InputError, found: Meaning, ones: Meaning
) -> Iterator[str]:
    from host_chains.views import view

    seen, empty = view(ones), 0 in found.logical.extents
    if isinstance(inferred, InputError):
        if not empty and seen.strides is not None:
            yield f"torch has strides {seen.strides}, and it is refused: {inferred}"
        return
    if (seen.strides is None) != (inferred.strides is None) and not empty:
        yield f"strides {inferred.strides}, torch has {seen.strides}"
    elif seen.strides is not None and inferred.strides is not None:
        given = _constants(graph, inferred.strides)
        yield from _equal("strides", *_visible(given, seen.strides, ones.logical.extents))
    if found.domains() == ones.domains():
        yield from _equal("elements", graph.constant(inferred.elements), seen.elements)
    elif 0 in found.allocated.extents:
        yield from _equal("elements", graph.constant(inferred.elements), view(found).elements)


def _symbolic(
    chain: Chain,
    choice: Choice,
    readers: Sequence[Reader],
    concrete: Inferred | InputError,
    ones: Meaning | None,
) -> Iterator[str]:
    """The same chain, of which some extents and factors are known only when the program runs."""
    graph = Graph()
    shape = [
        graph.const(extent) if choice.odds(5) else graph.extent("A", axis)
        for axis, extent in enumerate(chain.shape)
    ]
    scalars: dict[str, int] = {}

    def dynamic(value: int) -> int | Dynamic:
        if not choice.odds(4):
            return value
        scalars[f"n{len(scalars)}"] = value
        return Dynamic(graph.scalar(f"n{len(scalars) - 1}"))

    allocation = chain.allocation(dynamic)
    inferred = _attempt(graph, shape, allocation)
    leaves = Leaves({"A": chain.shape}, {}, scalars)
    # What holds only of the numbers that happen to be given is no fact of the program.
    chance = ones is not None and _by_chance(chain, ones)
    if isinstance(inferred, InputError):
        if not isinstance(concrete, InputError) and not chance:
            yield f"with symbols it is refused: {inferred}"
        return
    said = _said(graph, inferred.checks, leaves, readers)
    if len(set(said)) > 1:
        yield f"readers disagree about the checks: {said}"
    if isinstance(concrete, InputError):
        wanted = str(concrete).split("\n")[0]
        if REFUSED not in wanted and said[0] != wanted and "one of the axes is" not in wanted:
            yield f"with symbols: {said[0]!r}, and it has to be {wanted!r}"
        if REFUSED in wanted and inferred.strides is not None:
            yield f"with symbols it has strides, and is to be refused: {wanted}"
        return
    if said[0]:
        yield f"with symbols it is refused: {said[0]}"
        return
    if inferred.strides is not None and concrete.strides is None:
        yield f"with symbols it has strides, and without: {concrete.reason}"
    if inferred.strides is None and concrete.strides is not None and not chance:
        yield f"with symbols it has no strides: {inferred.reason}"
    yield from _values(chain, inferred, graph, concrete, leaves, readers)


def _said(
    graph: Graph, checks: Sequence[Check], leaves: Leaves, readers: Sequence[Reader]
) -> list[str]:
    """What the first check that fails says, by each reader."""
    first = graph.const(len(checks))
    for number in reversed(range(len(checks))):
        first = graph.select(checks[number].condition, first, graph.const(number))
    said = []
    for read in readers:
        (number,) = read(graph, [first], leaves)
        message = checks[number].message if number < len(checks) else ()
        pieces = (p if isinstance(p, str) else str(read(graph, [p], leaves)[0]) for p in message)
        said.append("".join(pieces))
    return said


def _by_chance(chain: Chain, found: Meaning) -> bool:
    """Whether parts may be adjacent because of the numbers: an axis between them has one position,
    or none, or there happens to be nothing to pad."""
    padded = any(
        step[0] == "split" and step[4] and before.extents[step[1]] % step[2] == 0
        for step, before, _ in found.moves
    )
    ones = any(1 in domain.extents for domain in found.domains())
    return padded or ones or 0 in chain.shape


def _values(
    chain: Chain,
    inferred: Inferred,
    graph: Graph,
    concrete: Inferred,
    leaves: Leaves,
    readers: Sequence[Reader],
) -> Iterator[str]:
    numbers = Graph()
    known = infer(numbers, [numbers.const(extent) for extent in chain.shape], chain.allocation())
    wanted = [*known.shape, *known.axes, known.elements]
    roots = [*inferred.shape, *inferred.axes, inferred.elements]
    pairs = [(known.axes, inferred.axis_strides, known.axis_strides)]
    if inferred.strides is not None and known.strides is not None:
        pairs.append((known.shape, inferred.strides, known.strides))
    for extents, given, other in pairs:
        shown = _visible(given, other, [numbers.constant(extent) or 0 for extent in extents])
        roots, wanted = roots + shown[0], wanted + shown[1]
    for read in readers:
        try:
            values = read(graph, roots, leaves)
        except InputError as error:
            yield f"{read.__name__}: {error}"
            continue
        yield from _equal(read.__name__, tuple(values), _constants(numbers, wanted))


def _layout(
    chain: Chain,
    choice: Choice,
    readers: Sequence[Reader],
    inferred: Inferred,
    numbers: Graph,
    found: Meaning,
) -> Iterator[str]:
    """Whether inputs that have this allocation, and such that have not, are told apart."""
    shape = [numbers.constant(extent) or 0 for extent in inferred.shape]
    strides = [numbers.constant(stride) or 0 for stride in inferred.strides or ()]
    for axis in range(len(shape)):
        if choice.odds(6):
            shape[axis] += choice.one((-1, 1)) if shape[axis] else 1
        if choice.odds(6):
            strides[axis] = choice.one((0, 1, strides[axis] * 2, strides[axis] + 1))
    graph = Graph()
    try:
        checks = check_layout(graph, "A", len(shape), chain.allocation())
    except InputError as error:
        if not _by_chance(chain, found):
            yield f"inputs are refused: {error}"
        return
    leaves = Leaves({"A": tuple(shape)}, {"A": tuple(strides)})
    said = _said(graph, checks, leaves, readers)
    if len(set(said)) > 1:
        yield f"readers disagree about an input: {said}"
    fits = _fits(chain, shape, strides)
    if fits is not None and fits == bool(said[0]):
        what = f"an input of shape {shape} and strides {strides}"
        yield f"{what} {'has' if fits else 'has not'} this allocation; said: {said[0]!r}"


def _fits(chain: Chain, shape: Sequence[int], strides: Sequence[int]) -> bool | None:
    """Whether an input of these extents and strides lies as the chain says, by enumeration. None
    where enumeration would take too long."""
    made = list(chain.steps[: chain.allocation().logical])
    expanded = {}
    axes: list[int | None] = list(range(len(chain.shape)))
    for step in made:
        axis = index_map.position(step, len(axes))
        if step[0] == "broadcast":
            axes.insert(axis, None)
        else:
            expanded[axes[axis]] = step[2]
    given = [1 if axis in expanded else shape[axes.index(axis)] for axis in range(len(chain.shape))]
    exact = tuple((*step[:4], False) if step[0] == "split" else step for step in chain.steps)
    try:
        found = index_map.meaning(Chain(tuple(given), exact))
    except Wrong:
        return False
    if found.logical.extents != list(shape):
        return False
    if not _few(found):
        return None
    offsets = found.offsets(0)
    return all(
        offset == sum(c * s for c, s in zip(coordinate, strides, strict=True))
        for coordinate, offset in offsets.items()
    )
