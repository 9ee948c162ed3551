"""`flydsl.expr.rocdl.rdna3`."""

from fly_trace.backends.amd.rocdl.rdna3 import *  # noqa: F403
