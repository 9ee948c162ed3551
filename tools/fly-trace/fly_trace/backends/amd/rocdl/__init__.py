"""`fx.rocdl`: features of AMD's targets. `cdna3`, `cdna4`, `rdna3`, `rdna4` are specific to one."""

from fly_trace.backends.amd.arch import get_rocm_arch
from fly_trace.backends.amd.atoms import *  # noqa: F403
from fly_trace.backends.amd.atoms import __all__ as _atoms
from fly_trace.backends.amd.buffers import *  # noqa: F403
from fly_trace.backends.amd.buffers import __all__ as _buffers
from fly_trace.backends.amd.rocdl import cdna3, cdna4, cdna5, rdna3, rdna4
from fly_trace.backends.amd.scheduling import *  # noqa: F403
from fly_trace.backends.amd.scheduling import __all__ as _scheduling
from fly_trace.backends.amd.waits import s_waitcnt

__all__ = [
    "cdna3",
    "cdna4",
    "cdna5",
    "get_rocm_arch",
    "rdna3",
    "rdna4",
    "s_waitcnt",
    *_atoms,
    *_buffers,
    *_scheduling,
]
