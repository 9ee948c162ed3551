"""A function with its inputs and expected results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """`expect` returns the expected content of the named arrays: arguments, and the array that the
    function returns, which is called `returns`. A result may differ by `rtol` and `atol`, as in
    numpy.allclose, or by `ulp` units in the last place of an f32."""

    path: Path
    entry: str
    make: Callable[[], Values]
    expect: Callable[[Values], Mapping[str, np.ndarray]]
    rtol: float = 0.0
    atol: float = 0.0
    ulp: float = 0.0
    returns: str | None = None
