"""fx.assume: layouts know the divisor, LLVM uses all of the promise, and results stay."""

# ruff: noqa: F821  (extents are named by strings)

import re

import numpy as np
import pytest

import fly
import fly.expr as fx


@fly.kernel
def rows_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, promised: fx.Constexpr[bool]):
    t = fx.thread_idx.x
    if fx.const_expr(promised):
        n = fx.assume(n, divby=16, least=16, most=64)
    rows = fx.make_view(fx.get_iter(A), fx.make_layout((4, n), (n, 1)))
    tile = fx.zipped_divide(rows, (1, 4))
    if t < n:
        B[t] = rows[t % 4, t] + n % 16 + fx.Int32(n > 100) + fx.Int32(n < 16)
    if t == 0:
        B[63] = tile[(0, 1), (3, 1)]


@fly.jit
def rows(
    A: fx.Tensor[fx.Int32, "size"],
    B: fx.Tensor[fx.Int32, 64],
    n: fx.Int32,
    promised: fx.Constexpr[bool],
):
    rows_kernel(A, B, n, promised).launch(grid=1, block=64)


@pytest.mark.parametrize("promised", [False, True])
def test_a_promise_changes_code_and_no_result(promised):
    n = 48
    a, b = np.arange(4 * n, dtype=np.int32) * 3, np.zeros(64, np.int32)
    rows(a, b, n, promised)
    t = np.arange(n)
    np.testing.assert_array_equal(b[:n], a.reshape(4, n)[t % 4, t])
    assert b[63] == a.reshape(4, n)[3, 5]
    compiled = rows.compile(a, b, n, promised)
    # The row's stride is a multiple of 16 in the layout's type, so tiles of 4 divide it.
    stated = re.search(r"\(4,\?\{div=16\}\):\(\?\{div=16\},1\)", str(compiled.ir("mlir")))
    assert (stated is not None) == promised
    # LLVM sees that the remainder is 0, and so are both comparisons.
    code = str(compiled.ir("asm")).partition("s_endpgm")[0]
    for instruction in (r"s_and_b32 s\d+, s\d+, 15\b", r"s_cmpk_gt_\w+ s\d+, 0x64", "s_cmp_lt_"):
        assert (re.search(instruction, code) is None) == promised, instruction


def test_divisors_multiply_and_known_numbers_are_checked():
    @fly.kernel
    def kernel(A: fx.Tensor, n: fx.Int64):
        twice = fx.assume(fx.assume(n, divby=4), divby=6)
        layout = fx.make_layout((twice, 5), (1, twice))
        assert "?{i64 div=12}" in str(layout)
        assert "div=60" in str(fx.make_int_tuple(fx.size(layout)))
        assert fx.assume(24, divby=8, most=30) == 24

    @fly.jit
    def host(A: fx.Tensor[fx.Int32, "n"], n: fx.Int64):
        kernel(A, fx.assume(n, divby=4)).launch(grid=1, block=64)

    host.compile()
