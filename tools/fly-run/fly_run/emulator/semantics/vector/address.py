"""64-bit moves, shifts and sums on pairs of registers, for address arithmetic.

Every kernel uses them, so they work on the low and high rows directly: 64-bit lanes would need
shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, valu

Body = Callable[..., object]


def operations() -> Iterator[Operation]:
    for name, (types, body) in SPLIT.items():
        yield valu(name, types, body, split=True)


Pair = tuple[Value, Value]


def _shift_left_pair(k: Lanes, amount: Value, value: Pair) -> Pair:
    low, high = value
    step = amount & 31
    beyond = (amount & 32).compare("ne", 0)
    moved = low << step
    joined = k.handler.intrinsic("llvm.fshl", high, low, step)
    return beyond.select(0, moved), beyond.select(moved, joined)


def _shift_add_pair(k: Lanes, a: Pair, amount: Value, c: Pair) -> Pair:
    step = amount & 7
    low = a[0] << step
    high = k.handler.intrinsic("llvm.fshl", a[1], a[0], step)
    total = low + c[0]
    carry = total.compare("ult", low).zext("i32")
    return total, high + c[1] + carry


SPLIT: dict[str, tuple[str, Body]] = {
    "v_mov_b64": ("i64 = i64", lambda k, a: a),
    "v_lshlrev_b64": ("i64 = i32, i64", _shift_left_pair),
    "v_lshl_add_u64": ("i64 = i64, i32, i64", _shift_add_pair),
}
