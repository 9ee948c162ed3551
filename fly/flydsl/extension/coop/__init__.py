"""`fx.coop`: reductions, scans, exchanges and sorts of a wave's lanes and of a block's threads.

`fx.coop.universal` has the forms for any target; the others use a target's own moves of lanes.
"""

from fly.flydsl.extension.coop import block as block
from fly.flydsl.extension.coop import universal as universal
from fly.flydsl.extension.coop import warp as warp
from fly.flydsl.extension.coop.block import *  # noqa: F403
from fly.flydsl.extension.coop.warp import *  # noqa: F403

__all__ = [*warp.__all__, *block.__all__]
