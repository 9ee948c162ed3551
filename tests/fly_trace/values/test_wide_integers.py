"""128-bit integers in memory, control flow, shuffles and reductions, and what cannot be passed.
Their operators and conversions: test_type_pairs, test_conversion_pairs.
"""

import numpy as np
import pytest
from fly_common.errors import FlyError

import fly
import fly.expr as fx

LANES = 64


@fly.kernel
def everywhere_kernel(A: fx.Tensor, C: fx.Tensor):
    t = fx.thread_idx.x
    x = fx.Int128(A[t]) << 70
    shared = fx.shared_array(fx.Int128, (LANES,))
    shared[t] = x * 3
    fx.barrier()
    y = fx.shuffle_xor(shared[LANES - 1 - t], 1)
    z = fx.Int128(0)
    for i in range(fx.Int128(A[0]), fx.Int128(A[1]) + fx.Int128(4)):  # 0 to 4
        z += i
    v = fx.Vector.from_elements([x, y, z, fx.Uint64(1)])
    registers = fx.make_rmem_tensor(4, fx.Int128)
    registers.store(v)
    total = v.reduce("add") + v.reduce("max") + registers[2] + fx.Int128(A[fx.Int128(t)])
    if t % 2 == 0:
        total = total + fx.ctlz(x) + fx.cttz(x) + fx.ctpop(y)
    else:
        total = -total
    fx.make_view(fx.recast_iter(fx.Int128, fx.get_iter(C)), fx.make_layout(LANES, 1))[t] = total


@fly.jit
def everywhere(A: fx.Tensor[fx.Int64, LANES], C: fx.Tensor[fx.Uint64, LANES, 2]):
    everywhere_kernel(A, C).launch(grid=1, block=LANES)


def in_python(t: int) -> int:
    x, y, z = t << 70, ((LANES - 1 - (t ^ 1)) << 70) * 3, sum(range(5))
    total = x + y + z + 1 + max(x, y, z, 1) + z + t
    if t % 2:
        return -total
    zeros = (x & -x).bit_length() - 1 if x else 128
    return total + 128 - x.bit_length() + zeros + y.bit_count()


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "sm_90a"])
def test_carried_stored_shuffled_and_reduced(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLY_TARGET", target)
    C = np.zeros((LANES, 2), np.uint64)
    everywhere(np.arange(LANES), C)
    found = [int(high) << 64 | int(low) for low, high in C]
    assert found == [in_python(t) % 2**128 for t in range(LANES)]


@fly.kernel
def number_kernel(A: fx.Tensor, x: fx.Int128): ...


@fly.jit
def constant(A: fx.Tensor[fx.Int64, 4]):
    number_kernel(A, fx.Int128(5)).launch(grid=1, block=1)


@fly.jit
def number(A: fx.Tensor[fx.Int64, 4], x: fx.Int128): ...


@fly.jit
def tensor(A: fx.Tensor[fx.Uint128, 4]): ...


@fly.jit
def allocated():
    return fx.empty((4,), fx.Int128)


@fly.kernel
def atomic_kernel(A: fx.Tensor):
    view = fx.make_view(fx.recast_iter(fx.Int128, fx.get_iter(A)), fx.make_layout(2, 1))
    fx.atomic_add(view, 0, 1)


@fly.jit
def atomic(A: fx.Tensor[fx.Int64, 4]):
    atomic_kernel(A).launch(grid=1, block=1)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (constant, (np.zeros(4, np.int64),), "x of number_kernel is i128, which launches can't"),
        (number, (np.zeros(4, np.int64), 3), "x is a scalar of type i128, which launches can't"),
        (tensor, (np.zeros((4, 2), np.uint64),), "A is a tensor of u128, of which there are no"),
        (allocated, (), "fx.empty: there are no arrays of i128"),
        (atomic, (np.zeros(4, np.int64),), "fx.atomic_add supports i32, i64, u32, u64"),
    ],
)
def test_what_cannot_be_passed(function, arguments: tuple, said: str) -> None:
    with pytest.raises(FlyError, match=said):
        function(*arguments)
