"""What a case is, and what it compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Case:
    """A configuration of a kernel file. `run` builds, launches and returns the comparisons."""

    name: str
    file: str
    target: str
    run: Callable[[], Iterator[Comparison]]
    race: str = ""  # what races in the kernel, where its results depend on the order of waves
    defect: str = ""  # what makes the kernel's results wrong, with FlyDSL too


@dataclass(frozen=True)
class Comparison:
    """`found` is right if it differs from `wanted` by at most absolute + relative · |wanted|."""

    what: str
    found: Any
    wanted: Any
    absolute: float = 0.0
    relative: float = 0.0

    @property
    def error(self) -> str:
        """What is wrong, or the empty string."""
        found, wanted = self.found.detach().double(), self.wanted.detach().double()
        if found.shape != wanted.shape:
            return f"{self.what} has the shape {tuple(found.shape)}, not {tuple(wanted.shape)}"
        away = (found - wanted).abs()
        limit = self.absolute + self.relative * wanted.abs()
        bad = ~(away <= limit)  # NaN is not within any limit
        bad &= ~(found.isnan() & wanted.isnan()) & (found != wanted)
        count = int(bad.sum())
        if not count:
            return ""
        at = tuple(int(i) for i in bad.nonzero()[0])
        return (
            f"{count} of {bad.numel()} elements of {self.what} are wrong, the first at {at}:"
            f" {float(found[at]):.5g} instead of {float(wanted[at]):.5g}"
        )


CASES: list[Case] = []


def case(
    name: str, file: str, *, target: str = "gfx942", race: str = "", defect: str = "", **fixed: Any
) -> Any:
    """A decorator: a function of a module of cases is a case with these arguments. Several make
    several cases."""

    def add(function: Callable[..., Iterator[Comparison]]) -> Callable[..., Iterator[Comparison]]:
        CASES.append(Case(name, file, target, lambda: function(**fixed), race, defect))
        return function

    return add


def pointer(tensor: torch.Tensor) -> Any:
    """A tensor as FlyDSL's pointer to its elements."""
    import ctypes

    import flydsl.compiler as flyc
    import flydsl.expr as fx

    names = {
        torch.float32: "Float32",
        torch.float16: "Float16",
        torch.bfloat16: "BFloat16",
        torch.int8: "Int8",
        torch.uint8: "Uint8",
        torch.int32: "Int32",
        torch.int64: "Int64",
    }
    kind = getattr(fx, names[tensor.dtype])
    return flyc.from_c_void_p(kind, ctypes.c_void_p(tensor.data_ptr()))


DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed numbers, the same ones each time."""
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return made.to(dtype)
