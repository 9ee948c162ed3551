"""Runs of instructions that one handler executes: which they are, and that it shows in no result;
nor does it if rows of 16 lanes are loaded at once.
The judge of results is the oracle, which executes one instruction after the other."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import replace

import numpy as np
import pytest
from emulator_support import frame
from fly_image.amd.code_object import CodeObject
from fly_run.emulator import state
from fly_run.emulator.lowering.fused import fused
from fly_run.emulator.lowering.steps import Step
from fly_run.emulator.machine import Emulator
from oracle.launching import build
from oracle.launching.device import on_emulator
from oracle.launching.launch import on_oracle

LANES = {"gfx942": 64, "gfx1100": 32, "gfx1201": 32, "gfx1250": 32}
TARGETS = tuple(LANES)
LDS = 1024  # bytes of a workgroup
# EXEC; that of a wave of 32 lanes is the lower half.
MASKS = (
    *(-1, 1, 0x00FF00F1_80000001, 0x80000000_0FF0FFF0, 0x7FFFFFFF_7FFF0000),
    *(0xFFFF, 0x00010000_00000000, 0),
)

BEFORE = """  s_load_b64 s[2:3], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v0
  v_lshlrev_b32 v22, 3, v0
  s_wait_kmcnt 0x0
  global_load_b32 v2, v1, s[2:3]
  global_load_b32 v3, v1, s[2:3] offset:64
  global_load_b32 v4, v1, s[2:3] offset:128
  global_load_b32 v5, v1, s[2:3] offset:192
  s_load_b128 s[4:7], s[2:3], 0x40
  s_load_b64 s[10:11], s[2:3], 0xc00
  s_wait_loadcnt 0x0
  s_wait_kmcnt 0x0
  ds_store_b32 v22, v4
  ds_store_b32 v22, v5 offset:4
  ds_store_b32 v22, v3 offset:256
  ds_store_b32 v22, v2 offset:260
  ds_store_b32 v22, v2 offset:512
  ds_store_b32 v22, v3 offset:516
  s_wait_dscnt 0x0
{clear}
{change}
{body}
{restore}
  s_wait_dscnt 0x0
{store}
  s_endpgm"""
# gfx9 has other names for some instructions.
GFX9 = (
    ("s_load_b64", "s_load_dwordx2"),
    ("s_load_b128", "s_load_dwordx4"),
    ("s_wait_kmcnt 0x0", "s_waitcnt lgkmcnt(0)"),
    ("s_wait_dscnt 0x0", "s_waitcnt lgkmcnt(0)"),
    ("s_wait_loadcnt 0x0", "s_waitcnt vmcnt(0)"),
    ("global_load_b32", "global_load_dword"),
    ("global_store_b32", "global_store_dword"),
    ("ds_store_b32", "ds_write_b32"),
    ("ds_load_b32", "ds_read_b32"),
    ("ds_load_2addr_b32", "ds_read2_b32"),
    ("ds_load_2addr_stride64_b32", "ds_read2st64_b32"),
)
GFX11 = (
    ("s_wait_kmcnt 0x0", "s_waitcnt lgkmcnt(0)"),
    ("s_wait_dscnt 0x0", "s_waitcnt lgkmcnt(0)"),
    ("s_wait_loadcnt 0x0", "s_waitcnt vmcnt(0)"),
)
RESULTS = range(8, 20)

SUMS = {
    "rows": """  v_fmac_f32 v8, v2, v3
  v_fmac_f32 v8, v4, v5
  v_fmac_f32 v8, v3, v4""",
    "scalars": """  v_fmac_f32 v8, s4, v3
  v_fmac_f32 v8, s5, v5
  v_fmac_f32 v8, s6, v4
  v_fmac_f32 v8, 0.5, v2""",
    "its own factor": """  v_fmac_f32 v2, v2, v3
  v_fmac_f32 v2, v4, v5
  v_fmac_f32 v2, v2, v5
  v_fmac_f32 v2, v3, v2
  v_fmac_f32 v2, v3, v4
  v_mov_b32 v8, v2""",
    "several": """  v_fmac_f32 v8, v2, v3
  v_fmac_f32 v8, v4, v5
  v_fmac_f32 v9, v2, v3
  v_fmac_f32 v9, v8, v5
  v_fmac_f32 v9, s4, v5
  v_fmac_f32 v9, s5, v4
  v_fmac_f32 v10, v2, v4""",
    "a branch into it": """  s_mov_b32 s8, 2
  s_branch .Linside
.Lagain:
  v_fmac_f32 v8, v2, v3
.Linside:
  v_fmac_f32 v8, v4, v5
  v_fmac_f32 v8, v3, v5
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lagain
  v_fmac_f32 v8, v2, v2""",
}
# By row v6 of addresses.
READS = """  ds_load_2addr_b32 v[8:9], v6 offset0:{0} offset1:{1}
  ds_load_2addr_b32 v[10:11], v6 offset0:{2} offset1:{3}
  ds_load_2addr_stride64_b32 v[12:13], v6 offset0:{4} offset1:1
  ds_load_2addr_b32 v[14:15], v6 offset0:{1} offset1:{2}"""
ADDRESSES = {
    "a run": "  v_mov_b32 v6, v1",
    "a run below 0": "  v_add_u32 v6, -4, v1",
    "an odd run": "  v_add_u32 v6, 3, v1",
    "one": "  v_mov_b32 v6, 20",
    "one for each row": "  v_lshrrev_b32 v6, 4, v0\n  v_mul_u32_u24 v6, 36, v6",
    "rows": "  v_and_b32 v6, 15, v0\n  v_lshlrev_b32 v6, 2, v6",
    "scattered": "  v_mul_u32_u24 v6, 5, v0\n  v_and_b32 v6, 0x7c, v6",
    "a row, then scattered": "  v_mul_u32_u24 v6, 4, v0\n  v_xor_b32 v7, 4, v6\n"
    "  v_cmp_gt_u32 vcc, 16, v0\n  v_cndmask_b32 v6, v7, v6, vcc",
}
OFFSETS = ((0, 1, 2, 3), (7, 1, 30, 16))
OTHERS = {
    "another row": """  v_add_u32 v7, 8, v1
  ds_load_2addr_b32 v[8:9], v1 offset1:1
  ds_load_2addr_b32 v[10:11], v1 offset1:2
  ds_load_2addr_b32 v[12:13], v7 offset1:3
  ds_load_2addr_b32 v[14:15], v7 offset1:4""",
    "into the addresses": """  v_mov_b32 v8, v1
  ds_load_2addr_b32 v[10:11], v8 offset1:1
  ds_load_2addr_b32 v[12:13], v8 offset1:2
  ds_load_2addr_b32 v[8:9], v8 offset1:3
  ds_load_2addr_b32 v[14:15], v1 offset1:4""",
    "the same results": """  ds_load_2addr_b32 v[8:9], v1 offset1:1
  ds_load_2addr_b32 v[10:11], v1 offset0:2 offset1:3
  ds_load_2addr_b32 v[8:9], v1 offset0:4 offset1:5""",
}


@functools.cache
def assembled(target: str, body: str) -> bytes:
    wide = LANES[target] == 64
    mask, register = ("s[10:11]", "exec") if wide else ("s10", "exec_lo")
    move = f"  s_mov_b{LANES[target]} {register}, "
    code = BEFORE.format(
        clear="\n".join(f"  v_mov_b32 v{n}, {n}.0" for n in RESULTS),
        change=move + mask,
        body=body,
        restore=f"{move}-1",
        store="\n".join(
            f"  global_store_b32 v1, v{n}, s[2:3] offset:{256 * (n - RESULTS[0])}" for n in RESULTS
        ),
    )
    if not wide:
        code = code.replace(" vcc", " vcc_lo").replace("v_add_u32", "v_add_nc_u32")
        code = code.replace("s_sub_u32", "s_sub_co_u32" if target > "gfx12" else "s_sub_u32")
    for new, old in GFX9 if wide else GFX11 if target == "gfx1100" else ():
        code = code.replace(new, old)
    more = (".amdhsa_accum_offset 24",) if wide else ()
    text = frame.kernel(
        target, code, vgprs=24, lanes=LANES[target], lds=LDS, directives=more, items=64
    )
    return build.assemble(text, target)


def memory(mask: int) -> np.ndarray:
    count = 64 * len(RESULTS)
    values = np.random.default_rng(7).standard_normal(count + 2).astype(np.float32)
    values[3], values[20], values[35], values[50] = np.inf, 1e-42, np.nan, -0.0
    values.view(np.uint32)[count:] = mask & 0xFFFFFFFF, mask >> 32 & 0xFFFFFFFF
    return values


def names_in(target: str, body: str) -> set[str]:
    device = Emulator(target)
    code = CodeObject.parse(assembled(target, body))
    programs = device.load(code).function("k").programs
    names = {address: name for name, address in device._library.handlers.items()}
    return {
        names[ctypes.c_uint64.from_buffer(program.ops, at).value].partition("/")[0]
        for program in programs
        for at in range(0, len(program.ops), state.OP_SIZE)
    }


def differing(target: str, body: str) -> dict[int, list[int]]:
    """The places of wrong results by EXEC."""
    data, shape = assembled(target, body), ((1, 1, 1), (LANES[target], 1, 1))
    wrong = {}
    for mask in MASKS:
        given = memory(mask)
        wanted = on_oracle(data, "k", *shape, [given]).arguments[0]
        found = on_emulator(data, "k", *shape, [given]).arguments[0]
        same = wanted.view(np.uint32) == found.view(np.uint32)
        places = np.flatnonzero(~same & ~(np.isnan(wanted) & np.isnan(found)))
        if len(places):
            wrong[mask] = places.tolist()
    return wrong


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SUMS)
def test_sums(target: str, name: str) -> None:
    assert names_in(target, SUMS[name]) & {"fly_fmac_run_vv", "fly_fmac_run_sv"}
    assert not differing(target, SUMS[name])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ADDRESSES)
def test_reads(target: str, name: str) -> None:
    for offsets in OFFSETS:
        # The first lane of a run below the LDS is in it with an offset only.
        least = 1 if name == "a run below 0" else 0
        reads = READS.format(*(max(least, offset) for offset in offsets), least)
        body = f"{ADDRESSES[name]}\n{reads}"
        assert "fly_read_pairs" in names_in(target, body)
        assert not differing(target, body)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", OTHERS)
def test_other_reads(target: str, name: str) -> None:
    assert not differing(target, OTHERS[name])


# Twice, as the first access finds the region.
LOADS = """  v_mov_b32 v21, s3
  v_add_u32 v20, s2, v6
  s_mov_b32 s8, 2
.Lagain:
  global_load_b32 v8, v6, s[2:3]
  global_load_b32 v9, v6, s[2:3] offset:8
  global_load_b32 v10, v[20:21], off offset:64
  ds_load_b32 v11, v6
  s_wait_loadcnt 0x0
  s_wait_dscnt 0x0
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lagain"""
SCALED = """  v_lshrrev_b32 v7, 2, v6
  s_mov_b32 s8, 2
.Lbefore:
  global_load_b32 v12, v7, s[2:3] scale_offset
  s_wait_loadcnt 0x0
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lbefore
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [name for name in ADDRESSES if name != "a run below 0"])
def test_loads(target: str, name: str) -> None:
    scaled = SCALED if target == "gfx1250" else ""
    assert not differing(target, f"{ADDRESSES[name]}\n{scaled}{LOADS}")


A, B, C, D = (state.VGPR + number * state.ROW for number in range(4))
FMAC = Step("v_fmac_f32.vv", (A, B, C))
PAIR = [
    Step("fly_read_pair", (A, B, C), immediate=8, extra=4),
    Step("ds_read_b32.v", (A, C, 0), immediate=8, memory=True),
    Step("ds_read_b32.v", (B, C, 0), immediate=4, memory=True),
]


def test_what_is_a_run_of_sums() -> None:
    other = Step("v_mov_b32.s", (D, 4))
    run = replace(FMAC, handler="fly_fmac_run_vv")
    assert fused([FMAC]) == [FMAC]
    assert fused([FMAC, other, FMAC]) == [FMAC, other, FMAC]
    assert fused([FMAC, FMAC, FMAC, other]) == [
        replace(run, extra=3),
        replace(run, extra=2),
        FMAC,
        other,
    ]
    for factor in ((A, A, C), (A, B, A)):
        own = Step("v_fmac_f32.vv", factor)
        assert fused([FMAC, own]) == [FMAC, own]
        assert fused([own, FMAC]) == [replace(own, handler="fly_fmac_run_vv", extra=2), FMAC]
    for step in (Step("v_fmac_f32.vv", (D, B, C)), Step("v_fmac_f32.sv", (A, 4, C))):
        assert fused([FMAC, step]) == [FMAC, step]
        assert fused([step, FMAC]) == [step, FMAC]


def test_what_is_a_run_of_pairs() -> None:
    other = Step("v_mov_b32.s", (D, 4))
    assert fused(PAIR) == PAIR
    later = [
        replace(PAIR[0], immediate=0, extra=12),
        *(replace(step, immediate=n) for step, n in zip(PAIR[1:], (0, 12), strict=True)),
    ]
    first = replace(PAIR[0], handler="fly_read_pairs", operands=(A, B, C, 2, 0, 12))
    assert fused([*PAIR, *later]) == [first, *PAIR[1:], *later]
    assert fused([*PAIR, other, *later]) == [*PAIR, other, *later]
    apart = [replace(later[0], operands=(A, B, D)), *later[1:]]
    assert fused([*PAIR, *apart]) == [*PAIR, *apart]
