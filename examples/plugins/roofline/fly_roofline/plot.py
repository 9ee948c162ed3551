"""The plot: FLOPs per second over FLOPs per byte, both logarithmic, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_roofline.peaks import Peaks
    from fly_roofline.summary import Bound

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 440, 70, 40, 20, 50
_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")


class _Axes:
    """Maps decades to pixels."""

    def __init__(self, x: tuple[int, int], y: tuple[int, int]):
        self.x, self.y = x, y

    def at(self, intensity: float, rate: float) -> tuple[float, float]:
        (x0, x1), (y0, y1) = self.x, self.y
        across = (math.log10(intensity) - x0) / (x1 - x0)
        up = (math.log10(rate) - y0) / (y1 - y0)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )


def svg(
    target: str, peak: Peaks, bounds: Mapping[str, Bound], measured: Mapping[str, float]
) -> str:
    """Draws the roofs of a chip, and kernels by their FLOPs per byte: a circle at the bound, a dot
    at the rate that was measured. Kernels without FLOPs are named below."""
    roofs = [("vector", peak.vector), ("matrix", peak.matrix)]
    roofs = [(name, rate) for name, rate in roofs if rate and peak.bandwidth]
    points = {name: one for name, one in bounds.items() if one.intensity and one.seconds}
    xs = [one.intensity for one in points.values()]
    xs += [rate / peak.bandwidth for _, rate in roofs]
    rates = [one.totals.flops / (one.seconds or 1.0) for one in points.values()]
    ys = [*rates, *measured.values(), *(rate for _, rate in roofs)]
    axes = _Axes(_decades(xs), _decades([one for one in ys if one]))
    title = f"{target} ({peak.product})" if peak.product else target
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        f' viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 22, f"Roofline of {title}", "middle", 15),
        *_grid(axes),
    ]
    for name, rate in roofs:
        knee = rate / peak.bandwidth
        low, high = 10.0 ** axes.x[0], 10.0 ** axes.x[1]
        lowest = max(low, 10.0 ** axes.y[0] / peak.bandwidth)
        line = [axes.at(lowest, lowest * peak.bandwidth), axes.at(knee, rate), axes.at(high, rate)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="#444" stroke-width="2"/>')
        x, y = line[-1]
        parts.append(_text(x - 4, y - 6, f"{name}: {rate / 1e12:g} TFLOP/s", "end"))
    for number, (name, one) in enumerate(points.items()):
        color = _COLORS[number % len(_COLORS)]
        x, y = axes.at(one.intensity, one.totals.flops / (one.seconds or 1.0))
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="none" stroke="{color}"'
            f' stroke-width="2"/>'
        )
        parts.append(_text(x + 8, y + 14, name, "start", color=color))
        if measured.get(name):
            x, y = axes.at(one.intensity, measured[name])
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>')
    rest = [name for name in bounds if name not in points]
    if rest:
        note = f"without FLOPs or without a bound: {', '.join(rest)}"
        parts.append(_text(LEFT, HEIGHT - 6, note, "start", 10))
    return "\n".join([*parts, "</svg>", ""])


def _decades(values: list[float]) -> tuple[int, int]:
    """The decades around some values, at least two."""
    if not values:
        return (0, 2)
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return (low - 1, max(high, low) + 1)


def _grid(axes: _Axes) -> list[str]:
    parts = []
    for decade in range(axes.x[0], axes.x[1] + 1):
        x, _ = axes.at(10.0**decade, 10.0 ** axes.y[0])
        parts.append(_line(x, TOP, x, HEIGHT - BOTTOM))
        parts.append(_text(x, HEIGHT - BOTTOM + 16, f"{10.0**decade:g}", "middle"))
    for decade in range(axes.y[0], axes.y[1] + 1):
        _, y = axes.at(10.0 ** axes.x[0], 10.0**decade)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y))
        parts.append(_text(LEFT - 6, y + 4, _scaled(decade), "end"))
    parts.append(_text(WIDTH / 2, HEIGHT - 18, "FLOPs per byte", "middle"))
    parts.append(_text(LEFT, TOP - 8, "FLOP/s", "end"))
    return parts


def _scaled(decade: int) -> str:
    for prefix, size in (("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3)):
        if decade >= size:
            return f"{10 ** (decade - size)} {prefix}"
    return f"{10.0**decade:g}"


def _line(x0: float, y0: float, x1: float, y1: float) -> str:
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str, size: int = 12, color: str = "black") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' fill="{color}">{escape(text)}</text>'
    )
