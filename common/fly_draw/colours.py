"""Cell colours. All are light enough for black text."""

from __future__ import annotations

from collections.abc import Iterable
from colorsys import hls_to_rgb

# Eight hues that colour-blind readers can distinguish (after Okabe and Ito, lightened).
HUES = ("#f6c9a8", "#b7dcf5", "#a8e0c8", "#f7efa0", "#b3c7ea", "#f3b8a5", "#e8c4dc", "#d9d9d9")
EMPTY = "#ffffff"
_FIRST, _LAST = (0xF7, 0xFB, 0xFF), (0x7F, 0xB2, 0xDE)


def hue(number: int) -> str:
    """Returns one of eight colours, for unordered things: threads, values."""
    return HUES[number % len(HUES)]


def shade(share: float) -> str:
    """Returns a colour from white to blue for 0 … 1, for ordered things: offsets."""
    return _hex(a + (b - a) * share for a, b in zip(_FIRST, _LAST, strict=True))


def wheel(number: int, count: int) -> str:
    """Returns the colour `number` of `count` on the colour wheel, for cyclic things: banks."""
    return _hex(255 * part for part in hls_to_rgb(number % count / count, 0.82, 0.7))


def _hex(parts: Iterable[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in parts)
