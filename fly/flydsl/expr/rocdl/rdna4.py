"""`flydsl.expr.rocdl.rdna4`."""

from fly_trace.backends.amd.rocdl.rdna4 import *  # noqa: F403
