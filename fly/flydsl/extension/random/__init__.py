"""`fx.random`: random numbers as a function of a seed and an offset, by Philox.

`fx.random.universal` has the forms for any target.
"""

from __future__ import annotations

from fly.flydsl.extension._dispatch import Dispatcher
from fly.flydsl.extension.random import universal as universal
from fly.flydsl.extension.random.universal import *  # noqa: F403

__all__ = list(universal.__all__)

_dispatch = Dispatcher(__name__, targets={"rocm": "rocdl"})
__getattr__ = _dispatch.load_target
_dispatch.dispatch_all(globals(), __all__)
