"""`fx.rocdl.cdna3`: gfx90a and gfx942."""

from fly_trace.backends.amd.waits import cdna3_s_waitcnt as s_waitcnt

__all__ = ["s_waitcnt"]
