"""Warnings of kernels that spill registers, by images that LLVM and ptxas made."""

import re

import fly_image
import pytest
from fly_image import spills

import fly
import fly.expr as fx


@fly.kernel
def many_kernel(A: fx.Tensor, B: fx.Tensor, count: fx.Constexpr[int]):
    i = fx.thread_idx.x
    values = [A[i + j * 1024] for j in range(count)]
    fx.barrier()
    for j in fx.range_constexpr(count):
        B[i + j * 1024] = values[(j * 7 + 3) % count] * values[j]


@fly.jit
def many(A: fx.Tensor[fx.Float32, None], B: fx.Tensor[fx.Float32, None], count: fx.Constexpr[int]):
    many_kernel(A, B, count).launch(grid=1, block=1024)


def image(target, count, lines=False):
    from fly.chains.chain import run

    made = many.compile(signature=f"A: f32[?], B: f32[?], count = {count}", target=target)
    return run(made._chain.with_lines(), made._module) if lines else made.data


def test_amd():
    data = image("gfx942", 200)
    kernel = fly_image.read(data).kernels["many_kernel"]
    (said,) = spills.warnings(data)
    assert said.message == (
        f"the kernel many_kernel spills registers: {kernel.vgpr_spill_count} VGPRs to scratch"
        f" memory ({kernel.private_segment_fixed_size} bytes a lane)"
    )
    assert kernel.vgpr_spill_count > 0
    assert said.place is None
    assert said.hint == spills.HINT


def test_the_line_of_the_first_instruction():
    (said,) = spills.warnings(image("gfx942", 200, lines=True))
    assert said.place.text.strip() == "i = fx.thread_idx.x"


def test_nvidia():
    pytest.importorskip("nvidia.cu13")
    data = image("sm_90a", 200)
    (said,) = spills.warnings(data)
    assert re.fullmatch(
        r"the kernel many_kernel spills registers: \d+ bytes of spill stores, \d+ of spill loads",
        said.message,
    )


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "sm_90a"])
def test_enough_registers(target):
    assert spills.warnings(image(target, 4)) == []
