"""Pictures of layouts as SVG, in the manner of CuTe's figures. Imports no MLIR.

draw("(4,8):(1,4)")                                   offsets
draw("S<3,3,3> o 0 o (64,64):(64,1)", element="f16")   … and LDS banks with their conflicts
draw(tv_layout, tile=(16, 8))                         who holds what: thread and value
draw("!fly.tiled_mma<…>")                             the A, B and C of a tiled MMA
"""

from __future__ import annotations

from fly_draw.draw import draw
from fly_draw.svg import Picture

__all__ = ["Picture", "draw"]
