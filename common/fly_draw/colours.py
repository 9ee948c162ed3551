"""Colours of cells. All are light, so that black text on them can be read."""

from __future__ import annotations

from collections.abc import Iterable
from colorsys import hls_to_rgb

# Eight hues that stay apart for colour-blind readers (after Okabe and Ito, lightened).
HUES = ("#f6c9a8", "#b7dcf5", "#a8e0c8", "#f7efa0", "#b3c7ea", "#f3b8a5", "#e8c4dc", "#d9d9d9")
EMPTY = "#ffffff"
_FIRST, _LAST = (0xF7, 0xFB, 0xFF), (0x7F, 0xB2, 0xDE)


def hue(number: int) -> str:
    """One of eight colours, for things that are only told apart: threads, values."""
    return HUES[number % len(HUES)]


def shade(share: float) -> str:
    """White to blue for 0 … 1, for things that have an order: offsets."""
    return _hex(a + (b - a) * share for a, b in zip(_FIRST, _LAST, strict=True))


def wheel(number: int, count: int) -> str:
    """The colour `number` of `count` around the wheel, for things that wrap around: banks."""
    return _hex(255 * part for part in hls_to_rgb(number % count / count, 0.82, 0.7))


def _hex(parts: Iterable[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in parts)
