"""Fast-math flags of functions and of blocks."""

# ruff: noqa: F821  (extents are named by strings)

import re

import numpy as np

import fly
import fly.expr as fx


def square_sum(x, y):
    return x * x + y


@fly.kernel
def flagged_kernel(A: fx.Tensor, B: fx.Tensor, inside: fx.Constexpr[bool]):
    t = fx.thread_idx.x
    x = A[t]
    total = fx.Float32(0.0)
    if fx.const_expr(inside):
        with fx.fastmath("contract"):
            if x > 0.5:
                total = square_sum(x, 1.0)
            else:
                total = square_sum(x, 2.0)
            with fx.fastmath(["nnan", "ninf"]):
                y = fx.exp2(x, fastmath="afn") + fx.sqrt(x)
            total = square_sum(total, x) - y
            count = fx.ctpop(t) + t
    else:
        total = fx.where(x > 0.5, square_sum(x, 1.0), square_sum(x, 2.0))
        total = square_sum(total, x) - (fx.exp2(x) + fx.sqrt(x))
        count = fx.ctpop(t) + t
    B[t] = total + fx.Float32(count)


@fly.jit
def flagged(
    A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"], inside: fx.Constexpr[bool]
):
    flagged_kernel(A, B, inside).launch(grid=1, block=64)


def test_a_block_gives_its_flags_to_what_is_computed_in_it():
    x = np.random.default_rng(7).random(64, dtype=np.float32)
    results, fused = [], []
    for inside in (False, True):
        y = np.zeros_like(x)
        flagged(x, y, inside)
        results.append(y)
        text = str(flagged.compile(x, y, inside).ir("mlir"))
        flags = {(re.search(r"= (\S+)", line)[1], flag) for line, flag in _flagged(text)}
        # A product and a sum are contracted where both may be: one more FMA than the root takes.
        code = str(flagged.compile(x, y, inside).ir("asm"))
        fused.append(len(re.findall(r"v_fma(?:c|ak|mk|aak|amk)?_f32", code)))
        if not inside:
            assert not flags
            continue
        assert flags == {
            *(("arith.mulf", "contract"), ("arith.addf", "contract"), ("arith.subf", "contract")),
            *(("arith.cmpf", "contract"), ("math.exp2", "afn")),
            *(("math.sqrt", "nnan,ninf"), ("arith.addf", "nnan,ninf")),
        }
    assert fused[1] > fused[0]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


def _flagged(text: str) -> list[tuple[str, str]]:
    return re.findall(r"(%\S+ = [^\n]*) fastmath<([\w,]+)>", text)
