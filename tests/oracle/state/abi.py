"""The initial state of a kernel: arguments, dispatch packet, registers.

LLVM's AMDGPUUsage: "Kernarg", "Initial Kernel Execution State", "Kernel Descriptor".
"""

from __future__ import annotations

import struct

import numpy as np

from oracle.program import hsaco
from oracle.state.waves import EXEC, LANES, Waves

SCRATCH_BASE = 0x3000_0000_0000
TTMP = 108  # the scalar register number of TTMP0

HIDDEN = {
    "hidden_block_count_x": lambda g, b, d: g[0],
    "hidden_block_count_y": lambda g, b, d: g[1],
    "hidden_block_count_z": lambda g, b, d: g[2],
    "hidden_group_size_x": lambda g, b, d: b[0],
    "hidden_group_size_y": lambda g, b, d: b[1],
    "hidden_group_size_z": lambda g, b, d: b[2],
    "hidden_grid_dims": lambda g, b, d: 3 if g[2] * b[2] > 1 else 2 if g[1] * b[1] > 1 else 1,
    "hidden_dynamic_lds_size": lambda g, b, d: d,
}


def kernarg_bytes(kernel: hsaco.Kernel, explicit: bytes, grid, block, dynamic_lds) -> bytes:
    """Returns the whole kernarg segment: explicit arguments, then the hidden ones by their
    metadata."""
    # Rounded up: LLVM may load a whole aligned dwordx4 of which only some dwords are arguments.
    content = bytearray((max(kernel.kernarg_bytes, len(explicit)) + 63) // 64 * 64)
    content[: len(explicit)] = explicit
    for argument in kernel.arguments:
        kind = argument[".value_kind"]
        if kind.startswith("hidden_"):
            value = HIDDEN.get(kind, lambda *_: 0)(grid, block, dynamic_lds)
            size = argument[".size"]
            content[argument[".offset"] : argument[".offset"] + size] = value.to_bytes(
                size, "little"
            )
    return bytes(content)


def packet_bytes(kernel, grid, block, dynamic_lds, kernarg: int) -> bytes:
    """Returns the AQL dispatch packet (HSA specification, hsa_kernel_dispatch_packet_t)."""
    items = [g * b for g, b in zip(grid, block, strict=True)]
    dimensions = HIDDEN["hidden_grid_dims"](grid, block, 0)
    return struct.pack(
        "<HHHHHHIIIIIQQQQ",
        *(2, dimensions, *block, 0, *items),
        *(kernel.scratch_bytes, kernel.lds_bytes + dynamic_lds, 0, kernarg, 0, 0),
    )


def set_up(
    w: Waves,
    target: str,
    kernel: hsaco.Kernel,
    groups: np.ndarray,
    block: tuple[int, int, int],
    pointers: dict[int, int],
    preloaded: np.ndarray,
    wave_offsets: np.ndarray | None,
) -> None:
    """Sets v0, EXEC and the scalar registers of all waves of `groups` (uint[groups, 3]).

    `pointers`: the value of a user register pair by its bit in the kernel code properties.
    `preloaded`: uint32 arguments in registers. `wave_offsets`: each wave's offset in scratch, None
    if the hardware does not expose it (gfx942 and later).
    """
    items = block[0] * block[1] * block[2]
    waves = w.count // len(groups)
    wave = np.tile(np.arange(waves), len(groups))
    item = wave[:, None] * w.lanes + np.arange(LANES)
    x, y, _ = block
    packed = item % x | item // x % y << 10 | item // (x * y) << 20
    w.put_v32(0, packed.astype(np.uint32), None)
    live = np.clip(items - wave * w.lanes, 0, w.lanes)
    some = (np.uint64(1) << (live % 64).astype(np.uint64)) - np.uint64(1)
    w.put_s64(EXEC, np.where(live == 64, ~np.uint64(0), some))

    user: list = []
    if kernel.properties & 1 << 0:
        # The resource through which gfx90a's buffer instructions access scratch: swizzled, ADD_TID.
        user += [SCRATCH_BASE, SCRATCH_BASE >> 32 | 1 << 31, 0xFFFFFFFF, 1 << 23 | 3 << 21]
    for bit in range(1, 6):
        if kernel.properties & 1 << bit:
            user += [pointers.get(bit, 0), pointers.get(bit, 0) >> 32]
    if kernel.properties & 1 << 6:
        user.append(kernel.scratch_bytes)
    user += [int(word) for word in preloaded]
    # If LLVM pads the user registers, the descriptor counts the padding (gfx1100 needs 16 in all).
    count = kernel.rsrc2 >> 1 & (63 if target == "gfx1250" else 31)
    user += [0] * (count - len(user))
    values = user
    by_trap_registers = target.startswith("gfx12")
    if by_trap_registers:
        # "Architected workgroup ids": x in TTMP9, y and z as halves of TTMP7.
        x, y, z = (np.repeat(groups[:, axis], waves).astype(np.uint32) for axis in range(3))
        w.put_s32(TTMP + 9, x)
        w.put_s32(TTMP + 7, y | z << np.uint32(16))
        # "Architected": the wave's number in its workgroup, which llvm.amdgcn.wave.id reads.
        w.put_s32(TTMP + 8, wave.astype(np.uint32) << np.uint32(25))
    for axis in range(0 if by_trap_registers else 3):
        if kernel.rsrc2 >> (7 + axis) & 1:
            values.append(np.repeat(groups[:, axis], waves))
    if kernel.rsrc2 >> 10 & 1:
        values.append(0)
    if kernel.rsrc2 & 1 and wave_offsets is not None:
        values.append(wave_offsets)
    for index, value in enumerate(values):
        w.put_s32(index, (np.asarray(value) & 0xFFFFFFFF).astype(np.uint32))
