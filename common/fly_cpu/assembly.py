"""Inline assembly in PTX that has a meaning on the host: what fly-opt-py and libdevice write.

PTX as such can't run here. These texts are known, and each stands for a few operations of LLVM IR.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fly_cpu.text import take_type

_UPDATES = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}
_TYPES = {"f32": "float", "f64": "double"}


class Update(NamedTuple):
    """An atomic update: `operation` in LLVM's words, the operands with their types."""

    operation: str
    pointer: str
    value: str


def update(asm: str, operands: Sequence[str]) -> Update | None:
    """The atomic update for the scope of the system that a text stands for."""
    match = re.fullmatch(
        r"atom\.relaxed\.sys(?:\.\w+)?\.(\w+)\.([usbf])(\d+) \$0, \[\$1\], \$2;", asm
    )
    if match is None:
        return None
    name, letter, _ = match.groups()
    operation = _UPDATES.get(name, name)
    if letter == "f":
        operation = f"f{name}"
    elif letter == "u" and name in ("min", "max"):
        operation = f"u{name}"
    return Update(operation, *operands)


def lines(asm: str, result: str, operands: Sequence[str], prefix: str) -> list[str] | None:
    """The lines that compute `result` (a value's name) from operands with their types; None for a
    text that is not known. New values begin with `prefix`."""
    text = " ".join(asm.replace("\\0A", " ").replace("\\09", " ").split())
    values = [take_type(one)[1] for one in operands]
    for pattern, maker in _KNOWN:
        if match := re.fullmatch(pattern, text):
            return maker(match, result, values, prefix)
    return None


_Maker = Callable[[re.Match[str], str, list[str], str], list[str]]


def _reciprocal(match: re.Match[str], result: str, values: list[str], prefix: str) -> list[str]:
    return [f"{result} = call float @fly.nvvm.rcp.approx.ftz.f(float {values[0]})"]


def _root(match: re.Match[str], result: str, values: list[str], prefix: str) -> list[str]:
    return [f"{result} = call double @fly.nvvm.rsqrt.approx.ftz.d(double {values[0]})"]


def _difference(match: re.Match[str], result: str, values: list[str], prefix: str) -> list[str]:
    kind = _TYPES[match[2]]
    if not match[1]:
        return [f"{result} = fsub {kind} {values[0]}, {values[1]}"]
    return [
        f"{prefix}n = fneg {kind} {values[1]}",
        f"{result} = call {kind} @fly.nvvm.add.rn.ftz.f({kind} {values[0]}, {kind} {prefix}n)",
    ]


def _selection(match: re.Match[str], result: str, values: list[str], prefix: str) -> list[str]:
    a, b, c, d = values
    return [
        f"{prefix}p = fcmp ueq double {a}, {b}",
        f"{result} = select i1 {prefix}p, double {c}, double {d}",
    ]


def _highest(match: re.Match[str], result: str, values: list[str], prefix: str) -> list[str]:
    """The shift that brings the highest bit to bit 31; all ones for 0."""
    return [
        f"{prefix}z = call i32 @llvm.ctlz.i32(i32 {values[0]}, i1 false)",
        f"{prefix}n = icmp eq i32 {values[0]}, 0",
        f"{result} = select i1 {prefix}n, i32 -1, i32 {prefix}z",
    ]


def _wide(operation: str) -> _Maker:
    """Arithmetic of 128 bits, on halves of 64."""

    def make(match: re.Match[str], result: str, values: list[str], prefix: str) -> list[str]:
        made, count = [], 0

        def add(text: str) -> str:
            nonlocal count
            count += 1
            made.append(f"{prefix}w{count} = {text}")
            return f"{prefix}w{count}"

        wide = [add(f"zext i64 {value} to i128") for value in values]
        if operation in ("add", "sub"):
            pairs = []
            for low, high in (wide[:2], wide[2:]):
                up = add(f"shl i128 {high}, 64")
                pairs.append(add(f"or i128 {up}, {low}"))
            total = add(f"{operation} i128 {pairs[0]}, {pairs[1]}")
        else:
            total = add(f"mul i128 {wide[0]}, {wide[1]}")
            if operation == "mad":
                total = add(f"add i128 {total}, {wide[2]}")
        low = add(f"trunc i128 {total} to i64")
        up = add(f"lshr i128 {total}, 64")
        high = add(f"trunc i128 {up} to i64")
        pair = add(f"insertvalue {{ i64, i64 }} poison, i64 {low}, 0")
        return [*made, f"{result} = insertvalue {{ i64, i64 }} {pair}, i64 {high}, 1"]

    return make


_KNOWN: tuple[tuple[str, _Maker], ...] = (
    (r"rcp\.approx\.ftz\.f32 \$0,\$1;", _reciprocal),
    (r"rsqrt\.approx\.ftz\.f64 \$0, \$1;", _root),
    (r"sub\.rn\.(ftz\.)?(f32|f64) \$0, \$1, \$2;", _difference),
    (
        r"\{ \.reg \.pred (\S+); setp\.equ\.f64 \1, \$1, \$2; selp\.f64 \$0, \$3, \$4, \1;\}",
        _selection,
    ),
    (r"bfind\.shiftamt\.u32 \$0, \$1;", _highest),
    (r"\{ \.reg \.u32 r0, [^;]*b3; mov.*? add\.cc\.u32 .*\}", _wide("add")),
    (r"\{ \.reg \.u32 r0, [^;]*b3; mov.*? sub\.cc\.u32 .*\}", _wide("sub")),
    (r"\{ \.reg \.u32 r0, [^;]*chi; mov.*? mad\.lo\.cc\.u32 .*\}", _wide("mad")),
    (r"\{ \.reg \.u32 r0, [^;]*bhi; mov.*? mul\.lo\.u32 .*\}", _wide("mul")),
)
# Functions of `intrinsics` that the lines above call.
CALLED = ("rcp.approx.ftz.f", "rsqrt.approx.ftz.d", "add.rn.ftz.f")
