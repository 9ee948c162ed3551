"""Inputs, expected results, and the same computation in torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

EPS = 1e-5
Sizes = dict[str, int]


@dataclass(frozen=True)
class Workload:
    """`make(sizes, place)` returns the inputs; `shape(sizes)` that of the result, which has the
    inputs' type. `torch(*inputs)` computes it; `expected(*inputs)` does so in f32. `scalars` are
    further arguments of ours, behind the result. A result may differ by the rounding of bf16 if
    `rounded`, otherwise not at all."""

    name: str
    make: Callable[[Sizes, str], list[torch.Tensor]]
    torch: Callable[..., torch.Tensor]
    expected: Callable[..., torch.Tensor]
    rounded: bool
    mark: float  # of Triton's rate, or of the copy's
    beside: str
    transposed: bool = False
    scalars: tuple[Any, ...] = ()

    def result(self, inputs: list[torch.Tensor]) -> torch.Tensor:
        """The array of the result, filled with what no result is."""
        shape = inputs[0].shape[::-1] if self.transposed else inputs[0].shape
        return torch.full(shape, float("nan"), dtype=inputs[0].dtype, device=inputs[0].device)

    def moved(self, inputs: list[torch.Tensor]) -> int:
        """Bytes that are read and written."""
        read = sum(one.numel() * one.element_size() for one in inputs)
        return read + inputs[0].numel() * inputs[0].element_size()

    def check(self, found: torch.Tensor, inputs: list[torch.Tensor], what: str) -> None:
        """AssertionError if a result is wrong."""
        if not self.rounded:
            assert torch.equal(found, self.expected(*inputs)), f"{self.name}: {what} is wrong"
            return
        rows = 4096  # at a time, which bounds the memory that is needed
        vectors = inputs[1:]
        for start in range(0, found.shape[0], rows):
            part = slice(start, start + rows)
            exact = self.expected(inputs[0][part].float(), *(one.float() for one in vectors))
            # Half a unit of bf16, and the error of f32 before a difference of large numbers.
            most = exact.abs() * 2.0**-8 * 1.02 + 1e-5 * (1 if vectors else exact.abs().amax())
            wrong = ~((found[part].float() - exact).abs() <= most)
            assert not wrong.any(), f"{self.name}: {what}: {int(wrong.sum())} elements are wrong"


def _normal(shape: tuple[int, ...], dtype: torch.dtype, place: str, seed: int) -> torch.Tensor:
    generator = torch.Generator(place).manual_seed(seed)
    return torch.randn(shape, generator=generator, device=place).to(dtype)


def _matrix(dtype: torch.dtype) -> Callable[[Sizes, str], list[torch.Tensor]]:
    return lambda sizes, place: [_normal((sizes["rows"], sizes["columns"]), dtype, place, 0)]


def _rows(vectors: int) -> Callable[[Sizes, str], list[torch.Tensor]]:
    """A matrix of bf16, and vectors of its columns."""

    def make(sizes: Sizes, place: str) -> list[torch.Tensor]:
        shape = (sizes["columns"],)
        return _matrix(torch.bfloat16)(sizes, place) + [
            _normal(shape, torch.bfloat16, place, 1 + index) for index in range(vectors)
        ]

    return make


def _added(sizes: Sizes, place: str) -> list[torch.Tensor]:
    return [_normal((sizes["elements"],), torch.float32, place, seed) for seed in (0, 1)]


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def _layernorm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, EPS)


def _rmsnorm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, weight.shape, weight, EPS)


def _transposed(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous()


WORKLOADS = (
    Workload("add f32", _added, torch.add, torch.add, False, 1.0, "Triton"),
    Workload("softmax bf16", _rows(0), _softmax, _softmax, True, 0.98, "Triton"),
    Workload(
        *("layernorm bf16", _rows(2), _layernorm, _layernorm, True, 0.98, "Triton"), scalars=(EPS,)
    ),
    Workload(*("rmsnorm bf16", _rows(1), _rmsnorm, _rmsnorm, True, 0.98, "Triton"), scalars=(EPS,)),
    Workload(
        *("transpose bf16", _matrix(torch.bfloat16), _transposed, _transposed, False, 0.9, "copy"),
        transposed=True,
    ),
    Workload(
        *("transpose f32", _matrix(torch.float32), _transposed, _transposed, False, 0.9, "copy"),
        transposed=True,
    ),
)
