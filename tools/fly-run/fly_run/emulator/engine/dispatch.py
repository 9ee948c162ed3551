"""The initial state of a kernel: registers, arguments and packets set up by hardware and runtime.

Sources: LLVM's "User Guide for AMDGPU Backend", "Initial Kernel Execution State", "Kernel
Descriptor", "Code Object Metadata"; HSA System Architecture, "AQL kernel dispatch packet".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from fly_common.errors import InputError
from fly_image.amd.code_object import Kernel
from fly_target.amd.facts import SEPARATE, UNIFIED, facts_of
from fly_target.target import Target

from fly_run.emulator import state
from fly_run.emulator.lowering.registers import Allocation

Triple = tuple[int, int, int]
KERNARG_ALIGNMENT = 64  # bytes
UNUSED = 0xFFFF_FFFF_FFFF_FFFF  # a number that is no register's
TTMP_6, TTMP_7, TTMP_8, TTMP_9 = 114, 115, 116, 117  # their encoded numbers

# kernel_code_properties: bit, number of SGPRs, name; in the order in which they are set up
USER_SGPRS = (
    (0, 4, "private_segment_buffer"),
    (1, 2, "dispatch_ptr"),
    (2, 2, "queue_ptr"),
    (3, 2, "kernarg_segment_ptr"),
    (4, 2, "dispatch_id"),
    (5, 2, "flat_scratch_init"),
    (6, 1, "private_segment_size"),
)
# The swizzled resource of private memory: handlers recognise its base, the rest is informative.
PRIVATE_RESOURCE = (0, (state.SCRATCH_BUFFER >> 32) | 1 << 31, 0xFFFF_FFFF, 0x00E8_0000)
PACKET = struct.Struct("<HHHHHHIIIIIQQQQ")
# amd_queue_t: the offsets of the high dwords of the apertures.
QUEUE_BYTES, QUEUE_SHARED, QUEUE_PRIVATE = 4096, 0x40, 0x44


def allocation(kernel: Kernel, target: Target) -> Allocation:
    """Returns the vector registers of a kernel. In a unified file the accumulation registers start
    at `accum_offset`; with separate files, the same number of both kinds is allocated."""
    files, most = facts_of(target).registers, facts_of(target).vgprs
    granule = files.encoded_granule * target.wave_size // kernel.wavefront_size
    rows = ((kernel.compute_pgm_rsrc1 & 0x3F) + 1) * granule
    if files.accumulation == SEPARATE:
        return Allocation(min(rows, 256), min(rows, 256), rows, 2 * rows)
    if files.accumulation != UNIFIED:
        return Allocation(min(rows, most), 0, rows, rows)
    base = ((kernel.compute_pgm_rsrc3 & 0x3F) + 1) * 4
    vector = min(rows, base, 256)
    return Allocation(vector, max(0, min(rows - base, 256)), base, max(rows, base))


def mode_register(kernel: Kernel, target: Target) -> int:
    """Returns the initial MODE: round and denormal modes, FP16_OVFL, DX10_CLAMP, IEEE, from
    compute_pgm_rsrc1. On targets without the last two, MODE has other fields there."""
    rsrc1 = kernel.compute_pgm_rsrc1
    mode = (rsrc1 >> 12 & 0xFF) | (rsrc1 >> 26 & 1) << 23
    if not facts_of(target).mode_has_ieee:
        return mode
    return mode | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9


def control_word(rounding: int, denormals: int) -> int:
    """Returns the host's MXCSR for one half of MODE, with all exceptions masked. Must agree with
    `fly_set_mode`."""
    host_rounding = (0, 2, 1, 3)[rounding & 3]
    flush_inputs, flush_results = (denormals & 1) ^ 1, (denormals >> 1 & 1) ^ 1
    return 0x1F80 | host_rounding << 13 | flush_inputs << 6 | flush_results << 15


def control_words(mode: int) -> tuple[int, int]:
    """Returns the host's control words for f32, and for f16 and f64."""
    return control_word(mode, mode >> 4), control_word(mode >> 2, mode >> 6)


def packet(
    grid: Triple, block: Triple, private: int, lds: int, descriptor: int, kernarg: int
) -> bytes:
    """Returns the AQL packet of this launch; its grid counts work items."""
    dimensions = 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1
    items = (groups * size for groups, size in zip(grid, block, strict=True))
    sizes = [count & 0xFFFF_FFFF for count in items]
    return PACKET.pack(2, dimensions, *block, 0, *sizes, private, lds, descriptor, kernarg, 0, 0)


def queue() -> bytes:
    data = bytearray(QUEUE_BYTES)
    struct.pack_into("<I", data, QUEUE_SHARED, state.SHARED_APERTURE)
    struct.pack_into("<I", data, QUEUE_PRIVATE, state.PRIVATE_APERTURE)
    return bytes(data)


def hidden_arguments(
    kernel: Kernel, grid: Triple, block: Triple, lds: int, queue_address: int
) -> list[tuple[int, bytes]]:
    """Returns the arguments that the device fills in, as offset and bytes. Unsupported ones
    (printf, hostcall, heap, remainders, global offsets) are zero: this device has no such service,
    and its grids are whole workgroups."""
    values = {"dynamic_lds_size": lds, "queue_ptr": queue_address}
    values["shared_base"], values["private_base"] = state.SHARED_APERTURE, state.PRIVATE_APERTURE
    values["grid_dims"] = 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1
    for axis, groups, items in zip("xyz", grid, block, strict=True):
        values[f"block_count_{axis}"], values[f"group_size_{axis}"] = groups, items
    found = []
    for argument in kernel.args:
        if not argument.hidden:
            continue
        if argument.offset + argument.size > kernel.kernarg_size:
            raise InputError(
                f"the hidden argument {argument.value_kind} is outside of the arguments"
            )
        value = values.get(argument.value_kind.removeprefix("hidden_"), 0)
        mask = (1 << 8 * argument.size) - 1
        found.append((argument.offset, (value & mask).to_bytes(argument.size, "little")))
    return found


@dataclass(frozen=True)
class Start:
    """The scalar registers that all waves start with, and the byte offsets in the wave state of
    those that receive the workgroup's ids (x, y, z, and y and z together), the wave's number, and
    the workgroup's place in its cluster."""

    sgprs: tuple[int, ...]
    groups: tuple[int, int, int, int]
    wave: int = UNUSED
    cluster: int = UNUSED


def scalar_registers(
    kernel: Kernel,
    target: Target,
    kernarg: bytes,
    kernarg_address: int,
    packet_address: int,
    queue_address: int,
) -> Start:
    pointers = {
        "private_segment_buffer": PRIVATE_RESOURCE,
        "dispatch_ptr": _pair(packet_address),
        "queue_ptr": _pair(queue_address),
        "kernarg_segment_ptr": _pair(kernarg_address),
        "dispatch_id": (0, 0),
        "flat_scratch_init": (0, 0),
        "private_segment_size": (kernel.private_segment_fixed_size,),
    }
    values: list[int] = []
    for bit, count, name in USER_SGPRS:
        if kernel.kernel_code_properties >> bit & 1:
            values += pointers[name]
            assert len(pointers[name]) == count
    length, offset = kernel.kernarg_preload & 0x7F, kernel.kernarg_preload >> 7
    for word in range(offset, offset + length):
        values.append(int.from_bytes(kernarg[4 * word : 4 * word + 4], "little"))
    rsrc2 = kernel.compute_pgm_rsrc2
    user = rsrc2 >> 1 & (1 << facts_of(target).user_sgpr_bits) - 1
    # The number of user registers may cut off preloaded arguments.
    values = (values + [0] * user)[:user]
    if facts_of(target).workgroup_ids_in_ttmp:
        places = 4 * TTMP_9, UNUSED, UNUSED, 4 * TTMP_7
        cluster = 4 * TTMP_6 if facts_of(target).clusters else UNUSED
        return Start(tuple(values), places, 4 * TTMP_8, cluster)
    groups = []
    for bit in (7, 8, 9):
        if rsrc2 >> bit & 1:
            groups.append(4 * len(values))
            values.append(0)
        else:
            groups.append(UNUSED)
    if rsrc2 >> 10 & 1:  # workgroup info
        values.append(0)
    if rsrc2 & 1:  # the wave's offset in private memory is already in its resource
        values.append(0)
    if len(values) > 102:
        raise InputError(f"{kernel.name} requests {len(values)} scalar registers at its start")
    x, y, z = groups
    return Start(tuple(values), (x, y, z, UNUSED))


def _pair(address: int) -> tuple[int, int]:
    return address & 0xFFFF_FFFF, address >> 32


def id_rows(kernel: Kernel, target: Target) -> int:
    """Returns the number of vector registers that hold the work item's id: v0, or as many of v0, v1
    and v2 as the descriptor asks for (ENABLE_VGPR_WORKITEM_ID)."""
    if facts_of(target).packed_work_item_ids:
        return 1
    return 1 + min(kernel.compute_pgm_rsrc2 >> 11 & 3, 2)


def work_items(
    block: Triple, wave_size: int, rows: int = 1, packed: bool = True
) -> tuple[bytes, bytes]:
    """Returns, for each wave of a workgroup, its first `rows` vector registers and its EXEC (the
    last wave may be partial). If packed, v0 has the work items' x, y, z in 10 bits each; otherwise
    each has its own register. A row's lanes beyond the wave are never active."""
    width, height, depth = block
    total = width * height * depth
    waves = -(-total // wave_size)
    places = [
        (item % width, item // width % height, item // (width * height)) for item in range(total)
    ]
    if packed:
        places = [(x | y << 10 | z << 20,) for x, y, z in places]
    places += [(0, 0, 0)] * (waves * wave_size - total)
    beyond = [0] * (state.LANES - wave_size)
    lanes = [
        lane
        for start in range(0, len(places), wave_size)
        for row in range(rows)
        for lane in [place[row] for place in places[start : start + wave_size]] + beyond
    ]
    masks = [(1 << wave_size) - 1] * waves
    if total % wave_size:
        masks[-1] = (1 << total % wave_size) - 1
    return struct.pack(f"<{len(lanes)}I", *lanes), struct.pack(f"<{waves}Q", *masks)


def entry_address(kernel: Kernel, target: Target) -> int:
    """Returns the address at which waves start. With preloaded arguments, the first 256 bytes load
    them for firmware without preloading; this device supports preloading, so they are skipped."""
    prologue = facts_of(target).preload_prologue and kernel.kernarg_preload & 0x7F
    return kernel.entry + (256 if prologue else 0)
