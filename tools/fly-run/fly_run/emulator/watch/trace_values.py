"""Formats the registers that an instruction wrote, and their values."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from fly_run.emulator.isa.instruction import SPECIAL_SCALARS, Register

if TYPE_CHECKING:
    import numpy as np

    from fly_run.emulator.watch.observe import WaveView

SHOWN = 6  # values, or runs of them, before an ellipsis
SMALL = 9999  # integers up to here are decimal
_TYPE = re.compile(r"_(bf16|[fiub](?:8|16|32|64))(?=_|$)")
_NAMES = {number: name for name, number in SPECIAL_SCALARS.items() if name[-3:] in ("_lo", "_hi")}
_NAMES[SPECIAL_SCALARS["m0"]] = "m0"
_PAIRS = {106: "vcc", 126: "exec", 102: "flat_scratch", 104: "xnack_mask"}


@dataclass(frozen=True)
class Scalar:
    """Scalar registers, with the assembler's `name`."""

    name: str
    words: tuple[int, ...]

    def bits(self, lanes: Sequence[int]) -> int:
        """Returns them as one number, the first register as its low dword."""
        return sum(word << 32 * n for n, word in enumerate(self.words))

    def text(self, mnemonic: str, lanes: Sequence[int]) -> str:
        if len(self.words) <= 2:
            return f"{self.name}={_integer(self.bits(lanes))}"
        return f"{self.name}=" + " ".join(map(_integer, self.words))


@dataclass(frozen=True)
class Vector:
    """A vector register, or the pair that holds a 64-bit result: `rows` of all lanes."""

    name: str
    rows: tuple[np.ndarray, ...]

    def bits(self, lanes: Sequence[int]) -> list[int]:
        return [sum(int(row[lane]) << 32 * n for n, row in enumerate(self.rows)) for lane in lanes]

    def text(self, mnemonic: str, lanes: Sequence[int]) -> str:
        kind = _kind(mnemonic, len(self.rows))
        bits = self.bits(lanes)
        if kind is None and bits and all(map(_ordinary_float, bits)) and any(bits):
            return f"{self.name}={compact([_float(n) for n in bits])} (f32?)"
        show = _SHOW.get(kind or "b32", _integer)
        numbers = bits if show is _integer else None
        return f"{self.name}={compact([show(n) for n in bits], numbers)}"


def written(
    wave: WaveView, result: Register | None, sgprs: np.ndarray, vgprs: np.ndarray, scc: int
) -> list[Scalar | Vector]:
    """Returns what an instruction wrote: its result, and registers whose values have changed."""
    scalars = {int(n) for n in (wave.sgprs != sgprs).nonzero()[0]}
    rows = {int(n) for n in (wave.vgprs != vgprs).any(axis=1).nonzero()[0]}
    found: list[Scalar | Vector] = []
    if result is not None and result.bank == "s":
        numbers = range(result.index, result.index + result.count)
        found.append(_scalar(wave, numbers))
        scalars -= set(numbers)
    elif result is not None:
        base = wave.launch.allocation.accumulation_base if result.bank == "a" else 0
        numbers = range(base + result.index, base + result.index + result.count)
        if result.count == 2:
            found.append(_vector(wave, numbers))
        else:
            found += [_vector(wave, range(n, n + 1)) for n in numbers]
        rows -= set(numbers)
    for number in sorted(scalars):
        pair = number & ~1
        if pair in _PAIRS:
            if number == pair or pair not in scalars:
                found.append(_scalar(wave, range(pair, pair + 2)))
        else:
            found.append(_scalar(wave, range(number, number + 1)))
    found += [_vector(wave, range(n, n + 1)) for n in sorted(rows)]
    if wave.scc != scc:
        found.append(Scalar("scc", (wave.scc,)))
    return found


def _scalar(wave: WaveView, numbers: range) -> Scalar:
    first = numbers.start
    if len(numbers) == 2 and first in _PAIRS:
        name = _PAIRS[first]
    elif len(numbers) == 1:
        name = _NAMES.get(first, f"s{first}")
    else:
        name = f"s[{first}:{numbers.stop - 1}]"
    return Scalar(name, tuple(int(wave.sgprs[n]) for n in numbers))


def _vector(wave: WaveView, numbers: range) -> Vector:
    allocation = wave.launch.allocation
    first, bank = numbers.start, "v"
    if allocation.accumulation and first >= allocation.accumulation_base:
        first, bank = first - allocation.accumulation_base, "a"
    name = f"{bank}{first}" if len(numbers) == 1 else f"{bank}[{first}:{first + len(numbers) - 1}]"
    return Vector(name, tuple(wave.vgprs[n].copy() for n in numbers))


def _kind(mnemonic: str, rows: int) -> str | None:
    """Returns the type of a result by its mnemonic; None if that only tells its width."""
    found = _TYPE.search(mnemonic)
    kind = found[1] if found and mnemonic.startswith("v_") and "_pk_" not in mnemonic else None
    if kind in (None, "b32", "b64"):
        return None if rows == 1 else "b64"
    return kind


def _integer(bits: int) -> str:
    return str(bits) if bits <= SMALL else f"0x{bits:x}"


def _signed(width: int) -> Callable[[int], str]:
    def show(bits: int) -> str:
        bits &= (1 << width) - 1
        return str(bits - (bits >> (width - 1) << width))

    return show


def _real(code: str, width: int) -> Callable[[int], str]:
    def show(bits: int) -> str:
        data = (bits & (1 << width) - 1).to_bytes(width // 8, "little")
        text = f"{struct.unpack(code, data)[0]:.6g}"
        return f"{text}.0" if text.lstrip("-").isdecimal() else text

    return show


_float = _real("<f", 32)
_SHOW: dict[str, Callable[[int], str]] = {
    "f16": _real("<e", 16),
    "f32": _float,
    "f64": _real("<d", 64),
    "bf16": lambda bits: _float((bits & 0xFFFF) << 16),
    "i16": _signed(16),
    "i32": _signed(32),
    "i64": _signed(64),
}


def _ordinary_float(bits: int) -> bool:
    """Whether 32 bits look like a float of a typical magnitude: 0, or from 2^-20 to 2^24."""
    exponent = (bits >> 23 & 0xFF) - 127
    return bits == 0 or -20 <= exponent < 24


def compact(values: list[str], numbers: list[int] | None = None) -> str:
    """Formats values in order: runs of equal ones as `x ×n`, integers (`numbers`) in equal steps as
    `0 1 2 … 63`, and long lists with an ellipsis."""
    if not values:
        return "-"
    if numbers is not None and len(numbers) > 4:
        step = numbers[1] - numbers[0]
        if step and all(b - a == step for a, b in pairwise(numbers)):
            return " ".join([*values[:3], "…", values[-1]])
    runs: list[tuple[str, int]] = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1] = value, runs[-1][1] + 1
        else:
            runs.append((value, 1))
    told = [value if count == 1 else f"{value} ×{count}" for value, count in runs]
    return " ".join(told[:SHOWN]) + (" …" if len(told) > SHOWN else "")


def ranges(lanes: Sequence[int]) -> str:
    """Formats lanes as `0-7,9`; `-` for none."""
    parts: list[tuple[int, int]] = []
    for lane in lanes:
        if parts and parts[-1][1] == lane - 1:
            parts[-1] = parts[-1][0], lane
        else:
            parts.append((lane, lane))
    told = [str(a) if a == b else f"{a}-{b}" for a, b in parts]
    return ",".join(told[:SHOWN]) + (",…" if len(told) > SHOWN else "") if told else "-"
