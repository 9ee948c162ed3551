"""Expands `copy` and `gemm` to a sequence of calls of an atom.

An operand's first mode is what the atom takes in one call; the others are iterated over:

    copy    (V, Rest…) → (V, Rest…), where V may itself be (V, Rest…)
    gemm    A (V, M, K), B (V, N, K), C and D (V, M, N); or without K
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import Any

from fly_dialect import algebra
from fly_dialect.atoms import TiledCopySpec, TiledMmaSpec
from fly_dialect.bindings import ir
from fly_dialect.dialect import spec_of
from fly_dialect.inference.atoms import copy_atom_operand, enumerator
from fly_dialect.inference.computation import View
from fly_dialect.layouts.int_tuple import rank, static_value
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Layout
from fly_dialect.layouts.swizzle import Swizzle

from fly_opt.ir import static_values
from fly_opt.passes.layout.lowering import Lower, Lowering
from fly_opt.passes.layout.memory import Parts, decomposed

_MAKERS = frozenset(("fly.make_tiled_copy", "fly.make_tiled_mma"))
# Calls are unrolled. So many already exceed every instruction cache by far.
MOST_CALLS = 1 << 16


# -- atoms ----------------------------------------------------------------------------------------
def _atom(low: Lowering, value: ir.Value) -> ir.Value | None:
    """Returns the atom of an atom or of a tiled copy or multiplication; None if it is unknown: that
    of a tiled op with state that comes from a loop or an argument."""
    spec = spec_of(value.type)
    if not isinstance(spec, (TiledCopySpec, TiledMmaSpec)):
        return value
    owner, builder = value.owner, low.builder
    if not isinstance(owner, ir.Block) and owner.name in _MAKERS:
        return owner.operands[0]
    if not isinstance(owner, ir.Block) and owner.name == "fly.atom.set_value":
        atom = _atom(low, owner.operands[0])
        field = {"field": owner.attributes["field"]}
        return atom and builder.value(
            "fly.atom.set_value", atom.type, [atom, owner.operands[1]], field
        )
    if not spec.is_static:
        return None
    loc, ip = builder.loc, builder.ip

    def make() -> ir.Operation:
        owner = static_values.make(spec.atom, loc=loc, ip=ip).owner
        assert not isinstance(owner, ir.Block), "an op makes it"
        return owner.operation

    return builder.once((spec.atom,), make)


def _called_atom(low: Lowering, value: ir.Value) -> ir.Value:
    """Returns the atom that `copy` or `gemm` calls."""
    atom = _atom(low, value)
    if atom is not None:
        return atom
    spec = spec_of(value.type)
    if isinstance(spec, TiledCopySpec):
        return low.once("get_copy_atom", [value], spec.atom)
    assert isinstance(spec, TiledMmaSpec), "an atom is itself"
    return low.once("get_mma_atom", [value], spec.atom)


def _get_atom(low: Lowering, op: ir.Operation) -> bool:
    atom = _atom(low, op.operands[0])
    if atom is None:
        return False
    op.results[0].replace_all_uses_with(atom)
    return True


def _count(shape: Any, layout: AnyLayout) -> int:
    """Returns the size of a layout's shape, which must be static."""
    size = static_value(algebra.product(shape))
    if size is None:
        raise ValueError(f"the number of atom calls must be known, but {layout} is dynamic")
    return size


def _check_calls(op: str, counts: Iterable[int]) -> None:
    """ValueError where an op expands to more calls than anybody can have meant."""
    calls = prod(counts)
    if calls > MOST_CALLS:
        raise ValueError(
            f"this {op} expands to {calls} calls of its atom; at most {MOST_CALLS} are unrolled: "
            "use a larger atom, or a loop over smaller tiles"
        )


# -- copy -----------------------------------------------------------------------------------------
def _copy(low: Lowering, op: ir.Operation) -> bool:
    tiled, *memrefs = op.operands
    atom = _called_atom(low, tiled)
    if copy_atom_operand([spec_of(atom.type)]).op.WHOLE_TILE:
        # The instruction takes the tile's extents and strides from the layouts.
        _call(low, "copy_atom_call", [atom, *memrefs])
        return True
    for views in _pieces(low, [low.view(memref) for memref in memrefs]):
        source, target, *predicate = views
        parts = [_plain(low, source), _plain(low, target), *predicate]
        _call(low, "copy_atom_call", [atom, *map(low.view_value, parts)])
    return True


def _plain(low: Lowering, view: View) -> View:
    """Returns the operand of one call without its composed layout. ValueError if a swizzle would
    split it: if it extends past the elements that the swizzle keeps together."""
    layout = view.layout
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Swizzle):
        reach, together = static_value(algebra.cosize(layout.linear)), 1 << layout.inner.base
        if reach is not None and reach > together and not layout.inner.is_trivial:
            raise ValueError(
                f"one call takes {layout.linear}, but {layout.inner} keeps only {together} "
                "elements together"
            )
    return decomposed(low, view)


def _pieces(low: Lowering, views: list[View]) -> Iterator[list[View]]:
    """Yields the source, destination and predicate of each call."""
    levels = list(_levels([view.layout for view in views]))
    _check_calls("copy", (count for count, _ in levels))
    for place in product(*(range(count) for count, _ in levels)):
        pieces = views
        for index, (_, parts) in zip(place, levels, strict=True):
            pairs = zip(parts, pieces, strict=True)
            pieces = [part.of(low, view, Int(index)) for part, view in pairs]
        yield pieces


def _levels(layouts: list[AnyLayout]) -> Iterator[tuple[int, list[Parts]]]:
    """Yields the loops over calls, outermost first: the number of parts of (V, Rest…), and the
    parts; then those of V, if it is (V, Rest…) again. ValueError if the operands disagree.

    The predicate has a boolean for each element, or, with one mode fewer, one for each call: its
    missing first mode then counts as (1):(0).
    """
    while True:
        source, target, *predicate = layouts
        modes = rank(source.shape)
        if modes != rank(target.shape):
            raise ValueError(
                f"source and destination do not have the same modes: {source} and {target}"
            )
        if predicate and rank(predicate[0].shape) == modes - 1:
            layouts = [source, target, algebra.prepend(predicate[0], Layout(1, 0))]
        elif predicate and rank(predicate[0].shape) != modes:
            raise ValueError(
                f"the predicate {predicate[0]} does not have the modes of the source {source}"
            )
        if not isinstance(source.shape, tuple):
            return
        # Group Rest into one mode, so that one index iterates over all of it.
        parts = [Parts(algebra.group(layout, 1).linear) for layout in layouts]
        counts = [_count(p.others.shape, layout) for p, layout in zip(parts, layouts, strict=True)]
        if len(set(counts)) != 1:
            shown = " and ".join(map(str, layouts))
            raise ValueError(f"{shown} have {' and '.join(map(str, counts))} parts to copy")
        yield counts[0], parts
        layouts = [part.layout for part in parts]


# -- gemm -----------------------------------------------------------------------------------------
def _gemm(low: Lowering, op: ir.Operation) -> bool:
    tiled, *operands = op.operands
    atom = _called_atom(low, tiled)
    d, a, b, c = (low.view(operand) for operand in operands[:4])
    layouts = [view.layout for view in (d, a, b, c)]
    ranks = [rank(layout.shape) for layout in layouts]
    if ranks == [1, 1, 1, 1]:
        _call(low, "mma_atom_call", [atom, *map(low.view_value, (d, a, b, c))])
        return True
    if ranks not in ([3, 3, 3, 3], [3, 2, 2, 3]):
        raise ValueError(
            "D and C must have the modes (V,M,N), A (V,M,K) or (V,M), B (V,N,K) or (V,N), but are "
            f"{layouts[0]} and {layouts[3]}, {layouts[1]}, {layouts[2]}"
        )
    bounds = _bounds(d, a, b, c)
    _check_calls("gemm", bounds)
    parts = {id(view): Parts(view.layout.linear) for view in (d, a, b, c)}
    made: dict[tuple[int, tuple[int, ...]], ir.Value] = {}

    def part(view: View, *place: int) -> ir.Value:
        """Returns one call's part of an operand; most parts are used by several calls."""
        key = id(view), place
        if key not in made:
            made[key] = low.view_value(parts[id(view)].of(low, view, *map(Int, place)))
        return made[key]

    visited: set[tuple[int, ...]] = set()
    for place in _places(low, op, bounds):
        m, n, *k = place
        # The sum starts with C; later calls for the same tile accumulate in D.
        begin = d if (m, n) in visited else c
        visited.add((m, n))
        values = [part(d, m, n), part(a, m, *k), part(b, n, *k), part(begin, m, n)]
        _call(low, "mma_atom_call", [atom, *values])
    return True


def _bounds(d: View, a: View, b: View, c: View) -> tuple[int, ...]:
    """Returns the tiles along M, N and, if present, K. ValueError if the operands disagree."""
    sizes = {
        name: [_count(view.layout.shape[mode], view.layout) for view, mode in places]
        for name, places in {
            "M": [(d, 1), (c, 1), (a, 1)],
            "N": [(d, 2), (c, 2), (b, 1)],
            "K": [(view, 2) for view in (a, b) if rank(view.layout.shape) == 3],
        }.items()
    }
    for name, found in sizes.items():
        if len(set(found)) > 1:
            raise ValueError(
                f"the operands disagree on {name}: D is {d.layout}, A {a.layout}, B {b.layout}, "
                f"C {c.layout}"
            )
    return tuple(found[0] for found in sizes.values() if found)


def _places(low: Lowering, op: ir.Operation, bounds: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields the tiles (m, n) or (m, n, k) in the order that the op asks for; by default n varies
    fastest and k slowest."""
    if len(op.operands) == 6:
        return _by_layout(low.meaning(op.operands[5]), bounds)
    if "traversalOrder" in op.attributes:
        return by_order(enumerator(op.attributes["traversalOrder"]), bounds)
    return by_order("nmk", bounds)


def by_order(order: str, bounds: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields the tiles in FlyDSL's named order: `kmn` varies k fastest and n slowest, and
    `kmn_serpentine` reverses direction where an index would restart. Without K, the order of the
    others applies."""
    letters, _, serpentine = order.partition("_")
    modes = ["mnk".index(letter) for letter in letters if "mnk".index(letter) < len(bounds)]
    for number in range(prod(bounds)):
        place, left = [0] * len(bounds), number
        for mode in modes:
            left, index = divmod(left, bounds[mode])
            # `left` counts how often this index has restarted.
            place[mode] = bounds[mode] - 1 - index if serpentine and left % 2 else index
        yield tuple(place)


def _by_layout(layout: Layout, bounds: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields the tiles in the order of a layout: its i-th offset is the number of the i-th tile,
    with m varying fastest. ValueError unless it gives each tile once."""
    total = prod(bounds)
    numbers = [static_value(algebra.crd2idx(Int(index), layout)) for index in range(total)]
    if sorted(n for n in numbers if n is not None) != list(range(total)):
        raise ValueError(f"traversalLayout {layout} does not visit each of {total} tiles once")
    for number in numbers:
        assert number is not None
        place = []
        for bound in bounds:
            number, index = divmod(number, bound)
            place.append(index)
        yield tuple(place)


def _call(low: Lowering, name: str, operands: list[ir.Value]) -> None:
    low.inferred.build(name, operands, low.builder.loc, low.builder.ip)


TABLE: dict[str, Lower] = {
    "copy": _copy,
    "gemm": _gemm,
    "get_copy_atom": _get_atom,
    "get_mma_atom": _get_atom,
}
