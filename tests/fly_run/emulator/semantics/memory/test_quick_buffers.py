"""Accesses through raw buffer resources, against NumPy. Each is executed twice by one instruction:
the first time finds the region, lane by lane; the second time all lanes move at once."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support import frame
from emulator_support.engine import assemble, launch
from oracle.probes.rdna_probe import spelled

TARGETS = {"gfx942": 64, "gfx1201": 32, "gfx1250": 32}
BYTES, RECORDS, CONSTANT = 4096, 1003, 12
OLD = 0x11111111
# s[4:5]: the buffer; s[6:7]: the offsets; s[8:9]: old values and results; s20: the turn.
CODE = """s_load_dwordx4 s[4:7], s[0:1], 0x0
s_load_dwordx2 s[8:9], s[0:1], 0x10
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
v_lshlrev_b32 v2, 4, v0
s_waitcnt lgkmcnt(0)
global_load_dword v3, v1, s[6:7]
s_mov_b32 s12, s4
s_mov_b32 s13, s5
s_mov_b32 s14, {records}
s_mov_b32 s15, 0x27000
s_mov_b32 s20, 2
turn:
global_load_dwordx4 v[8:11], v2, s[8:9]
s_waitcnt vmcnt(0)
{mask}
{access}
s_waitcnt vmcnt(0)
{every}
global_store_dwordx4 v2, v[8:11], s[8:9] offset:1024
s_add_u32 s8, s8, 2048
s_addc_u32 s9, s9, 0
s_sub_u32 s20, s20, 1
s_cmp_lg_u32 s20, 0
s_cbranch_scc1 turn
s_endpgm"""
LANE = np.arange(64, dtype=np.uint32)
OFFSETS = {
    "a run": lambda size: LANE * size,
    "a run into the end": lambda size: RECORDS - CONSTANT - 20 * size + LANE * size,
    "a run to the end": lambda size: np.minimum(LANE, 20) * size + RECORDS - CONSTANT - 21 * size,
    "rows": lambda size: LANE % 16 * size + LANE // 16 * 300,
    "one place": lambda size: np.full(64, 40),
    "scattered": lambda size: LANE * 148 % 949 // size * size,
    "some off": lambda size: np.where(LANE % 3 == 1, 0x8000_0000, LANE * size % 900),
    "all off": lambda size: np.full(64, 0x8000_0000),
    "wrapping": lambda size: np.where(LANE < 9, LANE * size, 0xFFFF_FFFF - LANE),
}
LOADS = {"ubyte": 1, "sshort": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
MASKS = {"all lanes": -1, "some lanes": 0x5A0F_FFFE_5A0F_FFFE}


def run(target: str, access: str, memory: np.ndarray, offsets: np.ndarray, rows: np.ndarray, mask):
    """Runs the access in two turns on uint32[2, 64, 4] registers; returns them afterwards."""
    lanes = TARGETS[target]
    wide = lanes == 64
    spell = (lambda text: text) if wide else (lambda text: spelled(text, target))
    low, high = mask & 0xFFFF_FFFF, mask >> 32 & 0xFFFF_FFFF
    some = f"s_mov_b32 exec_lo, {low:#x}" + (f"\ns_mov_b32 exec_hi, {high:#x}" if wide else "")
    every = "s_mov_b64 exec, -1" if wide else "s_mov_b32 exec_lo, -1"
    text = CODE.format(records=RECORDS, mask=some, every=every, access=access)
    code = frame.kernel(
        target,
        spell(text),
        arrays="a o r",
        vgprs=16,
        sgprs=64,
        lanes=lanes,
        items=lanes,
        directives=(".amdhsa_accum_offset 16",) if wide else (),
        metadata=(".agpr_count: 0",) if wide else (),
    )
    registers = np.zeros((2, 2, 64, 4), np.uint32)
    registers[:, 0] = rows
    launch(assemble(code, target), [memory, offsets, registers], block=lanes)
    return registers[:, 1, :lanes]


def active_lanes(mask: int, lanes: int) -> list[int]:
    return [lane for lane in range(lanes) if mask >> lane & 1]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [*LOADS, "short_d16", "short_d16_hi"])
def test_loads(target: str, name: str) -> None:
    rng = np.random.default_rng(1)
    memory = rng.integers(0, 256, BYTES, np.uint8)
    size = LOADS.get(name, 2)
    for pattern, make in OFFSETS.items():
        offsets = make(size).astype(np.uint32)
        for mask in MASKS.values():
            old = np.full((64, 4), OLD, np.uint32)
            access = f"buffer_load_{name} v[8:{7 + max(1, size // 4)}], v3, s[12:15], 0 offen"
            access = access.replace("v[8:8]", "v8") + f" offset:{CONSTANT}"
            found = run(target, access, memory, offsets, old, mask)
            wanted = old[: TARGETS[target]].copy()
            for lane in active_lanes(mask, TARGETS[target]):
                start = int(offsets[lane]) + CONSTANT
                for number in range(max(1, size // 4)):
                    at, width = start + 4 * number, min(size, 4)
                    data = memory[at : at + width].tobytes() if at + width <= RECORDS else b"\0"
                    value = int.from_bytes(data, "little", signed=name == "sshort")
                    if name == "short_d16":
                        value |= OLD & 0xFFFF0000
                    elif name == "short_d16_hi":
                        value = value << 16 | OLD & 0xFFFF
                    wanted[lane, number] = value & 0xFFFF_FFFF
            for turn in (0, 1):
                what = f"{pattern}, {mask:#x}, turn {turn}"
                np.testing.assert_array_equal(found[turn], wanted, what)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["byte", "short", "dword", "dwordx2", "dwordx3", "dwordx4"])
def test_stores(target: str, name: str) -> None:
    size = {"byte": 1, "short": 2}.get(name) or LOADS[name]
    rng = np.random.default_rng(2)
    for pattern, make in OFFSETS.items():
        offsets = make(size).astype(np.uint32)
        for mask in MASKS.values():
            rows = rng.integers(0, 1 << 32, (2, 64, 4), np.uint32)
            memory = rng.integers(0, 256, BYTES, np.uint8)
            wanted = memory.copy()
            for turn in (0, 1):
                for lane in active_lanes(mask, TARGETS[target]):
                    start = int(offsets[lane]) + CONSTANT
                    for number in range(max(1, size // 4)):
                        at, width = start + 4 * number, min(size, 4)
                        if at + width <= RECORDS:
                            data = rows[turn, lane, number : number + 1].view(np.uint8)
                            wanted[at : at + width] = data[:width]
            access = f"buffer_store_{name} v[8:{7 + max(1, size // 4)}], v3, s[12:15], 0 offen"
            access = access.replace("v[8:8]", "v8") + f" offset:{CONSTANT}"
            run(target, access, memory, offsets, rows, mask)
            np.testing.assert_array_equal(memory, wanted, f"{pattern}, {mask:#x}")
