"""SVG output: boxes, lines and words, and a picture size that fits them all."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

MARGIN = 12
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
# The default style of text and lines, written once for the whole document.
SIZE, ANCHOR, INK, STROKE = 12, "middle", "#111", "#333"


@dataclass(frozen=True)
class Picture:
    """A finished picture. `str` returns the SVG document; notebooks display it."""

    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_svg_(self) -> str:
        return self.text

    def save(self, path: str | Path) -> None:
        """Writes the SVG document to a file."""
        Path(path).write_text(self.text, encoding="utf-8")


@dataclass
class Canvas:
    """The drawing so far. Coordinates are in pixels; x grows to the right and y downwards."""

    elements: list[str] = field(default_factory=list)
    width: float = 0
    height: float = 0

    def rect(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        self._grow(x + width, y + height)
        self.elements.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, weight: float = 1) -> None:
        self._grow(max(x1, x2), max(y1, y2))
        self.elements.append(
            f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{STROKE}" stroke-width="{weight:g}"/>'
        )

    def words(
        self,
        x: float,
        y: float,
        text: str,
        size: float = SIZE,
        anchor: str = ANCHOR,
        fill: str = INK,
        bold: bool = False,
    ) -> None:
        """Draws a line of text, vertically centred on `y`. `anchor` says what part is at `x`."""
        length = 0.61 * size * len(text)
        self._grow(x + {"start": length, "middle": length / 2, "end": 0}[anchor], y + size / 2)
        style = f' font-size="{size:g}"' if size != SIZE else ""
        style += f' text-anchor="{anchor}"' if anchor != ANCHOR else ""
        style += f' fill="{fill}"' if fill != INK else ""
        style += ' font-weight="bold"' if bold else ""
        # `dy` instead of dominant-baseline, which some viewers do not support.
        self.elements.append(
            f'<text x="{x:g}" y="{y:g}" dy=".35em"{style}>{escape(text, quote=False)}</text>'
        )

    def _grow(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def picture(self, title: str) -> Picture:
        """Returns the document. Screen readers read `title`, and browsers show it as a tooltip."""
        width, height = self.width + MARGIN, self.height + MARGIN
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
            f' viewBox="0 0 {width:g} {height:g}" font-family="{FONT}" font-size="{SIZE}"'
            f' text-anchor="{ANCHOR}" fill="{INK}">'
        )
        body = [
            f"<title>{escape(title, quote=False)}</title>",
            f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
            *self.elements,
        ]
        return Picture("\n".join([head, *body, "</svg>"]) + "\n")
