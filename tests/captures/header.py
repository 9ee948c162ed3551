"""Parses arrays of numbers in a C++ header."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

ARRAY = re.compile(r"(k\w+)(?:\[\d*\])* = (\{.*?\});", re.DOTALL)


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Returns uint32[count] by the array's name: its hexadecimal numbers in textual order."""
    found = {
        name: np.array([int(number, 16) for number in re.findall(r"0x[0-9a-f]+", body)], "u4")
        for name, body in ARRAY.findall(path.read_text())
    }
    if not found:
        raise SystemExit(f"captures: {path} has no arrays of numbers")
    return found
