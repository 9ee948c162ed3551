"""The probe kernel for gfx11 and gfx12: gfx9's (probe.py), in those targets' spelling.

The work items are the same; waves have 32 lanes, so there are twice as many, and a lane mask is one
register: s16 and vcc_lo initially hold the wave's, s[20:21] hold EXEC's low word and zero.

`wide`: waves of 64 lanes instead, whose masks are as gfx9's.
"""

from __future__ import annotations

import functools
import re

from oracle.launching import build
from oracle.probes import probe
from oracle.program.rdna_names import of_rdna

LANES = 32
WAVES = probe.WAVES * probe.LANES // LANES
# One lane; the last active lane is the first of sixteen; …
PARTS = (1 << 21, 0x00018421, 0x55555555, 0, 0xFF00F0C1, 0x80000001, 0xFFFF0000, 1)
MASKS = tuple(mask for part in PARTS for mask in (0xFFFFFFFF, part))  # as probe.MASKS
_RETURN = "th:TH_ATOMIC_RETURN"
RETURNING = {"gfx1100": "glc", "gfx1201": _RETURN, "gfx1250": _RETURN}
# The group's number: in a register after the user registers, in a trap register on gfx12.
GROUP = {"gfx1100": "s2", "gfx1201": "ttmp9", "gfx1250": "ttmp9"}
_GFX12_WAITS = tuple(
    f"s_wait_{counter} 0x0" for counter in ("loadcnt", "storecnt", "dscnt", "kmcnt")
)
WAITS = {
    "gfx1100": ("s_waitcnt vmcnt(0) lgkmcnt(0)", "s_waitcnt_vscnt null, 0x0"),
    "gfx1201": _GFX12_WAITS,
    "gfx1250": _GFX12_WAITS,
}
# A raw resource's last word: OOB_SELECT (bits 29:28) is 3, offsets are compared with NUM_RECORDS.
RAW_RESOURCE = "0x31004000"

_HALF = {"vcc": "vcc_lo", "exec": "exec_lo"}


def spelled(text: str, target: str, wide: bool = False) -> str:
    """Converts lines of gfx9 assembly to a target's names, with lane masks in one register unless
    waves are `wide`."""
    return "\n".join(
        "  " + line for given in text.split("\n") for line in _line(given.strip(), target, wide)
    )


def _line(line: str, target: str, wide: bool) -> list[str]:
    mnemonic, _, rest = line.partition(" ")
    if mnemonic == "s_waitcnt":
        return list(WAITS[target])
    if not wide and (match := re.fullmatch(r"s_mov_b64 (vcc|exec|s\[16:17\]), (.*)", line)):
        return [_move_mask(match[1], match[2])]
    if target == "gfx1250" and (match := re.fullmatch(r"s_mov_b32 s(\d+), 0x27000", line)):
        return _wide_resource(int(match[1]) - 3)
    if "{rtn}" in rest:
        rest = rest.replace("{rtn}", RETURNING[target])
    suffix = re.search(r"(_e32|_e64|_dpp)?$", mnemonic)[0]
    name = of_rdna(mnemonic.removesuffix(suffix), target)
    if name in ("v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32"):
        suffix = ""  # gfx11 only has the long encoding
    if name.startswith("v_") and not wide:
        rest = re.sub(r"\b(vcc|exec)\b", lambda match: _HALF[match[1]], rest)
    if name.startswith("buffer_") and target.startswith("gfx12"):
        rest = re.sub(r"\], 0\b", "], null", rest)
    return [f"{name}{suffix} {rest}".rstrip().replace("0x27000", RAW_RESOURCE)]


def _wide_resource(first: int) -> list[str]:
    """Converts gfx9's resource, without its stride, in four registers to gfx1250's. s60 is free."""
    high, records, last = (f"s{first + k}" for k in (1, 2, 3))
    return [
        f"s_and_b32 {high}, {high}, 0xffff",
        f"s_lshl_b32 s60, {records}, 25",
        f"s_or_b32 {high}, {high}, s60",
        f"s_lshr_b32 {records}, {records}, 7",
        f"s_mov_b32 {last}, 0",
    ]


def _move_mask(left: str, right: str) -> str:
    """Moves a lane mask: the low word of gfx9's."""

    def low(name: str) -> str:
        return _HALF.get(name) or re.sub(r"s\[(\d+):\d+\]", r"s\1", name)

    return f"s_mov_b32 {low(left)}, {low(right)}"


# The lanes whose operands scalar instructions use in turn. gfx12 has floats there.
_EIGHT = (0, 3, 9, 13, 19, 21, 28, 30)
SEEN = {"gfx1100": (0, 9, 21, 30), "gfx1201": _EIGHT, "gfx1250": _EIGHT}
WIDELY_SEEN = {"gfx1100": (0, 19, 33, 60), "gfx1201": (0, 9, 19, 30, 33, 45, 52, 60)}
_NEXT = """  s_mov_b64 exec, -1
  s_add_u32 s6, s6, s10
  s_addc_u32 s7, s7, 0
"""
# In wide waves v9 gets both halves of EXEC.
_UPPER = """  s_mul_i32 s30, exec_hi, 3
  s_xor_b32 s29, s29, s30
"""


def _scalar(lanes: tuple[int, ...], wide: bool) -> str:
    """Loads these lanes' operands in turn; each turn's record is that of another lane."""
    count = probe.LANES if wide else LANES

    def chosen(lane: int) -> str:
        low, high = (1 << lane) & 0xFFFFFFFF, (1 << lane) >> 32
        more = f"  s_mov_b32 exec_hi, {high}\n" if wide else ""
        return f"  s_mov_b32 exec_lo, {low}\n{more}"

    turns = (
        f"""  v_readlane_b32 s24, v2, {lane}
  v_readlane_b32 s25, v3, {lane}
  v_readlane_b32 s26, v4, {lane}
  v_readlane_b32 s27, v5, {lane}
  v_readlane_b32 s44, v6, {lane}
  s_mov_b64 exec, s[20:21]
  s_mov_b64 vcc, s[22:23]
  s_mov_b64 s[16:17], s[22:23]
  s_mov_b32 s17, s23
  s_bitcmp1_b32 s22, {lane % 32}
  {{text}}
  s_cselect_b32 s28, 1, 0
  s_mov_b32 s29, exec_lo
{_UPPER if wide else ""}{chosen(count // len(lanes) * number)}  v_mov_b32_e32 v8, s28
  v_mov_b32_e32 v9, s29
  v_mov_b32_e32 v10, s16
  v_mov_b32_e32 v11, s17
  global_store_dwordx4 v12, v[8:11], s[6:7]
"""
        for number, lane in enumerate(lanes)
    )
    return "".join(turns) + _NEXT


@functools.cache
def frame(target: str, wide: bool = False) -> probe.Frame:
    gfx9, group = probe.GFX9, GROUP[target]
    lanes = probe.LANES if wide else LANES
    shift = lanes.bit_length() - 1
    prologue = gfx9.prologue.replace("v13, s2, 6, v0", f"v13, {group}, {shift}, v0")
    prologue = prologue.replace("s_lshl_b32 s3, s2,", f"s_lshl_b32 s3, {group},")
    vector = gfx9.vector.replace("  {text}", "  s_mov_b32 s17, s23\n  {text}")
    scalar = _scalar((WIDELY_SEEN if wide else SEEN)[target], wide)
    epilogue = gfx9.epilogue
    for old, new in (
        ("  .amdhsa_accum_offset 80\n", f"  {build.WIDE}\n" if wide else ""),
        (".wavefront_size: 64", f".wavefront_size: {lanes}"),
        (".max_flat_workgroup_size: 64", f".max_flat_workgroup_size: {lanes}"),
        ("    .agpr_count: 8\n", ""),
    ):
        assert old in epilogue
        epilogue = epilogue.replace(old, new)
    texts = (spelled(text, target, wide) for text in (prologue, gfx9.load, vector, scalar))
    if wide:
        return probe.Frame(*texts, epilogue, probe.WAVES, lanes, tuple(probe.MASKS))
    return probe.Frame(*texts, epilogue, WAVES, lanes, MASKS)
