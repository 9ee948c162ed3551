"""`fx.rocdl`: what AMD's targets have. `cdna3`, `cdna4`, `rdna3`, `rdna4` is what one has."""

from fly_trace.amd_atoms import *  # noqa: F403
from fly_trace.amd_atoms import __all__ as _atoms
from fly_trace.buffers import *  # noqa: F403
from fly_trace.buffers import __all__ as _buffers
from fly_trace.expr.rocdl import cdna3, cdna4, rdna3, rdna4
from fly_trace.scheduling import *  # noqa: F403
from fly_trace.scheduling import __all__ as _scheduling
from fly_trace.target import get_rocm_arch
from fly_trace.waits import s_waitcnt

__all__ = [
    "cdna3",
    "cdna4",
    "get_rocm_arch",
    "rdna3",
    "rdna4",
    "s_waitcnt",
    *_atoms,
    *_buffers,
    *_scheduling,
]
