"""Layout of the structures shared by Python and the generated handlers: a table of byte offsets for
each.

    wave state   registers of one wave, and what it waits for       (offset 0 = s0)
    micro-op     one decoded step, 64 bytes                          (handlers traverse these)
    region       a range of guest addresses and the host memory it maps to
    context      one thread of a launch: regions, code map, grid, budget
    slot         one resident workgroup: a header, its waves, its LDS, its scratch;
                 the workgroups of a cluster have consecutive slots

A row is a vector register: 64 lanes of 4 bytes. Rows are 64-byte aligned, so that one row is four
aligned AVX-512 vectors.
"""

from __future__ import annotations

import struct

LANES = 64
ROW = LANES * 4

# -- wave state -------------------------------------------------------------------------------

SGPR = 0  # 128 scalar registers by their encoded number: VCC 106, M0 124, EXEC 126
VCC = 106 * 4
M0 = 124 * 4
EXEC = 126 * 4
SCC = 512  # u32, 0 or 1
MODE = 516  # u32, MODE: round 3:0, denormals 7:4, DX10_CLAMP 8, IEEE 9, FP16_OVFL 23
OP = 520  # the micro-op to resume at
LANDING = 528  # u64: number of the instruction that started the current straight run
QUANTUM = 536  # i64: instructions left until the wave yields
STATUS = 544  # u32, see the STATUS_ constants
FAULT_KIND = 548  # u32, index into FAULTS
FAULT_LANE = 552  # u32
FAULT_SIZE = 556  # u32, bytes of the access
FAULT_ADDRESS = 560  # u64
CONTEXT = 568  # pointer to the launch context
LDS_BASE = 576  # host pointer
LDS_SIZE = 584  # u64, bytes
SCRATCH_BASE = 592  # host pointer; lane l's memory starts at l * SCRATCH_SIZE
SCRATCH_SIZE = 600  # u64, bytes of each lane
SAVED_EXEC = 608  # EXEC before a DPP instruction narrowed it
GROUP = 616  # 3 × u32: the workgroup's x, y, z
WAVE = 628  # u32: which wave of the workgroup
MXCSR_SINGLE = 632  # u32: host control word for f32 operations
MXCSR_DOUBLE = 636  # u32: host control word for f16 and f64 operations
SCALAR_TEMP = 640  # 8 × u64: operands made by an adapter
VGPR_LIMIT = 704  # u64: byte offset in the wave state of the end of the VGPRs
SIGNALS = 712  # u32: how often the wave has signalled the barrier (gfx12)
IB_STS2 = 716  # u32: the hardware register with the wave's place in its cluster
ZEROS = 720  # 16 bytes of zeros: the result of a buffer load out of range
PRIVATE_BASE = 736  # u64: src_flat_scratch_base, 0 if the target has none
SLOT = 744  # pointer to the workgroup's slot
JOINED = 752  # u32: number of the named barrier that the wave has joined, 0 for none
SEEN = 756  # u32: how often that was complete when the wave joined it or last went past it
WAITS_AT = 760  # u32: the kind of barrier that the wave waits at, see the AT_ constants
CLUSTER_BARRIER = 768  # pointer to the barrier of the wave's cluster
CLUSTER_SEEN = 776  # u32: how often that was complete when the wave last went past it
ADDRESS = 1024  # 64 × u64: the addresses of a gather or scatter
TEMP = 1536  # TEMP_ROWS rows: operands made by an adapter
TEMP_ROWS = 28
SINK = TEMP + TEMP_ROWS * ROW  # 16 bytes a lane: absorbs a buffer store out of range
VGPR = SINK + 16 * LANES  # the vector registers, then the constants
HEADER = VGPR

AT_OWN, AT_NAMED, AT_CLUSTER = range(3)
STATUS_READY, STATUS_BARRIER, STATUS_DONE, STATUS_FAULT, STATUS_DECODE = range(5)

# Kinds of faults in a fault record; engine.faults has their messages.
FAULTS = (
    "none",
    "unmapped",  # no region contains the address
    "read-only",
    "misaligned",
    "lds",  # outside the workgroup's LDS
    "scratch",  # outside the lane's private memory
    "end of code",  # control ran past the last instruction
    "trap",
    "register index",  # relative addressing beyond the allocated registers
    "block register",  # one that M0 selects and the kernel does not allocate
    "aperture",  # a flat access that its memory does not support
    "inactive lanes",  # an instruction that is known with all lanes only
    "tensor",  # a descriptor of a tensor that is not supported
    "swizzled",  # a buffer resource of gfx1250 that swizzles
    "named barrier",  # one with a wrong number or no members, or that the wave has not joined
    "deadlock",  # all waves of a workgroup wait at barriers
    "cluster deadlock",  # all waves of a cluster wait at barriers, or have ended
    "observer",  # an observer in Python stopped the launch
)
FAULT = {name: number for number, name in enumerate(FAULTS)}

# -- micro-op ---------------------------------------------------------------------------------

OP_SIZE = 64
OP_HANDLER = 0
OP_OPERANDS = 8  # 6 × u32: byte offsets into the wave state, in the order of the signature
OP_IMMEDIATE = 32  # u64
OP_LINK = 40  # a branch's target micro-op, or a memory access's last region
OP_PC = 48  # u64: guest-independent, the code object's own numbering
OP_INDEX = 56  # u32: number of the instruction, for counting
OP_EXTRA = 60  # u32: a second small immediate
MICRO_OP = struct.Struct("<Q6IQQQII")
assert MICRO_OP.size == OP_SIZE

# -- region -----------------------------------------------------------------------------------

REGION_SIZE = 32
REGION_LOW = 0  # u64: first guest address
REGION_LENGTH = 8  # u64
REGION_DELTA = 16  # host address minus guest address
REGION_FLAGS = 24  # u64: bit 0, writable
REGION = struct.Struct("<QQqQ")
WRITABLE = 1

# Flat addresses with one of these high dwords go to LDS or to private memory. LLVM only needs them
# to be ranges of 4 GiB that contain nothing else.
SHARED_APERTURE = 0x0001_0000
PRIVATE_APERTURE = 0x0002_0000
# Where addresses of private memory name the lane (`AmdFacts.global_scratch`), LLVM takes an address
# as private if its upper six bits are those of src_flat_scratch_base, and puts the lane's number at
# bit 52. Each wave has its own base, so that another wave's address is out of range.
GLOBAL_SCRATCH = 1 << 58
GLOBAL_SCRATCH_SHIFT = 58
GLOBAL_SCRATCH_LANE = 52
GLOBAL_SCRATCH_WAVE = 1 << 26  # distance of the waves' bases
# Triton masks a lane of an LDS access by this address: loads give 0, stores are dropped, as
# hardware does out of range. Any other address out of range is a fault.
LDS_MASKED = 0x7FFF_FFFF
# The resource of swizzled buffer accesses to private memory (gfx90a) has this base.
SCRATCH_BUFFER = 0x3000 << 32

# -- context ----------------------------------------------------------------------------------


class _Fields:
    """Names of consecutive u64 fields; its attributes are their offsets."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names
        self.offsets = {name: 8 * number for number, name in enumerate(names)}
        self.size = 8 * len(names)

    def __getattr__(self, name: str) -> int:
        try:
            return self.offsets[name]
        except KeyError:
            raise AttributeError(name) from None


CTX = _Fields(
    (
        "regions",  # pointer to the sorted region table
        "region_count",
        "load_base",  # added to the code object's own addresses
        "code_low",  # guest address of the first byte of code
        "code_dwords",  # their number
        "code_map",  # pointer to one micro-op pointer for each dword of code, 0 = not decoded
        "tickets",  # pointer to the number of the next cluster, shared by all threads
        "next_group",  # the cluster after the last one that this thread started
        "next_x",  # and its place in the grid of clusters
        "next_y",
        "next_z",
        "end_group",  # the number of clusters
        "grid_x",  # the grid, in clusters
        "grid_y",
        "cluster_size",  # workgroups in a cluster; at least 1
        "cluster_x",
        "cluster_y",
        "cluster_sgpr",  # byte offset of the SGPR with the place in the cluster, or 2^64-1
        "waves",  # waves in a workgroup
        "slots",  # how many clusters are resident at once
        "used_slots",  # how many of their places have ever held one
        "next_slot",  # the place that runs first in the next slice
        "live_groups",  # clusters that have started and not ended
        "slot_base",  # pointer to the first slot
        "slot_stride",
        "wave_stride",
        "lds_offset",  # of the LDS in a slot
        "lds_size",
        "scratch_offset",  # of the first wave's private memory in a slot
        "scratch_size",  # bytes of each lane
        "entry",  # pointer to the kernel's first micro-op
        "quantum",  # instructions a wave runs before another gets its turn
        "executed",  # instructions executed so far, by all waves
        "limit",  # stop when `executed` passes this
        "slice_end",  # return to Python when `executed` passes this
        "done_groups",  # clusters that have ended
        "stopped_wave",  # pointer to the wave that faulted or needs code decoded
        "template",  # pointer to a wave state: the initial header and constants of all waves
        "template_constants",  # byte offset of the constants in it
        "template_constants_size",
        "ids",  # pointer to rows for each wave: the initial v0, and perhaps v1 and v2
        "id_bytes",  # their size for each wave
        "masks",  # pointer to a u64 for each wave: the initial EXEC
        "group_x_sgpr",  # byte offset of the SGPR that gets the workgroup's x, or 2^64-1
        "group_y_sgpr",
        "group_z_sgpr",
        "group_yz_sgpr",  # likewise of a register with y in its low half and z in its high half
        "wave_sgpr",  # likewise of one whose bits 25 to 29 get the wave's number in its workgroup
        "private_base",  # src_flat_scratch_base of the first wave, 0 if the target has none
        "split_barriers",  # 1: barriers have separate signal and wait (gfx12)
        "lanes",  # of a wave, 32 or 64
        "vgpr_bytes",  # size of the allocated vector registers
        "named_bytes",  # of those up to the last one that the code can name, and the ids
        "saved_mxcsr",  # the host's own control word
        "control",  # u32: the active control word
        "matrix",  # pointer to the thread's matrix workspace, MATRIX_SIZE bytes
        "watch",  # the function that fly_watch calls: (wave, number of the event) → 0 to continue
    )
)

# -- slot -------------------------------------------------------------------------------------

SLOT_ACTIVE = 0  # u64
SLOT_PREPARED = 8  # u64: the waves' constant parts have been copied in
SLOT_BARRIERS = 64  # named barriers by number, 16 bytes each; 0: the cluster's
NAMED_BARRIERS = 16
EXPECTED, ARRIVED, COMPLETED = 0, 4, 8  # u32 each
SLOT_HEADER = SLOT_BARRIERS + 320

# -- site --------------------------------------------------------------------------------------

# Counters of one instruction of an observed launch.
SITE = _Fields(
    (
        "times",  # number of executions
        "lanes",  # the sum of active lanes
        "partial",  # executions with EXEC narrower than the wave's work items
        "idle",  # executions with no lane active
    )
)

# Parameters and sums of the measurement of one memory access of an observed launch.
PHASES = 9  # room for eight, and a terminating 0
ACCESS = _Fields(
    (
        "lanes",  # active lanes that accessed this access's own memory
        "private",  # lanes that accessed private memory instead (flat, swizzled buffers)
        "shared",  # lanes that accessed LDS instead (flat)
        "units",  # global: cache lines touched; LDS: cycles
        "ideal",  # the minimum for that many lanes or phases
        "size",  # bytes per lane; parameters start here
        "shift",  # log2 of a cache line's bytes
        "granule",  # LDS: log2 of bytes that go together if all addresses are multiples
        "banks",  # number of banks, each 4 bytes wide
        *(f"phase{number}" for number in range(PHASES)),  # masks of lanes; 0 terminates them
        "known_mask",  # the last pattern that was counted: EXEC, 0 for none
        "known_key",  # the part of the base or alignment that the result depends on
        "known_units",  # the result
        "known_ideal",
    )
)
KNOWN = ACCESS.size  # 64 × u64: the pattern's addresses, relative to the first active lane's
ACCESS_BYTES = KNOWN + 8 * LANES

# -- matrix workspace --------------------------------------------------------------------------

# A and B of a matrix instruction as numbers: up to 2048 each, followed by as many exponents. The
# strides keep equal offsets in two planes off the same cache sets.
MATRIX_PLANE = 4 * 2048 + 192
MATRIX_B = 2 * MATRIX_PLANE
MATRIX_ROW = 2048  # stride in bytes between rows of A, if rows are separate
MATRIX_SIZE = 4 * MATRIX_PLANE

POISON = 0x7FF7_BAD0  # a quiet NaN that no computation makes, initially in registers and LDS

# Results of the grid driver.
RUN_DONE, RUN_SLICE, RUN_TIMEOUT, RUN_FAULT, RUN_DECODE = range(5)
