"""The matrix of a convolution's patches, and where its elements are in images.

A row holds what a pixel of the output is computed from: along K are the window's rows, its columns
and the channels, the channels fastest. This matrix is never made: threads compute where its
elements are in the image when they load them. What is outside of the image is 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import fly.expr as fx
from fly.kernels.gemm.movers import Mover
from fly.kernels.gemm.plans import Access


class Window(NamedTuple):
    """The window of a convolution: its extents, and along both, how far its positions are apart,
    how many zeros are before the image, and how far its elements are apart. `channels` are those of
    a group."""

    channels: int
    extents: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]

    def outputs(self, image: tuple[Any, Any]) -> tuple[Any, Any]:
        """The rows and columns of the output, of an image's."""
        height, width = [
            (image[i] + 2 * self.padding[i] - self.dilation[i] * (self.extents[i] - 1) - 1)
            // self.stride[i]
            + 1
            for i in range(2)
        ]
        return height, width


class Patches(NamedTuple):
    """The rows of A from `row` on: those of pixels of `X`, an array of batch, channels, rows and
    columns, of which a group's begin at channel `channel`."""

    X: Any
    window: Window
    row: Any
    rows: Any
    channel: Any

    def operand(self, access: Access, lds: Any) -> PatchTiles:
        return PatchTiles(self, access, lds)


class PatchTiles:
    """The tiles of patches; see `fly.kernels.gemm.tiles.Operand`."""

    def __init__(self, part: Patches, access: Access, lds: Any):
        X, window = part.X, part.window
        self.part, self.mover = part, Mover(X.dtype, access, lds)
        self.width = fx.size(lds.shape[1])
        first = fx.get_iter(X) + fx.Int64(part.channel) * X.stride[1]
        self.source = self.mover.source(first)
        places = self.mover.places
        # Of each access: the offset of the window's start, and its row and column in the image.
        distance = self.mover.distance
        self.steps = [distance(step) for step in X.stride.unpack()]
        self.starts = fx.make_fragment_like(places, distance)
        self.tops, self.lefts = [fx.make_fragment_like(places, fx.Int32) for _ in range(2)]
        # What is not negative is divided with fewer instructions.
        height, width = map(fx.Uint32, window.outputs((X.shape[2], X.shape[3])))
        for i in fx.range_constexpr(fx.size(places)):
            pixel, _ = places[i].unpack()
            pixel = fx.Uint32(fx.min(part.row + fx.Int32(pixel), part.rows - 1))
            line, column = divmod(pixel, width)
            image, line = divmod(line, height)
            self.tops[i] = fx.Int32(line) * window.stride[0] - window.padding[0]
            self.lefts[i] = fx.Int32(column) * window.stride[1] - window.padding[1]
            self.starts[i] = distance(image) * self.steps[0] + self._offset(
                0, self.tops[i], self.lefts[i]
            )

    def _offset(self, channel: Any, line: Any, column: Any) -> Any:
        place = zip(self.steps[1:], (channel, line, column), strict=True)
        return sum(step * self.mover.distance(one) for step, one in place)

    def load(self, step: Any, whole: bool) -> None:
        """Starts to load a tile."""
        X, window, places = self.part.X, self.part.window, self.mover.places
        offsets = fx.make_fragment_like(self.starts)
        inside = fx.make_fragment_like(places, fx.Boolean)
        for i in fx.range_constexpr(fx.size(places)):
            _, k = places[i].unpack()
            element, channel = divmod(fx.Uint32(step * self.width + k), window.channels)
            down, right = map(fx.Int32, divmod(element, window.extents[1]))
            line, column = down * window.dilation[0], right * window.dilation[1]
            # As unsigned numbers, those before the image are beyond it.
            inside[i] = (
                (down < window.extents[0])
                & ((self.tops[i] + line).bitcast(fx.Uint32) < X.shape[2].bitcast(fx.Uint32))
                & ((self.lefts[i] + column).bitcast(fx.Uint32) < X.shape[3].bitcast(fx.Uint32))
            )
            offsets[i] = self.starts[i] + self._offset(channel, line, column)
        self.mover.load(self.source, 0, offsets, inside)
