"""Dependent launches: which kernels wait for the launch before them, and that nothing is written,
nor read of what that one writes, before. No device here finds an access that is too early."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fly import kernels
from fly.call.compiled import Compiled

pytestmark = pytest.mark.heavy
ACCESS = re.compile(r"^\s*(?:@\S+\s+)?(ld|st|red|atom|cp)\.\S*(?:global|bulk|async)", re.MULTILINE)
WAIT, BEGIN = "griddepcontrol.wait;", "griddepcontrol.launch_dependents;"
F16, F32, I32 = np.float16, np.float32, np.int32


def zeros(*shape: int, dtype: Any = F16) -> np.ndarray:
    return np.zeros(shape, dtype)


def rows(count: int) -> np.ndarray:
    return zeros(2, 4, count, 64)


CALLS: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "matmul": (lambda: kernels.matmul(zeros(64, 2048), zeros(2048, 64), split_k=4), {"sum_kernel"}),
    "matmul, padded": (
        lambda: kernels.matmul(zeros(131, 203), zeros(203, 261)),
        {"warpgroup_gemm_kernel"},
    ),
    "matmul, f32": (
        lambda: kernels.matmul(zeros(64, 2048, dtype=F32), zeros(2048, 64, dtype=F32), split_k=4),
        {"sum_parts_kernel"},
    ),
    "matmul, i8": (
        lambda: kernels.matmul(
            zeros(64, 2048, dtype=np.int8), zeros(64, 2048, dtype=np.int8).T, split_k=4
        ),
        {"sum_kernel"},
    ),
    "norm_backward": (
        lambda: kernels.norm_backward(
            zeros(4, 65536, dtype=F32),
            zeros(4, 65536, dtype=F32),
            zeros(65536, dtype=F32),
            1e-6,
            True,
        ),
        {"parameters_backward_kernel", "add_up_kernel"},
    ),
    "flash_attention_backward": (
        lambda: kernels.flash_attention_backward(
            rows(100),
            zeros(2, 4, 100, dtype=F32),
            *[rows(100)] * 4,
            zeros(2, 4, 100, dtype=F32),
        ),
        {"gradient_kernel", "finish_kernel"},
    ),
    "paged_attention": (
        lambda: kernels.paged_attention(
            zeros(3, 8, 64),
            zeros(20, 16, 2, 64),
            zeros(20, 16, 2, 64),
            zeros(3, 6, dtype=I32),
            zeros(3, dtype=I32),
        ),
        {"combine_kernel"},
    ),
    "moe_sort": (
        lambda: kernels.moe_sort(zeros(50, 2, dtype=I32), 8),
        {"offsets_kernel", "places_kernel"},
    ),
    "prefix_sum": (
        lambda: kernels.prefix_sum(zeros(5000, dtype=I32)),
        {"offsets_kernel", "prefix_sum_kernel"},
    ),
}
# Kernels that read inputs, which no launch writes, before they wait.
READS_INPUTS = {"prefix_sum_kernel"}


class _Recorded(Exception):
    """Ends a call before it runs anything."""


def assembly(call: Callable[[], Any], target: str, monkeypatch: pytest.MonkeyPatch) -> str:
    seen: list[Compiled] = []

    def record(self: Compiled, *_: Any) -> Any:
        seen.append(self)
        raise _Recorded

    monkeypatch.setenv("FLY_TARGET", target)
    monkeypatch.setattr(Compiled, "run_viewed", record)
    with pytest.raises(_Recorded):
        call()
    made = seen[0].ir("ptx" if target.startswith("sm_") else "asm")
    return made if isinstance(made, str) else made.decode()


def entries(ptx: str) -> dict[str, str]:
    """The text of each kernel."""
    code = "\n".join(line for line in ptx.splitlines() if not line.startswith("//"))
    parts = re.split(r"\.entry (\w+)\(", code)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("name", CALLS)
def test_kernels_wait_before_they_access_memory(name, monkeypatch):
    call, waiting = CALLS[name]
    texts = entries(assembly(call, "sm_90a", monkeypatch))
    assert {kernel for kernel, text in texts.items() if WAIT in text} == waiting
    assert any(BEGIN in text for text in texts.values())
    for kernel in waiting:
        before = ACCESS.findall(texts[kernel].split(WAIT)[0])
        assert texts[kernel].count(WAIT) == 1
        assert set(before) <= ({"ld"} if kernel in READS_INPUTS else set()), kernel
        assert ACCESS.search(texts[kernel].split(WAIT)[1])


@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_other_targets_have_no_dependent_launches(target, monkeypatch):
    assert "griddepcontrol" not in assembly(CALLS["moe_sort"][0], target, monkeypatch)
