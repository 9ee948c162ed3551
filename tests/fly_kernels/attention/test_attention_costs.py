"""What attention's forward kernel needs of a compute unit on CDNA, whatever it is compiled for."""

from __future__ import annotations

import pytest
import torch
from fly_run.devices.options import Options
from fly_run.emulator.watch.stats import Statistics

from fly.kernels.attention.entries import attention
from fly.kernels.attention.problem import Problem

KERNEL = "attention_kernel"
LAYOUTS = ("dense", "turned", "packed", "mixed", "sliced", "general")


@pytest.fixture(params=["gfx942", "gfx950"])
def chip(request, monkeypatch) -> str:
    monkeypatch.setenv("FLY_TARGET", request.param)
    monkeypatch.setenv("FLY_DEVICE", "emulator")
    return request.param


def compiled(layout: str, d: int, dtype: torch.dtype, causal: bool):
    q = torch.zeros(1, 2, 128, d, dtype=dtype)
    if layout == "packed":
        starts = torch.zeros(2, dtype=torch.int32)
        return attention.compile(q, q, q, 0.1, Problem(d, causal, True), starts, starts)
    if layout == "turned":  # heads of a position are adjacent in memory
        q = torch.zeros(2, 128, 3, d, dtype=dtype).transpose(1, 2)
    if layout == "sliced":  # of queries, keys and values in one array
        q = torch.zeros(2, 128, 3, 4, d, dtype=dtype)[:, :, 1].transpose(1, 2)
    v = torch.zeros(2, 2, 128, d, dtype=dtype) if layout == "mixed" else q
    if layout == "mixed":
        q = torch.zeros(2, 128, 2, d, dtype=dtype).transpose(1, 2)
    return attention.compile(q, q, v, 0.1, Problem(d, causal, False))


@pytest.mark.heavy
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize(
    ("layout", "dtype"),
    [*((layout, torch.float16) for layout in LAYOUTS), (LAYOUTS[0], torch.bfloat16)],
    ids=str,
)
def test_registers(chip, monkeypatch, layout, d, dtype, causal):
    if layout == "general":
        monkeypatch.setenv("FLY_SPECIALIZE", "0")
    kernel = compiled(layout, d, dtype, causal).kernels[KERNEL]
    assert kernel.private_segment_fixed_size == 0
    if chip == "gfx950" and d == 64 and layout in ("dense", "turned", "packed"):
        assert kernel.vgpr_count <= 128  # four waves of a SIMD
    assert kernel.vgpr_count <= 256
    if layout == "dense":  # strides follow from extents: they are no arguments
        assert kernel.sgpr_count <= 31


@pytest.mark.heavy
@pytest.mark.parametrize("d", [64, 128])
def test_reads_of_lds_use_all_banks(chip, d):
    q = torch.randn(1, 1, 128, d).half()
    values = {"Q": q, "K": q, "V": q, "scale": 0.1}
    seen = Statistics()
    made = attention.compile(q, q, q, 0.1, Problem(d, causal=False, packed=False))
    made.run(values, options=Options(observers=(seen,)))
    (document,) = seen.documents
    loads = document["memory"]["LDS"]["load"]
    assert loads["cycles"] == loads["ideal_cycles"] > 0
