"""The algebra in IR: random layouts with dynamic leaves, lowered, executed, and compared.

One kernel holds all cases. Their dynamic leaves are loaded from a buffer, so nothing of them folds;
lane i computes the result at coordinate i and stores it. What it must be comes from
`index_functions`, by brute force.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

import numpy as np
import pytest
from fly_dialect import algebra, dialect, text
from fly_dialect.atoms.universal import UniversalCopy
from fly_dialect.bindings import ir
from fly_dialect.builders import ops
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.swizzle import Swizzle
from fly_dialect.layouts.tile import Tile
from fly_dialect.types import IntTupleSpec, LayoutSpec, SwizzleSpec, TileSpec
from index_functions import (
    complement,
    flat,
    inverse,
    offset,
    offsets,
    ordered_strides,
    size,
    swizzled,
)

import fly
from fly.chains import chain

LANES = 64
ROUNDS = 8  # cases of each operation
KERNEL = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @cases(%in: !fly.ptr<i32, global>, %out: !fly.ptr<i32, global>) kernel {
      %lane = gpu.thread_id x
      %i = arith.index_cast %lane : index to i32
      gpu.return
    }
  }
}
"""
Value = Any


@dataclass
class Kernel:
    """The kernel under construction; builders work at the end of its block."""

    rng: random.Random
    source: Value  # the buffer of leaves
    target: Value
    lane: Value
    dynamic: bool = True  # whether leaves may be dynamic
    leaves: list[int] = field(default_factory=list)
    expected: list[list[int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the operations, one for each expected
    name: str = ""  # of the operation that is being built
    refused: Counter[str] = field(default_factory=Counter)

    def integer(self, number: int) -> Value:
        """An i32 that holds `number` when the kernel runs."""
        place = ops.make_int_tuple(len(self.leaves))
        self.leaves.append(number)
        return ops.ptr_load(ops.add_offset(self.source, place))

    def tuple(self, nested: Any) -> Value:
        """An int_tuple; about half of its leaves are dynamic, with a promise of divisibility."""
        values: list[Value] = []

        def leaf(number: Any) -> Any:
            if isinstance(number, tuple):
                return tuple(map(leaf, number))
            if not self.dynamic or number == 0 or self.rng.random() < 0.5:
                return Int(number)
            values.append(self.integer(number))
            return Int(None, 32, self.rng.choice([1, number & -number]))

        spec = IntTupleSpec(leaf(nested))
        return ops.make_int_tuple(*values, spec=spec)

    def layout(self, pair: tuple[Any, Any]) -> Value:
        return ops.make_layout(self.tuple(pair[0]), self.tuple(pair[1]))

    def coordinate(self, *numbers: Any) -> Value:
        """A coordinate of Python integers, None and i32 values."""
        values = [number for number in numbers if not isinstance(number, (int, type(None)))]
        leaves = tuple(
            number if number is None else Int(number if isinstance(number, int) else None)
            for number in numbers
        )
        spec = IntTupleSpec(leaves[0] if len(leaves) == 1 else leaves)
        return ops.make_int_tuple(*values, spec=spec)

    def at_lane(self, layout: Value) -> Value:
        return ops.crd2idx(self.coordinate(self.lane), layout)

    def store(self, result: Value, expected: list[int]) -> None:
        """Stores a scalar int_tuple or an i1; `expected` has it lane by lane, the rest is free."""
        if str(result.type) == "i1":
            value = ir.Operation.create(
                "arith.extui", results=[ir.IntegerType.get_signless(32)], operands=[result]
            ).result
        else:
            value = ops.get_scalar(result)
            if value.type.width == 64:
                i32 = ir.IntegerType.get_signless(32)
                value = ir.Operation.create("arith.trunci", results=[i32], operands=[value]).result
        begin = ops.add_offset(self.target, ops.make_int_tuple(len(self.expected) * LANES))
        ops.ptr_store(value, ops.add_offset(begin, self.coordinate(self.lane)))
        self.expect(expected)

    def expect(self, stored: list[int]) -> None:
        """What the next LANES elements of the target hold afterwards, from the first on."""
        self.expected.append(stored[:LANES])
        self.names.append(self.name)


# -- random layouts -------------------------------------------------------------------------------
def extents(rng: random.Random, total: int = 6) -> list[int]:
    """Powers of two whose product is 2 to the power `total` at most."""
    found, left = [], rng.randint(2, total)
    while left > 0:
        bits = rng.randint(1, min(3, left))
        found.append(1 << bits)
        left -= bits
    return found


def nested(rng: random.Random, shape: list[int], stride: list[int]) -> tuple[Any, Any]:
    """The modes, some neighbours grouped."""
    if len(shape) == 1:
        return shape[0], stride[0]
    pairs: list[tuple[Any, Any]] = list(zip(shape, stride, strict=True))
    if len(pairs) > 2 and rng.random() < 0.5:
        begin = rng.randrange(len(pairs) - 1)
        one, two = pairs[begin : begin + 2]
        pairs[begin : begin + 2] = [((one[0], two[0]), (one[1], two[1]))]
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def compact(rng: random.Random, factor: int = 1) -> tuple[Any, Any]:
    """A layout that takes each offset once (times `factor`), its modes in any order."""
    shape = extents(rng)
    order = tuple(rng.sample(range(len(shape)), len(shape)))
    strides = [factor * step for step in ordered_strides(tuple(shape), order)]
    return nested(rng, shape, strides)


def selector(rng: random.Random, total: int) -> tuple[Any, Any]:
    """A layout into [0, total), which divides it: some of its powers of two."""
    bits = total.bit_length() - 1
    shape, stride, at = [], [], 0
    while at < bits:
        count = rng.randint(1, bits - at)
        if rng.random() < 0.6:
            shape.append(1 << count)
            stride.append(1 << at)
        at += count
    if not shape:
        return 2, 1
    return nested(rng, shape, stride)


# -- cases: each stores what it computes with what it must be --------------------------------------
def evaluated(k: Kernel) -> None:
    pair = nested(k.rng, shape := extents(k.rng), [k.rng.randint(0, 40) for _ in shape])
    k.store(k.at_lane(k.layout(pair)), [offset(i, *pair) for i in range(LANES)])


def by_modes(k: Kernel) -> None:
    """A coordinate with a number for each mode."""
    first, second = k.rng.choice([2, 4, 8]), 8
    pair = ((first, second), (k.rng.randint(1, 9), k.rng.randint(1, 99)))
    size_ = ops.make_int_tuple(first)
    lane = k.coordinate(k.lane)
    fast, slow = (
        ops.get_scalar(ops.build(f"int_tuple_{name}", [lane, size_])) for name in ("mod", "div")
    )
    k.store(
        ops.crd2idx(k.coordinate(fast, slow), k.layout(pair)),
        [offset(i, *pair) for i in range(LANES)],
    )


def composition(k: Kernel) -> None:
    outer = compact(k.rng, k.rng.choice([1, 3]))
    inner = selector(k.rng, size(outer[0]))
    made = ops.build("composition", [k.layout(outer), k.layout(inner)])
    k.store(k.at_lane(made), [offset(x, *outer) for x in offsets(*inner)])


def coalesce(k: Kernel) -> None:
    pair = compact(k.rng)
    made = ops.build("coalesce", [k.layout(pair)])
    k.store(k.at_lane(made), offsets(*pair))


def complemented(k: Kernel) -> None:
    pair = selector(k.rng, 64)
    made = ops.build("complement", [k.layout(pair), ops.make_int_tuple(64)])
    k.store(k.at_lane(made), complement(offsets(*pair), 64))


def extent(layout: Value) -> int:
    """The size of a layout, as its type says. An inverse reaches as far as strides are known."""
    spec = dialect.spec_of(layout.type)
    assert isinstance(spec, LayoutSpec)
    return algebra.size(spec.layout).value or LANES


def right_inverse(k: Kernel) -> None:
    pair = compact(k.rng)
    made = ops.build("right_inverse", [k.layout(pair)])
    k.store(k.at_lane(made), inverse(offsets(*pair))[: extent(made)])


def left_inverse(k: Kernel) -> None:
    pair = compact(k.rng)
    made = ops.build("left_inverse", [k.layout(pair)])
    k.store(k.at_lane(made), inverse(offsets(*pair))[: extent(made)])


def divided(name: str) -> Callable[[Kernel], None]:
    """(tile, rest) in this order, whatever the nesting: one mode has the same modes in all four."""

    def case(k: Kernel) -> None:
        whole = compact(k.rng, k.rng.choice([1, 5]))
        tile = selector(k.rng, size(whole[0]))
        rest = complement(offsets(*tile), size(whole[0]))
        made = ops.build(name, [k.layout(whole), k.layout(tile)])
        k.store(k.at_lane(made), [offset(t + r, *whole) for r in rest for t in offsets(*tile)])

    return case


def divided_by_tile(k: Kernel) -> None:
    """Each mode by an extent: ((tile, tile), (rest, rest))."""
    shape, stride = (8, 8), (k.rng.choice([1, 8]), k.rng.choice([1, 9]))
    a, b = k.rng.choice([2, 4]), k.rng.choice([1, 2, 8])
    tile = ops.static(TileSpec(Tile((a, b))))
    made = ops.build("zipped_divide", [k.layout((shape, stride)), tile])
    k.store(
        k.at_lane(made),
        [
            (i + a * m) * stride[0] + (j + b * n) * stride[1]
            for n in range(8 // b)
            for m in range(8 // a)
            for j in range(b)
            for i in range(a)
        ],
    )


def multiplied(name: str) -> Callable[[Kernel], None]:
    def case(k: Kernel) -> None:
        block = k.rng.choice([(4, 1), ((2, 2), (2, 1)), (4, 2)])
        grid = compact(k.rng)
        target = size(block[0]) * (max(offsets(*grid)) + 1)
        free = complement(offsets(*block), target * 2 if block == (4, 2) else target)
        made = ops.build(name, [k.layout(block), k.layout(grid)])
        k.store(k.at_lane(made), [b + free[g] for g in offsets(*grid) for b in offsets(*block)])

    return case


def sliced(k: Kernel) -> None:
    """A row of a view of coordinates: where it begins is in the view's base."""
    shape, stride = (8, 4), (k.rng.randint(1, 9), k.rng.randint(1, 99))
    row, begin = k.rng.randrange(4), k.rng.randrange(100)
    view = ops.make_view(k.tuple(begin), k.layout((shape, stride)))
    part = ops.build("slice", [view, k.coordinate(None, k.integer(row))])
    k.store(
        ops.memref_load(part, k.coordinate(k.lane)),
        [begin + row * stride[1] + i * stride[0] for i in range(8)],
    )


def modes(k: Kernel) -> None:
    """One mode, two in another order, the last two as one."""
    shape, stride = (2, 4, 8), tuple(k.rng.randint(1, 50) for _ in range(3))
    layout = k.layout((shape, stride))
    i32s = ir.DenseI32ArrayAttr.get
    i32 = ir.IntegerType.get_signless(32)
    begin, end = ir.IntegerAttr.get(i32, 1), ir.IntegerAttr.get(i32, 3)
    k.store(k.at_lane(ops.get(layout, 1)), [offset(i, shape[1], stride[1]) for i in range(LANES)])
    k.store(
        k.at_lane(ops.build("select", [layout], None, {"indices": i32s([2, 0])})),
        [offset(i, (8, 2), (stride[2], stride[0])) for i in range(LANES)],
    )
    for name, kept in (("take", slice(1, 3)), ("group", slice(0, 3))):
        made = ops.build(name, [layout], None, {"begin": begin, "end": end})
        k.store(k.at_lane(made), [offset(i, shape[kept], stride[kept]) for i in range(LANES)])


def composed(k: Kernel) -> None:
    """A swizzle after an offset after a layout, from all of it and from a slice."""
    pair = ((16, 4), (k.rng.choice([1, 4]), k.rng.choice([16, 64])))
    begin = k.rng.randrange(64)
    swizzle = Swizzle(k.rng.randint(1, 2), k.rng.randint(0, 3), k.rng.randint(2, 3))
    numbers = swizzle.mask, swizzle.base, swizzle.shift
    inner = ops.static(SwizzleSpec(swizzle))
    made = ops.build("make_composed_layout", [inner, k.tuple(begin), k.layout(pair)])
    k.store(k.at_lane(made), [swizzled(begin + x, *numbers) for x in offsets(*pair)])
    row = k.rng.randrange(4)
    part = ops.build("slice", [made, k.coordinate(None, k.integer(row))])
    k.store(
        k.at_lane(part),
        [swizzled(begin + row * pair[1][1] + i * pair[1][0], *numbers) for i in range(16)],
    )


def composed_twice(k: Kernel) -> None:
    """A layout after an offset after a swizzle after an offset after a layout; and what a
    decomposition makes of eight elements that the swizzle leaves together."""
    outer, inner = ((8, 8), (1, k.rng.choice([8, 24]))), ((4, 64), (k.rng.choice([64, 70]), 1))
    first, second = 8 * k.rng.randrange(9), k.rng.randrange(50)
    swizzle = ops.static(SwizzleSpec(Swizzle(2, 3, 3)))
    permuted = ops.build("make_composed_layout", [swizzle, k.tuple(first), k.layout(outer)])
    made = ops.build("make_composed_layout", [k.layout(inner), k.tuple(second), permuted])
    k.store(
        k.at_lane(made),
        [offset(second + swizzled(first + x, 2, 3, 3), *inner) for x in offsets(*outer)],
    )
    column = k.rng.randrange(8)
    view = ops.make_view(ops.make_int_tuple(0), permuted)
    part = ops.decomposition(ops.build("slice", [view, k.coordinate(None, k.integer(column))]))
    begin = swizzled(first + column * outer[1][1], 2, 3, 3)
    k.store(ops.memref_load(part, k.coordinate(k.lane)), [begin + i for i in range(8)])


def back(k: Kernel) -> None:
    """From an offset to the coordinate's number, and to the mode's."""
    pair = compact(k.rng)
    lane, layout = k.coordinate(k.lane), k.layout(pair)
    numbers = inverse(offsets(*pair))
    k.store(ops.build("get_1d_coord", [lane, layout]), numbers)
    if isinstance(pair[0], tuple):
        first = size(pair[0][0])
        made = ops.build("get_flat_coord", [lane, layout])
        k.store(ops.get(made, 0), [number % first for number in numbers])


def ordered(k: Kernel) -> None:
    shape = (2, 4, 8)
    order = tuple(k.rng.sample(range(3), 3))
    made = ops.build("make_ordered_layout", [k.tuple(shape), ops.make_int_tuple(order)])
    stride = ordered_strides(shape, order)
    k.store(k.at_lane(made), offsets(shape, stride))
    k.store(ops.size(made), [64] * LANES)
    k.store(ops.cosize(made), [64] * LANES)


def arithmetic(k: Kernel) -> None:
    a, b = k.rng.randint(1, 999), k.rng.randint(1, 30)
    x, y = k.tuple(a), k.tuple(b)
    lane = k.coordinate(k.lane)
    sums = ops.build("int_tuple_add", [lane, x])
    k.store(ops.build("int_tuple_mul", [sums, y]), [(i + a) * b for i in range(LANES)])
    k.store(ops.build("ceil_div", [sums, y]), [-(-(i + a) // b) for i in range(LANES)])
    k.store(ops.build("elem_less", [lane, y], ["i1"]), [int(i < b) for i in range(LANES)])
    k.store(ops.build("equal", [lane, y], ["i1"]), [int(i == b) for i in range(LANES)])


def recast(k: Kernel) -> None:
    """Of halves to whole numbers: every second offset, halved."""
    pair = ((4, 8), (1, k.rng.choice([4, 6])))
    i32 = ir.IntegerType.get_signless(32)
    bits = {
        "old_type_bits": ir.IntegerAttr.get(i32, 16),
        "new_type_bits": ir.IntegerAttr.get(i32, 32),
    }
    made = ops.build("recast_layout", [k.layout(pair)], None, bits)
    k.store(k.at_lane(made), [x // 2 for x in offsets(*pair)[::2]])


def vectors(k: Kernel) -> None:
    """A view of the buffer of leaves, whole as a vector, stored through a view of another order."""
    shape, stride = compact(k.rng, k.rng.choice([1, 1, 2]))
    values = [k.rng.randrange(1000) for _ in range(max(offsets(shape, stride)) + 1)]
    begin = ops.add_offset(k.source, ops.make_int_tuple(len(k.leaves)))
    k.leaves += values
    order = tuple(k.rng.sample(range(len(flat(shape))), len(flat(shape))))
    target = tuple(flat(shape)), ordered_strides(tuple(flat(shape)), order)
    view = ops.make_view(begin, ops.make_layout(ops.make_int_tuple(shape), k.tuple(stride)))
    found = [values[x] for x in offsets(shape, stride)]
    place = ops.add_offset(k.target, ops.make_int_tuple(len(k.expected) * LANES))
    stored = ops.make_layout(ops.make_int_tuple(target[0]), k.tuple(target[1]))
    ops.memref_store_vec(ops.memref_load_vec(view), ops.make_view(place, stored))
    k.expect([found[number] for number in inverse(offsets(*target))])


def partitioned(k: Kernel) -> None:
    """What of two tiles of 16 × 16 a thread copies: any six of the eight bits of a place in a tile
    are the thread's, the other two its values'."""
    bits = k.rng.sample([1 << bit for bit in range(8)], 8)
    threads, values = ((2,) * 6, tuple(bits[:6])), ((2, 2), tuple(bits[6:]))
    atom = ops.make_copy_atom(UniversalCopy(32), 32)
    layout = ops.make_layout(
        ops.make_int_tuple((threads[0], values[0])), ops.make_int_tuple((threads[1], values[1]))
    )
    copy = ops.make_tiled_copy(atom, layout, ops.static(TileSpec(Tile((16, 16)))))
    shape, stride = (16, 32), (k.rng.randint(1, 9), k.rng.randint(1, 99))
    begin = k.rng.randrange(100)
    view = ops.make_view(k.tuple(begin), k.layout((shape, stride)))
    part = ops.tiled_copy_partition_src(copy, view, k.coordinate(k.lane))
    for value, tile in ((0, 0), (1, 1), (2, 0), (3, 1)):
        places = [offset(lane, *threads) + offset(value, *values) for lane in range(LANES)]
        k.store(
            ops.memref_load(part, k.coordinate(value, 0, tile)),
            [
                begin + place % 16 * stride[0] + (place // 16 + 16 * tile) * stride[1]
                for place in places
            ],
        )


OPERATIONS: dict[str, Callable[[Kernel], None]] = {
    "crd2idx": evaluated,
    "coordinates": by_modes,
    "composition": composition,
    "coalesce": coalesce,
    "complement": complemented,
    "right_inverse": right_inverse,
    "left_inverse": left_inverse,
    "logical_divide": divided("logical_divide"),
    "zipped_divide": divided("zipped_divide"),
    "tiled_divide": divided("tiled_divide"),
    "flat_divide": divided("flat_divide"),
    "tile": divided_by_tile,
    "logical_product": multiplied("logical_product"),
    "zipped_product": multiplied("zipped_product"),
    "tiled_product": multiplied("tiled_product"),
    "flat_product": multiplied("flat_product"),
    "slice": sliced,
    "modes": modes,
    "composed": composed,
    "composed twice": composed_twice,
    "idx2crd": back,
    "ordered": ordered,
    "arithmetic": arithmetic,
    "recast": recast,
    "vectors": vectors,
    "partition": partitioned,
}


def built(seed: int) -> tuple[ir.Module, Kernel]:
    """The module, and what its kernel has to store. An operation that refuses the dynamic leaves of
    a case takes the same case with static ones."""
    context = dialect.load(ir.Context())
    module = text.read(KERNEL, context)
    function = module.body.operations[0].regions[0].blocks[0].operations[0].operation
    block = function.regions[0].blocks[0]
    cast = block.operations[1]
    rng = random.Random(seed)
    with context, ir.Location.unknown(), ir.InsertionPoint(block.operations[2]):
        kernel = Kernel(rng, *block.arguments, cast.results[0])
        for kernel.name, operation in islice(cycle(OPERATIONS.items()), ROUNDS * len(OPERATIONS)):
            state = rng.getstate()
            try:
                kernel.dynamic = True
                operation(kernel)
            except ValueError:
                rng.setstate(state)
                kernel.dynamic = False
                operation(kernel)
                kernel.refused[kernel.name] += 1
    return module, kernel


@pytest.mark.parametrize(("target", "seed"), [("gfx942", 20260), ("gfx1201", 7)])
def test_the_kernel_computes_what_brute_force_does(target, seed):
    module, kernel = built(seed)
    dialect.verify(module)
    source = text.write(module).encode()
    made = chain.run(chain.chain(target, opt=["-S", "-O1"]), source)
    out = np.full(len(kernel.expected) * LANES, -1, dtype=np.int32)
    leaves = np.array(kernel.leaves, dtype=np.int32)
    fly.load(made).launch(None, 1, LANES, [leaves, out], device="emulator")
    for number, (name, expected) in enumerate(zip(kernel.names, kernel.expected, strict=True)):
        found = out[number * LANES :][: len(expected)].tolist()
        assert found == expected, f"case {number}, {name}"
    # Each operation was there with dynamic leaves; only these have to know the strides.
    always_refused = {name for name in OPERATIONS if kernel.refused[name] == ROUNDS}
    assert always_refused <= {"left_inverse", "recast"}
