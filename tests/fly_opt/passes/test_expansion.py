"""The expansion of gemm: the orders in which it goes through its tiles, against loops written out;
products that are repeated."""

from itertools import permutations

import pytest
from fly_dialect import dialect, text
from fly_dialect.bindings import ir
from fly_opt.ir.builder import operations
from fly_opt.passes.layout.expansion import by_order
from fly_opt.passes.layout.layout_lowering import LayoutLowering

BOUNDS = {"m": 3, "n": 4, "k": 5}


def turning(count: int, serpentine: bool):
    """An inner loop's indices: `next` gives them once more each time it begins, backwards every
    second time if serpentine."""
    while True:
        yield range(count)
        yield reversed(range(count)) if serpentine else range(count)


def loops(letters: list[str], serpentine: bool):
    """The indices by letter in nested loops, the last letter's fastest."""
    slow, middle, fast = letters
    in_middle = turning(BOUNDS[middle], serpentine)
    in_fast = turning(BOUNDS[fast], serpentine)
    for i in range(BOUNDS[slow]):
        for j in next(in_middle):
            for k in next(in_fast):
                yield {slow: i, middle: j, fast: k}


@pytest.mark.parametrize("serpentine", [False, True])
@pytest.mark.parametrize("letters", list(permutations("mnk")), ids="".join)
def test_each_order(letters, serpentine):
    # FlyDSL names the fastest first.
    name = "".join(reversed(letters)) + ("_serpentine" if serpentine else "")
    expected = [tuple(place[x] for x in "mnk") for place in loops(list(letters), serpentine)]
    assert list(by_order(name, tuple(BOUNDS.values()))) == expected
    assert sorted(expected) == sorted(set(expected))


@pytest.mark.parametrize("name", ["mnk", "mkn", "kmn"])
def test_without_k_the_others_keep_their_order(name):
    assert list(by_order(name, (2, 2))) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert list(by_order(f"{name}_serpentine", (2, 2))) == [(0, 0), (1, 0), (1, 1), (0, 1)]


def test_a_product_that_is_repeated_is_lowered_as_often():
    """Ops with equal operands and one location, as in an unrolled loop, have one hash in MLIR's
    bindings, and an erased op can't be compared."""
    times = 300
    view = "!fly.memref<f32, register, (1,1,1):(0,0,0)>"
    atom = "!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>"
    product = (
        f"fly.gemm(%atom, %v, %v, %v, %v) : ({atom}, {view}, {view}, {view}, {view}) -> ()"
        ' loc("loop.py":1:1)\n'
    )
    layout = "!fly.layout<(1,1,1):(0,0,0)>"
    source = (
        "func.func @f(%p: !fly.ptr<f32, register>) {\n"
        f"%atom = fly.make_mma_atom : {atom}\n"
        f"%l = fly.static : {layout}\n"
        f"%v = fly.make_view(%p, %l) : (!fly.ptr<f32, register>, {layout}) -> {view}\n"
        f"{product * times}return\n}}\n"
    )
    context = dialect.load(ir.Context())
    module = text.read(source, context)
    with context, ir.Location.unknown():
        LayoutLowering().run(module.operation)
        dialect.verify(module)
    names = [op.name for op in operations(module.operation)]
    assert names.count("fly.mma_atom_call") == times
    assert "fly.gemm" not in names
