"""A Triton kernel, its compile-time parameters, its arguments, and the expected results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from kernels.case import TARGETS, Launch, Near

from triton_suite.formats import SMALL, Rounded, value

Made = tuple[list[Any], tuple[int, int, int], Mapping[str, Any]]


@dataclass(frozen=True)
class Case:
    """`types`: Triton's types of the parameters, in order; `make`: the arguments, the grid, and by
    parameter the expected arrays (kernels.case.Launch). `terms`: the number of products of small
    f16 or bf16 numbers in a sum, which is exact except on gfx1100."""

    name: str
    kernel: str
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    make: Callable[[np.random.Generator], Made] = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=lambda: {"num_warps": 4})
    targets: tuple[str, ...] = TARGETS
    terms: int = 0

    def launch(self, block: int, target: str) -> Launch:
        arguments, grid, expected = self.make(np.random.default_rng(7))
        names = list(self.types)
        if self.terms and target == "gfx1100":
            expected = {name: self._about(name, value) for name, value in expected.items()}
        positions = {names.index(name): value for name, value in expected.items()}
        return Launch(arguments, grid, (block, 1, 1), positions)

    def _about(self, name: str, exact: Any) -> Rounded:
        """gfx1100 truncates two products and C to a grid, 26 bits below C's first digit, and adds a
        term of the other sign one unit too low (docs/emulator.md): at most four units per step."""
        kind = self.types[name][1:]
        digit = math.floor(math.log2(self.terms * SMALL**2))
        return Rounded(value(exact, kind), kind, 0, 2 * self.terms * 2.0 ** (digit - 26))


def types_of(text: str) -> dict[str, str]:
    """Parses `x:*fp32 n:i32`."""
    return dict(part.split(":") for part in text.split())


def near(value: np.ndarray, relative: float, absolute: float = 0.0) -> Near:
    return Near(value, np.abs(value) * relative + absolute)
