"""Reads environment variables fast enough to do so at each call of a function."""

from __future__ import annotations

import os
from collections.abc import Callable

# The values of some variables, only for comparison with earlier ones.
Snapshot = tuple[object, ...]


def watcher(*names: str) -> Callable[[], Snapshot]:
    """Returns a function that returns the values of these variables. Its results are equal if and
    only if the variables are.

    `os.environ.get` encodes the name, looks it up and decodes the value, which takes 0.6 µs.
    Looking it up in the underlying mapping, which `os.environ` modifies and never replaces, takes
    0.05 µs. If this Python has no such mapping, the result is the same.
    """
    held = getattr(os.environ, "_data", None)
    encode = getattr(os.environ, "encodekey", None)
    if isinstance(held, dict) and encode is not None:
        get, keys = held.get, tuple(map(encode, names))
    else:
        get, keys = os.environ.get, names
    return lambda: tuple(map(get, keys))
