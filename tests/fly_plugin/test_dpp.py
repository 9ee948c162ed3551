"""The plugin dpp: which shuffles become DPP, and that kernels compute the same.

The expected lanes are written from the ISA manuals' descriptions of ds_swizzle and ds_bpermute.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import fly_image
import numpy as np
import pytest
from fly_common.errors import InputError
from fly_link import link
from fly_llc import Options, compile
from fly_plugin import activated, activation
from fly_run.devices import options as devices
from fly_run.launch import runtime
from fly_run.launch.launch import launch
from fly_target import registry
from fly_trace.session.load import load_file
from plugins import EXAMPLES

import fly

TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
XORS = tuple(range(1, 32))
HEAD = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) #0
    !reqd_work_group_size !0 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %low = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
  %lane = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %low)
  %p = getelementptr i32, ptr addrspace(1) %in, i32 %x
  %v = load i32, ptr addrspace(1) %p
"""
TAIL = """  ret void
}
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32)
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
attributes #0 = { "target-cpu"="CPU" "amdgpu-flat-work-group-size"="64,64" }
!0 = !{i32 64, i32 1, i32 1}
"""


def sources(offset: int) -> list[int]:
    """The lane from which each of 64 lanes reads by an offset of ds_swizzle."""
    if offset >= 0x8000:  # quad permutation
        return [4 * (lane // 4) + (offset >> 2 * (lane % 4)) % 4 for lane in range(64)]
    keep, insert, flip = offset % 32, offset // 32 % 32, offset // 1024
    return [32 * (lane // 32) + ((lane % 32 & keep | insert) ^ flip) for lane in range(64)]


# ds_swizzle: each xor, broadcasts within 16 and 32 lanes, a reversal, and quad permutations.
SWIZZLES = (
    *(mask << 10 | 31 for mask in XORS),
    *(0x10 | lane << 5 for lane in (0, 3, 15)),
    *(lane << 5 for lane in (0, 17)),
    *(0x8000 | quad for quad in (0xB1, 0x00, 0xFF, 0x1B, 0x93, 0xE4)),
)


def module(target: str, shuffles: list[str], divergent: bool) -> bytes:
    """A kernel that stores the results of shuffles of its input, all lanes or two thirds of them
    active. A shuffle is the text of an i32 value in terms of %v, %lane and %x."""
    text = HEAD
    if divergent:
        text += """  %third = urem i32 %x, 3
  %on = icmp ne i32 %third, 0
  br i1 %on, label %some, label %end
some:
"""
    for number, shuffle in enumerate(shuffles):
        text += shuffle.replace("@@", str(number))
        text += f"""  %at{number} = add i32 %x, {64 * number}
  %q{number} = getelementptr i32, ptr addrspace(1) %out, i32 %at{number}
  store i32 %r{number}, ptr addrspace(1) %q{number}
"""
    if divergent:
        text += "  br label %end\nend:\n"
    return (text + TAIL.replace("CPU", target)).encode()


def swizzle(offset: int) -> str:
    return f"  %r@@ = call i32 @llvm.amdgcn.ds.swizzle(i32 %v, i32 {offset})\n"


def permute(mask: int, of: str = "%lane") -> str:
    return f"""  %l@@ = xor i32 {of}, {mask}
  %s@@ = shl i32 %l@@, 2
  %r@@ = call i32 @llvm.amdgcn.ds.bpermute(i32 %s@@, i32 %v)
"""


def moves(assembly: bytes) -> int:
    """Instructions with a DPP control."""
    return len(re.findall(rb"(?:quad_perm|row_(?!mask)\w+)", assembly))


@pytest.fixture
def dpp(example) -> Callable[..., bytes]:
    """A function that compiles with the plugin."""
    example("dpp")
    chosen = activation.activate([activation.Request("dpp", "test")])

    def made(source: bytes, emit: str = "obj") -> bytes:
        with activated(chosen):
            return compile(source, Options(emit))

    return made


def ran(obj: bytes, count: int) -> np.ndarray:
    image = fly_image.read(link([obj]))
    values = np.arange(64, dtype=np.int32) * 3 + 1000
    out = np.full(64 * count, -1, np.int32)
    with runtime.device("emulator", image.target, devices.Options(strict=True)) as opened:
        launch(image, "k", 1, 64, [values, out], device=opened.device)
    return out.reshape(count, 64)


@pytest.mark.parametrize("divergent", [False, True], ids=["all", "some"])
@pytest.mark.parametrize("target", TARGETS)
def test_swizzles_give_the_same_lanes(dpp, target, divergent):
    """Of all lanes, and where a third of the lanes is inactive and is read as 0."""
    source = module(target, [swizzle(offset) for offset in SWIZZLES], divergent)
    active = np.array([not divergent or lane % 3 != 0 for lane in range(64)])
    values = np.where(active, np.arange(64) * 3 + 1000, 0)
    expected = np.stack([np.where(active, values[sources(offset)], -1) for offset in SWIZZLES])
    np.testing.assert_array_equal(ran(compile(source, Options()), len(SWIZZLES)), expected)
    np.testing.assert_array_equal(ran(dpp(source), len(SWIZZLES)), expected)
    # 7 and 15 are mirrors, 8 a rotation; from gfx10 on, any xor of a row. gfx90a has broadcasts.
    found = moves(dpp(source, "asm"))
    xors = 15 if target.startswith("gfx1") else 6
    assert moves(compile(source, Options("asm"))) == 0
    assert found == xors + 3 + 6


@pytest.mark.parametrize("of", ["%lane", "%x"])
@pytest.mark.parametrize("target", TARGETS)
def test_permutations_by_constants_give_the_same_lanes(dpp, target, of):
    """The address is computed from the lane's number, or the work item's."""
    wave = registry.find(target).wave_size
    masks = [mask for mask in (*XORS, 32) if mask < wave]
    source = module(target, [permute(mask, of) for mask in masks], False)
    expected = np.stack([(np.arange(64) ^ mask) * 3 + 1000 for mask in masks])
    np.testing.assert_array_equal(ran(dpp(source), len(masks)), expected)
    # That of 1, 2, 3, 7, 8 and 15, and from gfx10 on any of a row.
    assert moves(dpp(source, "asm")) == (15 if target.startswith("gfx1") else 6)


@pytest.mark.parametrize(
    "shuffle",
    [
        swizzle(0xC020),  # a rotation
        swizzle(4 << 10 | 31),  # no control on gfx9
        permute(1, "%v"),  # the address is data
        permute(1, "%x").replace("shl i32 %l@@, 2", "shl i32 %l@@, %v"),
        "  %s@@ = shl i32 %x, 3\n  %r@@ = call i32 @llvm.amdgcn.ds.bpermute(i32 %s@@, i32 %v)\n",
    ],
)
def test_other_shuffles_stay(dpp, shuffle):
    source = module("gfx942", [shuffle], False)
    assert dpp(source) == compile(source, Options())


def test_a_work_item_that_is_not_the_lane(dpp):
    """Without the extent of the workgroup, or with one that is no multiple of the wave, the work
    item's number says nothing of the lane."""
    source = module("gfx942", [permute(1, "%x")], False)
    assert moves(dpp(source, "asm")) == 1
    for wrong in (
        source.replace(b"\n    !reqd_work_group_size !0", b""),
        source.replace(b"!{i32 64, i32 1, i32 1}", b"!{i32 16, i32 4, i32 1}"),
    ):
        assert wrong != source
        assert moves(dpp(wrong, "asm")) == 0


@pytest.mark.parametrize("target", TARGETS)
def test_the_example(example, target, capfd, monkeypatch):
    """row_softmax_shuffle: what is replaced, and what LLVM folds into additions. The results are
    the same bits."""
    example("dpp")
    monkeypatch.setenv("FLY_DPP_REPORT", "true")
    monkeypatch.setenv("FLY_CACHE", "off")
    function = load_file(str(EXAMPLES / "row_softmax.py")).row_softmax_shuffle.function
    x = np.random.default_rng(3).standard_normal((5, 300), dtype=np.float32)
    plain = fly.jit(function).compile(x, target=target)
    assert capfd.readouterr().err == ""
    made = fly.jit(plugins=["dpp"])(function).compile(x, target=target)
    wide = target.startswith("gfx9")
    replaced = "6 of 12 lane shuffles became DPP moves (6 ds_swizzle_b32)"
    folded, left = 3, 3
    if not wide:
        replaced = "8 of 10 lane shuffles became DPP moves (8 ds_bpermute_b32)"
        folded, left = (12, 0) if target == "gfx1100" else (8, 0)
    kernel = "dpp: softmax_shuffle_kernel: "
    assert capfd.readouterr().err == (
        f"{kernel}{replaced}\n{kernel}{folded} instructions have a folded DPP operand,"
        f" {left} DPP moves are left\n"
    )
    assembly = made.ir("asm")
    added = len(re.findall(r"\tv_add_f32_dpp", assembly))
    assert added == (3 if wide else 4)
    shuffles = [
        len(re.findall(r"\tds_\w*(?:swizzle|permute)", one.ir("asm"))) for one in (plain, made)
    ]
    assert shuffles == ([12, 6] if wide else [10, 2])
    found, expected = (
        one.run({"X": x}, device="emulator", options=devices.Options(strict=True)).results
        for one in (made, plain)
    )
    np.testing.assert_array_equal(found, expected)


def test_it_runs_in_ssa_form_only(example):
    example("dpp")
    source = module("gfx942", [swizzle(0xC020)], False)
    chosen = activation.activate([activation.Request("dpp", "test")])
    with activated(chosen), pytest.raises(InputError, match="k is not in SSA form"):
        compile(source, Options(insert=("pre-ra=dpp",)))
