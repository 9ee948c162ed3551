"""Operations on the bytes of a dword: selection, alignment, sums of differences, means."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, valu
from fly_run.emulator.semantics.memory.transfer import SHORTCUT
from fly_run.emulator.semantics.vector.integer import maximum, minimum

Body = Callable[..., object]


def operations() -> Iterator[Operation]:
    for name, (types, body) in BYTES.items():
        yield valu(name, types, body)


def _align(shift: int) -> Body:
    """Returns the low dword of the two sources, shifted right by the third (in bits or bytes)."""

    def run(k: Lanes, a: Value, b: Value, amount: Value) -> Value:
        amount = (amount & 31) if shift == 1 else (amount & 3) * 8
        return k.handler.intrinsic("llvm.fshr", a, b, amount)

    return run


def _permute(k: Lanes, a: Value, b: Value, selector: Value) -> Value:
    """v_perm_b32: each selector byte selects a byte of {a, b}, a sign, 0x00 or 0xff. Most selectors
    are the same for all lanes and select bytes."""
    f = k.handler
    if f.kind[2] != "s":
        return _permute_any(a, b, selector)
    scalar = f.value("i32", 0, f"extractelement {selector.type} {selector.name}, i32 0")
    # No byte is 8 or above.
    plain = (scalar & 0xF8F8F8F8).compare("eq", 0)
    return f.choose(
        plain,
        lambda: _permute_bytes(a, b, scalar),
        lambda: _permute_any(a, b, selector),
        SHORTCUT,
    )


def _permute_bytes(a: Value, b: Value, selector: Value) -> Value:
    """Each byte of the scalar selector is below 8 and selects a byte of {a, b}."""
    result = None
    for byte in range(4):
        pick = selector.lshr(8 * byte)
        source = (pick & 4).compare("ne", 0).select(a, b)
        moved = source.lshr(((pick & 3) * 8).splat(a.lanes)) & 0xFF
        part = moved << (8 * byte)
        result = part if result is None else result | part
    assert result is not None
    return result


def _permute_any(a: Value, b: Value, selector: Value) -> Value:
    result = None
    for byte in range(4):
        pick = selector.lshr(8 * byte) & 0xFF
        source = (pick & 4).compare("ne", 0).select(a, b)
        plain = source.lshr((pick & 3) * 8) & 0xFF
        # 8 to 11: the sign of bytes 1, 3, 5, 7 of {a, b}
        wide = (pick & 2).compare("ne", 0).select(a, b)
        half = (pick & 1).compare("ne", 0).select(wide, wide << 16)
        sign = half.ashr(31) & 0xFF
        value = pick.compare("ult", 8).select(plain, sign)
        value = pick.compare("eq", 12).select(0, value)
        value = pick.compare("ugt", 12).select(0xFF, value)
        part = value << (8 * byte)
        result = part if result is None else result | part
    assert result is not None
    return result


def sum_of_differences(width: int, shift: int = 0, masked: bool = False) -> Body:
    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        total = None
        for start in range(0, 32, width):
            keep = (1 << width) - 1
            x, y = a.lshr(start) & keep, b.lshr(start) & keep
            part = x.compare("ugt", y).select(x - y, y - x)
            if masked:  # bytes whose reference is 0 do not count
                part = y.compare("eq", 0).select(0, part)
            total = part if total is None else total + part
        assert total is not None
        return c + (total << shift)

    return run


def _lerp(k: Lanes, a: Value, b: Value, c: Value) -> Value:
    result = None
    for start in range(0, 32, 8):
        x, y = a.lshr(start) & 0xFF, b.lshr(start) & 0xFF
        part = (x + y + (c.lshr(start) & 1)).lshr(1) << start
        result = part if result is None else result | part
    assert result is not None
    return result


def _saturate8(value: Value) -> Value:
    return maximum("s")(minimum("s")(value, value.like(255)), value.like(0))


BYTES: dict[str, tuple[str, Body]] = {
    "v_sat_pk_u8_i16": (
        "i16 = i32",
        lambda k, a: (_saturate8(a.trunc("i16").sext("i32")) | (_saturate8(a.ashr(16)) << 8)).trunc(
            "i16"
        ),
    ),
    "v_alignbit_b32": ("i32 = i32, i32, i32", _align(1)),
    "v_alignbyte_b32": ("i32 = i32, i32, i32", _align(8)),
    "v_perm_b32": ("i32 = i32, i32, i32", _permute),
    "v_sad_u8": ("i32 = i32, i32, i32", sum_of_differences(8)),
    "v_sad_hi_u8": ("i32 = i32, i32, i32", sum_of_differences(8, shift=16)),
    "v_sad_u16": ("i32 = i32, i32, i32", sum_of_differences(16)),
    "v_sad_u32": ("i32 = i32, i32, i32", sum_of_differences(32)),
    "v_msad_u8": ("i32 = i32, i32, i32", sum_of_differences(8, masked=True)),
    "v_lerp_u8": ("i32 = i32, i32, i32", _lerp),
}
