"""NVIDIA's chips, compared with LLVM and ptxas."""

from __future__ import annotations

import subprocess

import pytest
from chosen_targets import NVIDIA
from fly_common.programs import toolchain
from fly_target import registry
from fly_target.nvidia.facts import nvidia_facts_of
from fly_target.nvidia.triple import PTX_FEATURE
from h200_kernels import assembler

KERNEL = """
target triple = "nvptx64-nvidia-cuda"
@s = internal addrspace(3) global [SIZE x i8] undef, align 16
define ptx_kernel void @k(i32 %i) {
  %at = getelementptr i8, ptr addrspace(3) @s, i32 %i
  store volatile i8 1, ptr addrspace(3) %at
  ret void
}
"""


def ptx(chip: str, size: int) -> str:
    words = [toolchain.find_program("llc"), f"-mcpu={chip}", f"-mattr={PTX_FEATURE}", "-o", "-"]
    text = KERNEL.replace("SIZE", str(size))
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("chip", NVIDIA)
def test_llvm_and_ptxas_know_the_chip(chip, tmp_path):
    text = ptx(chip, nvidia_facts_of(NVIDIA[chip]).static_shared)
    assert f".target {chip}" in text
    assert ".version 8.8" in text
    assembler.assemble(text.encode(), chip, tmp_path / "k.cubin")


@pytest.mark.parametrize("chip", ["sm_80", "sm_86"])
def test_static_shared_memory_has_a_limit(chip, tmp_path):
    """ptxas for newer chips accepts more, but only its latest releases do."""
    text = ptx(chip, nvidia_facts_of(NVIDIA[chip]).static_shared + 1)
    with pytest.raises(AssertionError, match="too much shared data"):
        assembler.assemble(text.encode(), chip, tmp_path / "k.cubin")


def test_traits_are_the_capabilities_up_to_the_chips_own():
    assert NVIDIA["sm_86"].traits == {"Ampere", "sm_80+", "sm_86+"}
    assert {"sm_89+", "sm_90+", "sm_90a", "ocp"} <= NVIDIA["sm_90a"].traits
    assert "sm_90a" not in NVIDIA["sm_100a"].traits
    assert registry.with_trait("sm_90+") == ("sm_90a", "sm_100a")


def test_a_blocks_memory_and_its_reserve_fit_a_multiprocessor():
    for target in NVIDIA.values():
        facts = nvidia_facts_of(target)
        assert target.lds + facts.reserved_shared == facts.shared
        assert target.wave_size == 32
