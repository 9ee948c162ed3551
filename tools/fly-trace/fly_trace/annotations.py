"""What parameters are annotated with besides element types and `fx.Tensor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Constexpr:
    """`fx.Constexpr[int]`: an argument known while tracing; each value is another kernel."""

    kind: Any = None

    def __class_getitem__(cls, kind: Any) -> Constexpr:
        return cls(kind)


@dataclass(frozen=True)
class Stream:
    """`fx.Stream`: accepted where FlyDSL has it. The order of launches is the program's."""

    value: Any = None
