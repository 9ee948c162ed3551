"""A Python int that does not fit the type that it meets is an error with its position, never a
number that has wrapped around; a comparison compares the numbers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fly_common.errors import FlyError

sys.path.insert(0, str(Path(__file__).parents[1]))
from both_ways import arguments, on_emulator, run_python, scalars, source_of
from trace_helpers import trace_source

HEAD = """\
import fly
import fly.expr as fx

@fly.kernel
def kernel(I8: fx.Tensor, U8: fx.Tensor, I: fx.Tensor, U: fx.Tensor, L: fx.Tensor, M: fx.Tensor,
           a: fx.Int32, b: fx.Int8, c: fx.Int64, d: fx.Uint64, e: fx.Uint8):
    {body}

@fly.jit
def entry(I8: fx.Tensor[fx.Int8, 8], U8: fx.Tensor[fx.Uint8, 8], I: fx.Tensor[fx.Int32, 8],
          U: fx.Tensor[fx.Uint32, 8], L: fx.Tensor[fx.Int64, 8], M: fx.Tensor[fx.Uint64, 8],
          a: fx.Int32, b: fx.Int8, c: fx.Int64, d: fx.Uint64, e: fx.Uint8):
    kernel(I8, U8, I, U, L, M, a, b, c, d, e).launch(grid=1, block=64)
"""
# Ways of a number to a type.
REFUSED = """
I8[0] = 128
U8[0] = -1
U8[0] = 256
I[0] = 1 << 31
I[0] = -(1 << 31) - 1
U[0] = -1
U[0] = 1 << 32
L[0] = 1 << 63
M[0] = 1 << 64
M[0] = -1
I[0] += 1 << 31
I8[0] += 128
I8[0] = b + 128
I8[0] = 128 + b
I8[0] = b - 129
I8[0] = b * -129
U8[0] = e - 256
U8[0] = e + -1
U8[0] = -1 - e
I[0] = a + (1 << 31)
I[0] = (1 << 31) - a
I[0] = a // (1 << 40)
I[0] = (1 << 40) // a
I[0] = (1 << 40) % a
I[0] = divmod(a, 1 << 31)[0]
L[0] = c + (1 << 63)
M[0] = d - (1 << 64)
M[0] = d * -1
I[0] = a & 0xFFFFFFFF
I[0] = a | (1 << 32)
I[0] = 0xFFFFFFFF ^ a
I[0] = (1 << 40) << a
I[0] = a + fx.Int8(128)
I8[0] = fx.Int8(128)
U8[0] = fx.Uint8(-1)
I[0] = fx.Int32(1 << 31)
L[0] = fx.Int64(1 << 63)
M[0] = fx.Uint64(-1)
I8[0] = fx.where(a > 1, 128, b)
I[0] = fx.where(a > 1, 1 << 31, a)
I[0] = fx.where(a > 1, a, 1 << 31)
I[0] = fx.where(a > 1, 1 << 64, 2)
I[0] = fx.minimum(a, 1 << 31)
I[0] = fx.maximum(1 << 31, a)
I[0] = max(1 << 31, a)
I[0] = sum([a, 1 << 31])
I[0] = sum([a], 1 << 31)
I[0] = (1 << 31) if a > 1 else a
I[0] = a if a > 1 else 1 << 31
I[0] = fx.ceildiv(a, 1 << 31)
I[0] = fx.ceildiv(1 << 31, a)
I[1 << 31] = 1
I[0] = I[1 << 64]
I[a + (1 << 31)] = 1
for i in range(1 << 64): I[0] = 1
for i in range(0, a, 1 << 31): I[0] = 1
for i in range(1 << 31, a): I[0] = 1
for i in range(a, 1 << 31): I[0] = 1
for i in range(b, 128): I[0] = 1
fx.make_rmem_tensor(4, fx.Int8).fill(128)
fx.make_rmem_tensor(4, fx.Uint8).fill(-1)
fx.make_rmem_tensor(4, fx.Int32).fill(1 << 31)
fx.make_rmem_tensor(4, fx.Int8)[0] = 128
fx.full(4, 128, fx.Int8)
fx.full(4, 1 << 31, fx.Int32)
fx.Vector.filled(4, 128, fx.Int8)
fx.Vector.from_elements([128, 1], fx.Int8)
fx.full(4, 1, fx.Int8) + 128
128 - fx.full(4, 1, fx.Int8)
fx.full(4, 1, fx.Int8) & 0xFF
fx.maximum(fx.full(4, 1, fx.Int8), 128)
fx.where(fx.full(4, True, fx.Boolean), fx.full(4, 1, fx.Int8), 128)
fx.shared_array(fx.Int8, 4)[0] = 128
fx.shared_array(fx.Int32, 4)[1 << 31] = 1
fx.atomic_add(I, 0, 1 << 31)
fx.atomic_add(I, 1 << 31, 1)
fx.atomic_max(U, 0, -1)
fx.shuffle_xor(a, 1 << 31)
fx.shuffle_xor(a, 1 << 40)
fx.shuffle_up(a, 1 << 32)
fx.shuffle_down(a, (1 << 32) + 1)
fx.shuffle_idx(a, (1 << 32) + 1)
fx.shuffle_idx(a, fx.Int64((1 << 32) + 1))
fx.nvvm.nanosleep((1 << 32) + 1)
fx.fpowi(fx.Float32(2), (1 << 32) + 1)
L[0] = fx.size(fx.make_layout((1 << 40, 1 << 31), (4, 1)))
fx.printf("{}", a + (1 << 31))
assert a + (1 << 31) > 2
"""


@pytest.mark.parametrize("body", REFUSED.strip().splitlines())
def test_refused(body: str, tmp_path: Path) -> None:
    with pytest.raises(FlyError) as caught:
        trace_source(HEAD.format(body=body), tmp_path)
    error = caught.value
    assert error.place is not None
    assert error.place.excerpt(), "no caret"
    assert error.place.line == 7
    said = ("doesn't fit in", "too large", "out of bounds", "fits in i32", "one side of the")
    assert any(part in error.message for part in said), error.message


# What compares the numbers: none of these is refused, and none wraps around.
COMPARED = """
I[0] = 1 if a == (1 << 31) else 2
I[1] = 1 if a < (1 << 64) else 2
I[2] = 1 if -1 < a < (1 << 40) else 2
I[3] = 1 if (1 << 70) > a else 2
I[4] = 1 if a in (1 << 32, 2) else 2
I[5] = 1 if a != (1 << 32) + 2 else 2
I[6] = 1 if a >= -(1 << 40) else 2
I[7] = a >> 40
F[0] = max([a, b], key=lambda v: v > (1 << 32))
F[2] = min(a, 1 << 31)
F[1] = 1 if (a < (1 << 40)) & (b > 2) else 2
"""


def test_comparisons_are_exact(tmp_path: Path) -> None:
    given = (2, 5, 0.5, 0.25)
    found = on_emulator(source_of(COMPARED), [list(given)], tmp_path / "k.py")[0]
    expected = arguments()
    run_python(COMPARED, [*expected, *scalars(*given)])
    assert [one.tolist() for one in found] == [one.tolist() for one in expected]
