"""Where this project keeps things of its own on a user's machine."""

from __future__ import annotations

import os
import sys


def cache_dir() -> str:
    """The folder of the content store, the handler library and kept inputs.

    `FLY_CACHE_DIR` if set, else the platform's cache folder (`~/.cache/fly` on Linux). It is not
    created here.
    """
    if chosen := os.environ.get("FLY_CACHE_DIR"):
        return chosen
    if sys.platform == "linux":
        # What platformdirs says here, without the 20 ms that importing it takes.
        base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
        return os.path.join(base, "fly")
    from platformdirs import user_cache_path

    return str(user_cache_path("fly", appauthor=False))
