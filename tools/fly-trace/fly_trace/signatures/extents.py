"""Extents and strides of a tensor's type, and their syntax: 128, N, ?, N{i32 div=4}."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from fly_common.quoting import quoted
from fly_common.record import record
from fly_dialect.layouts.integers import Int

__all__ = ["sym_int32", "sym_int64"]


@record
class Symbol:
    """An extent that several parameters share, and what is known of it in this place."""

    name: str
    leaf: Int


# A number, or what is known of a dynamic one (None: nothing; it has 64 bits).
Step: TypeAlias = int | Int | None
# Or a symbol, represented by its name if nothing else is known.
Extent: TypeAlias = Step | str | Symbol

_UNKNOWN = Int(None, 64)
_DYNAMIC = re.compile(r"(\?|[^\W\d]\w*)\s*(?:\{\s*(i32|i64)?\s*(?:div\s*=\s*([1-9]\d*))?\s*\})?")


def sym_int32(name: str | None = None, divisibility: int = 1) -> Extent:
    """A parameter's extent that fits 32 bits and is a multiple of `divisibility`. Parameters with
    the same name share it; with None, it is independent. Launches check it."""
    return _extent(name, Int(None, 32, divisibility))


def sym_int64(name: str | None = None, divisibility: int = 1) -> Extent:
    """The same with 64 bits: `sym_int64("N")` is "N"."""
    return _extent(name, Int(None, 64, divisibility))


def _extent(name: str | None, leaf: Int) -> Extent:
    if name is None:
        return None if leaf == _UNKNOWN else leaf
    if not name.isidentifier():
        raise ValueError(f"a symbol must be a name, not {quoted(name)}")
    return name if leaf == _UNKNOWN else Symbol(name, leaf)


def parse_extent(text: str) -> Extent:
    """Parses an extent or a stride. Raises ValueError for other text."""
    text = text.strip()
    if text.isdecimal():
        return int(text)
    found = _DYNAMIC.fullmatch(text)
    if found is None:
        raise ValueError(f"`{text}` is neither a number nor a symbol")
    leaf = Int(None, 32 if found[2] == "i32" else 64, int(found[3] or 1))
    return _extent(None if found[1] == "?" else found[1], leaf)


def leaf_of(extent: Extent) -> Int:
    """The extent as a leaf of a layout."""
    if isinstance(extent, int):
        return Int(extent)
    if isinstance(extent, Symbol):
        return extent.leaf
    return extent if isinstance(extent, Int) else _UNKNOWN


def symbol_of(extent: Extent) -> str | None:
    """The symbol's name, or None if it is not a symbol."""
    if isinstance(extent, Symbol):
        return extent.name
    return extent if isinstance(extent, str) else None


def extent_text(extent: Extent) -> str:
    """The text that `parse_extent` parses."""
    if isinstance(extent, int):
        return str(extent)
    known = leaf_of(extent)
    notes = ["i32"] if known.width == 32 else []
    if known.divisibility > 1:
        notes.append(f"div={known.divisibility}")
    return (symbol_of(extent) or "?") + (f"{{{' '.join(notes)}}}" if notes else "")


def tensor_text(
    dtype: str, shape: tuple[Extent, ...], strides: tuple[Step, ...] | None, align: int | None
) -> str:
    """A tensor's type as `--sig` has it."""
    inside = ",".join(map(extent_text, shape))
    if strides is not None:
        inside = f"{inside}:{','.join(map(extent_text, strides))}"
    return f"{dtype}[{inside}]" + (f"{{align={align}}}" if align else "")


def admits(wanted: Extent, found: Any) -> bool:
    """Whether a mode of a layout's shape is known to match `wanted`."""
    if isinstance(wanted, int):
        return found == Int(wanted)
    known = leaf_of(wanted)
    if not isinstance(found, Int):  # a nested mode
        return known == _UNKNOWN
    return found.width <= known.width and found.factor % known.divisibility == 0
