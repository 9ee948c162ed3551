"""What the library and the Python code that fills its table agree on."""

from __future__ import annotations

import functools
from hashlib import sha256

from fly_run.hip_runtime.prototypes import prototypes

NAME = "libamdhip64.so"
PYTHON = "FLY_HIP_PYTHON"  # the variable that names a Python's shared library
# The library's state: no call yet, the table is filled, that failed, Python has ended.
UNSTARTED, STARTED, FAILED, ENDED = range(4)


@functools.cache
def digest() -> str:
    """Identifies the functions and their places in the table."""
    return sha256(repr(list(prototypes().values())).encode()).hexdigest()[:32]
