"""The chain for NVIDIA's GPUs: `@fly.jit` and the pipe give the same cubin; ptxas is optional."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fly_common.errors import InputError, UsageError
from fly_image.nvidia.cubin import Cubin
from fly_image.nvidia.ptx_image import PtxImage

import fly
import fly.expr as fx

pytestmark = pytest.mark.usefixtures("clean_registry")

ROOT = Path(__file__).parents[3]
TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a")


@fly.kernel
def scale_kernel(A: fx.Tensor, s: fx.Float32):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    A[i] = A[i] * s


@fly.jit
def scale(A: fx.Tensor[fx.Float32, 1024], s: fx.Float32):
    scale_kernel(A, s).launch(grid=4, block=256)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_compiles_to_a_cubin(target: str):
    made = scale.compile(target=target)
    assert isinstance(made.image, Cubin)
    assert made.target == target
    kernel = made.image.kernel("scale_kernel")
    assert kernel.max_threads == 256
    assert kernel.resources.spills == "0 spilled"
    assert made.program is not None
    offsets = [argument.offset for argument in kernel.arguments]
    sizes = [part.size for (part,) in made.program.launches[0].arguments]
    assert sizes == [argument.size for argument in kernel.arguments]
    assert offsets == sorted(set(offsets))


def test_the_backend_alone_selects_its_target(monkeypatch):
    assert scale.compile(backend="CUDA").target == "sm_90a"
    monkeypatch.setenv("FLY_BACKEND", "cuda")
    assert fly.backend_name() == "cuda"
    assert scale.compile().target == "sm_90a"
    with pytest.raises(UsageError, match="FLY_BACKEND names, does not compile for 'gfx942'"):
        scale.compile(target="gfx942")


def test_the_stages():
    made = scale.compile(target="sm_90a")
    assert [stage.suffix for stage in fly.chain("sm_90a")] == [".ll", ".opt.ll", ".ptx", ".cubin"]
    ptx, asm = made.ir("ptx"), made.ir("asm")
    assert isinstance(ptx, str)
    assert ".visible .entry scale_kernel(" in ptx
    assert isinstance(asm, str)
    assert "FMUL" in asm
    assert made.ir("cubin") == made.data
    again = fly.load(made.data)
    assert again.ir("cubin") == made.data
    assert again.ir("asm") == asm
    with pytest.raises(UsageError, match="has no 'ptx'\n  it has 'asm' and 'cubin'"):
        again.ir("ptx")


def test_the_pipe_makes_the_same_bytes(tmp_path: Path):
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        from vector_add import vector_add
    finally:
        sys.path.remove(str(ROOT / "examples"))
    pipe = (
        f"set -o pipefail; fly-trace {ROOT}/examples/vector_add.py | fly-opt-py --target sm_90a"
        " | opt -S -O3 | fly-llc | fly-link > k.cubin"
    )
    subprocess.run(["bash", "-c", pipe], cwd=tmp_path, check=True)
    assert (tmp_path / "k.cubin").read_bytes() == vector_add.compile(target="sm_90a").data


def test_without_ptxas_the_result_is_ptx(monkeypatch):
    """The change of the variable is noticed, and undone, in one process."""
    assert isinstance(scale.compile(target="sm_90a").image, Cubin)
    monkeypatch.setenv("FLY_PTXAS", "none")
    made = scale.compile(target="sm_90a")
    assert isinstance(made.image, PtxImage)
    assert made.ir("asm") == made.ir("ptx") == made.data.decode()
    assert fly.load(made.data).ir("ptx") == made.data.decode()
    monkeypatch.delenv("FLY_PTXAS")
    assert isinstance(scale.compile(target="sm_90a").image, Cubin)


def test_options_of_ptxas():
    few = fly.chain("sm_90a", link=[("flags", ("-maxrregcount=24",))])
    assert few.stages[-1].words == ("fly-link", "--ptxas", "-maxrregcount=24")
    assert few.identity() != fly.chain("sm_90a").identity()
    made = fly.jit(chain=few)(scale.function).compile()
    assert b"-maxrregcount" in made.data
    with pytest.raises(UsageError, match="fly-link has no option 'registers'"):
        fly.chain("sm_90a", link=[("registers", 24)])


def test_what_ptxas_refuses_is_saved_with_the_command_that_repeats_it():
    source = b".version 8.8\n.target sm_90a\n.entry k() { bad; }\n"
    broken = fly.Stage("llc", lambda data: source, "1", ".ptx")
    chain = fly.chain("sm_90a").replace("llc", broken)
    with pytest.raises(InputError) as caught:
        fly.jit(chain=chain)(scale.function).compile()
    told = str(caught.value)
    assert told.startswith("<stdin>:3:1: ptxas: ")
    assert "reproduce: fly-link < " in told
    assert told.rstrip().endswith(".ptx")
