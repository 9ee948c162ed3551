"""Tests for a workgroup's first wave, on a scalar register."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_host import program, text
from fly_link import link
from fly_llc import Options, compile

WITHOUT = ("first-wave",)
BLOCK = (256, 1, 1)


def module(
    cpu: str = "gfx942", shift: int = 6, test: str = "eq", block: tuple[int, ...] | None = BLOCK
) -> bytes:
    """A kernel of a block that stores two numbers for each thread of the x axis: that of its wave,
    and 7 or 9 by a test whether it is the first. The thread's number is used last."""
    words = ((program.Word("pointer", "out"),),)
    sizes = block or BLOCK
    count = 2 * sizes[0]
    described = program.Program(
        entry="k",
        target=cpu,
        parameters=(program.Tensor("out", "i32", (count,), (1,), "rw", contiguous=True),),
        expressions=(("const", 1), ("const", 0), *(("const", size) for size in sizes)),
        steps=(program.Launch("k", (0, 0, 0), (2, 3, 4), 1, words),),
    )
    escaped = "".join(
        f"\\{ord(one):02X}" if one in '"\\' else one
        for one in text.write(described).replace('"', '\\"')
    )
    size = "" if block is None else " !reqd_work_group_size !0"
    given = "" if block is None else f"!0 = !{{i32 {sizes[0]}, i32 {sizes[1]}, i32 {sizes[2]}}}\n"
    threads = sizes[0] * sizes[1] * sizes[2]
    return f"""target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection .fly.manifest,\\22\\22,@progbits"
module asm ".ascii \\22{escaped}\\22"
module asm ".popsection"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0{size} {{
  %tid = tail call range(i32 0, 1024) i32 @llvm.amdgcn.workitem.id.x()
  %wave = lshr i32 %tid, {shift}
  %place = shl nuw nsw i32 %tid, 1
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %place
  store volatile i32 %wave, ptr addrspace(1) %q, align 4
  %test = icmp {test} i32 %wave, 0
  br i1 %test, label %first, label %end

first:
  %seven = load volatile i32, ptr addrspace(1) %q, align 4
  %more = add i32 %seven, 7
  br label %end

end:
  %number = phi i32 [ %more, %first ], [ 9, %0 ]
  %last = shl nuw nsw i32 %tid, 1
  %next = or disjoint i32 %last, 1
  %r = getelementptr i32, ptr addrspace(1) %p, i32 %next
  store i32 %number, ptr addrspace(1) %r, align 4
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x() #1
attributes #0 = {{ "target-cpu"="{cpu}" "amdgpu-flat-work-group-size"="{threads},{threads}" }}
attributes #1 = {{ nounwind willreturn memory(none) }}
{given}""".encode()


def is_scalar(source: bytes, **options) -> bool:
    made = compile(source, Options(emit="asm", **options))
    return b"v_readfirstlane_b32" in made and re.search(rb"s_cmpk?_[lg][te]_u32", made) is not None


def stored(source: bytes, threads: int, folder: Path) -> np.ndarray:
    """The two numbers of each thread, as rows, from the emulator."""
    image = link([compile(source, Options())])
    np.save(folder / "out.npy", np.zeros(2 * threads, np.int32))
    tool = Path(sys.executable).with_name("fly-run")
    words = [f"out={folder}/out.npy:{folder}/stored.npy"]
    subprocess.run([tool, *words], input=image, check=True, capture_output=True, timeout=300)
    return np.load(folder / "stored.npy").reshape(-1, 2)


@pytest.mark.parametrize("test", ["eq", "ne"])
@pytest.mark.parametrize(
    ("cpu", "shift", "block"),
    [
        ("gfx942", 6, BLOCK),
        ("gfx942", 7, BLOCK),
        ("gfx942", 6, (64, 2, 2)),
        ("gfx942", 6, (96, 1, 1)),
        ("gfx1100", 5, BLOCK),
        ("gfx1100", 5, (64, 2, 1)),
        ("gfx1201", 5, BLOCK),
    ],
)
def test_the_test_is_scalar_and_right(cpu, shift, block, test, tmp_path):
    source = module(cpu, shift, test, block)
    assert is_scalar(source)
    assert not is_scalar(source, disable=WITHOUT)
    wave = np.arange(block[0]) >> shift
    holds = (wave == 0) if test == "eq" else (wave != 0)
    expected = np.stack([wave, np.where(holds, wave + 7, 9)], axis=1)
    np.testing.assert_array_equal(stored(source, block[0], tmp_path), expected)


@pytest.mark.parametrize(
    ("cpu", "shift", "block"),
    [
        ("gfx942", 5, BLOCK),  # half a wave
        ("gfx1100", 4, BLOCK),
        ("gfx942", 6, (32, 4, 1)),  # a wave has two rows of threads
        ("gfx942", 6, (96, 2, 1)),
        ("gfx942", 6, None),
    ],
)
def test_lanes_that_may_differ(cpu, shift, block, llvm):
    source = module(cpu, shift, block=block)
    assert compile(source, Options()) == llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)


def test_waves_of_64_where_there_are_two_sizes():
    source = module("gfx1100", 5).replace(
        b'"target-cpu"', b'"target-features"="+wavefrontsize64" "target-cpu"'
    )
    assert not is_scalar(source)
    assert is_scalar(source.replace(b", 5\n", b", 6\n", 1))


def test_a_thread_number_that_is_not_used_later_stays():
    source = module().replace(
        b"%last = shl nuw nsw i32 %tid, 1", b"%last = shl nuw nsw i32 %wave, 1"
    )
    assert not is_scalar(source)


def test_a_test_that_selects_stays():
    source = module().replace(b"[ 9, %0 ]", b"[ %nine, %0 ]")
    source = source.replace(b"  br i1", b"  %nine = select i1 %test, i32 8, i32 9\n  br i1")
    assert not is_scalar(source)


def test_the_declaration_is_there_once():
    source = module() + b"declare i32 @llvm.amdgcn.readfirstlane.i32(i32)\n"
    assert is_scalar(source)
