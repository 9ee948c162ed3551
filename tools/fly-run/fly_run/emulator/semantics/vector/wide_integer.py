"""Integers wider than 32 bits: sums with a carry, 64-bit products with a sum, 64-bit shifts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, valu
from fly_run.emulator.semantics.vector.integer import swapped

Body = Callable[..., object]


def operations() -> Iterator[Operation]:
    for name, (types, body) in WIDE.items():
        yield valu(name, types, body)


def _add_carry(k: Lanes, a: Value, b: Value, carry: Value | None = None):
    total = a + b
    over = total.compare("ult", a)
    if carry is None:
        return total, over
    more = total + carry.zext("i32")
    return more, over | more.compare("ult", total)


def _sub_borrow(k: Lanes, a: Value, b: Value, borrow: Value | None = None):
    difference = a - b
    under = a.compare("ult", b)
    if borrow is None:
        return difference, under
    less = difference - borrow.zext("i32")
    return less, under | less.compare("ugt", difference)


def _mad(extension: str) -> Body:
    def run(k: Lanes, a: Value, b: Value, c: Value):
        product = a.convert(extension, "i64") * b.convert(extension, "i64")
        total = product + c
        if extension == "zext":
            return total, total.compare("ult", product)
        return total, ((product ^ total) & (c ^ total)).compare("slt", 0)

    return run


def _shifted(opcode: str) -> Body:
    """64-bit shifts take a 32-bit amount."""
    return lambda k, amount, value: value.binary(opcode, (amount & 63).zext("i64"))


WIDE: dict[str, tuple[str, Body]] = {
    "v_add_co_u32": ("i32, mask = i32, i32", _add_carry),
    "v_sub_co_u32": ("i32, mask = i32, i32", _sub_borrow),
    "v_subrev_co_u32": ("i32, mask = i32, i32", swapped(_sub_borrow)),
    "v_addc_co_u32": ("i32, mask = i32, i32, mask", _add_carry),
    "v_subb_co_u32": ("i32, mask = i32, i32, mask", _sub_borrow),
    "v_subbrev_co_u32": ("i32, mask = i32, i32, mask", swapped(_sub_borrow)),
    "v_lshrrev_b64": ("i64 = i32, i64", _shifted("lshr")),
    "v_ashrrev_i64": ("i64 = i32, i64", _shifted("ashr")),
    "v_mad_u64_u32": ("i64, mask = i32, i32, i64", _mad("zext")),
    "v_mad_i64_i32": ("i64, mask = i32, i32, i64", _mad("sext")),
}
