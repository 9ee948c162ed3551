"""How an algorithm works, as members of an enum."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any


def policies(name: str, members: Sequence[str], module: str) -> Any:
    """An enum of policies, with FlyDSL's two spellings: WARP_SCANS and WarpScans."""
    found = [(one, one.lower()) for one in members]
    found += [(one.title().replace("_", ""), one.lower()) for one in members]
    return enum.Enum(name, found, module=module)
