"""Draws layouts as SVG, in the style of CuTe's figures. Imports no MLIR.

draw("(4,8):(1,4)")                                   offsets
draw("S<3,3,3> o 0 o (64,64):(64,1)", element="f16")  the same, and LDS banks with conflicts
draw(tv_layout, tile=(16, 8))                         the thread and value that hold each element
draw("!fly.tiled_mma<…>")                             the A, B and C of a tiled MMA
"""

from __future__ import annotations

from fly_draw.draw import draw
from fly_draw.svg import Picture

__all__ = ["Picture", "draw"]
