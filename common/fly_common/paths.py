"""Where this project keeps things of its own on a user's machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_dir() -> Path:
    """The folder of the content store, the handler library and kept inputs.

    `FLY_CACHE_DIR` if set, else the platform's cache folder (`~/.cache/fly` on Linux). It is not
    created here.
    """
    if chosen := os.environ.get("FLY_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "linux":
        # What platformdirs says here, without the 20 ms that importing it takes.
        base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
        return Path(base, "fly")
    from platformdirs import user_cache_path

    return user_cache_path("fly", appauthor=False)
