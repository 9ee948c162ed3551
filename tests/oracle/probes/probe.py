"""A kernel that tests many instructions: for each it loads operands, executes, and stores.

Every wave has its own EXEC pattern and lane mask (`PATTERNS`), every lane its own operands: edge
values in all pairs, then random ones. The record of an instruction is 16 bytes per lane: the
destination pair v[8:9], initially `old`, and the scalar pair s[16:17].

    a = v[2:3]   b = v[4:5]   c = v[6:7]   destination v[8:9]   (32-bit operands: the first one)
    s[24:25], s[26:27]: a and b of one lane, for scalar sources     s[16:17]: the scalar result
    s44: c of that lane, for scalar instructions of gfx1201
    v14: 16 * lane, an LDS address per lane; v15: one of four shared by lanes
    v13, s[4:5]: the address of the lane's operands; v12, s[6:7]: the address of its record
"""

from __future__ import annotations

import re
import subprocess
import zlib
from dataclasses import dataclass
from itertools import product

import numpy as np

from oracle.program import hsaco
from oracle.state.waves import DTYPES

WAVES = 24
LANES = 64
SCALAR_LANE = 3  # the lane whose operands the scalar registers hold
# EXEC of consecutive waves. Every second wave has all lanes active, because operands of inactive
# lanes are not tested.
FULL = 0xFFFFFFFFFFFFFFFF
MASKS = [
    *(FULL, 1 << 37),  # one lane
    *(FULL, 0x5555555555555555),
    *(FULL, 0),
    *(FULL, 0xFFFF0000FF00F0C1),
    *(FULL, 0x8000000000000001),
    *(FULL, 1),
    *(FULL, 0x100008000),  # of the upper half only its first lane
]

# Constants of probes come first: scalar registers, which take the first edges, hold them too.
EDGES = {
    "f32": [
        *(0x40000000, 0xBF000000),
        *(0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000),
        *(
            0x7FA00001,
            0x7F800001,
            0xFFC12345,
            0x00000001,
            0x807FFFFF,
            0x00800000,
            0x7F7FFFFF,
            0xFF7FFFFF,
        ),
        *(0x3F7FFFFF, 0x4B800001, 0x4F000000, 0xCF000001, 0x3EFFFFFF, 0x40490FDB, 0xC0200000),
        *(0x3F808000, 0x3F818000),  # midpoints of two bf16
        *(0x7E800000, 0x01000001, 0x4F800000, 0x33800000, 0x38800000, 0x477FF000, 0xB3000000),
        *(0x47888000, 0xC7888000, 0xCF000000),  # between 2^16 and 1.125 · 2^16; -2^31
    ],
    "f64": [
        *(0x4000000000000000, 0xBFE0000000000000),
        *(0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0xBFF0000000000000),
        *(0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x7FF4000000000001),
        0xFFF0000000000001,
        *(0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF),
        *(0x3FEFFFFFFFFFFFFF, 0x41DFFFFFFFE00000, 0x41E0000000000000, 0xC1E0000000100000),
        *(0x41EFFFFFFFE00000, 0x41F0000000000000, 0x400921FB54442D18, 0xC004000000000000),
        *(0x36A0000000000000, 0x47EFFFFFF0000000, 0x3FE0000000000000, 0x4330000000000001),
    ],
    "f16": [
        *(
            0x0000,
            0x8000,
            0x3C00,
            0xBC00,
            0x7C00,
            0xFC00,
            0x7E00,
            0x7D01,
            0xFC01,
            0x0001,
            0x83FF,
            0x0400,
        ),
        *(0x7BFF, 0xFBFF, 0x3BFF, 0x4248, 0xC100, 0x1400, 0x6800, 0x3555, 0x5640),
        *(0x4000, 0xB800),
    ],
    "32": [
        *(5, 0xFFFFFFFD, 0x55555555),
        *(0, 1, 2, 7, 8, 15, 16, 23, 24, 31, 32, 33, 63, 64, 255, 256, 0x7FFF, 0x8000, 0xFFFF),
        *(0x10000, 0x7FFFFF, 0x800000, 0xFFFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE),
        *(0xFFFFFFFF, 0xAAAAAAAA, 0x0C0D0B0A, 0x01020304, 0xFF00FF00, 0x89ABCDEF),
    ],
    "64": [
        *(0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 1 << 63),
        *(5, (1 << 64) - 3),
        *((1 << 64) - 1, (1 << 64) - 2, 0xAAAAAAAA55555555, 0x00000001FFFFFFFF, 0xFFFFFFFF00000000),
    ],
    "16": [
        0,
        1,
        2,
        5,
        0xFFFD,
        7,
        15,
        16,
        17,
        0x7F,
        0x80,
        0xFF,
        0x100,
        0x7FFF,
        0x8000,
        0x8001,
        0xFFFF,
        0xAAAA,
    ],
}
# Floats without signalling NaNs and, except infinities, of at most 256: for operations that the
# manuals leave unspecified elsewhere.
EDGES["tame16"] = [0, 0x8000, 1, 0x83FF, 0x3C00, 0xB800, 0x3400, 0x5BFF, 0xDC00, 0x7C00, 0x7E00]
EDGES["tame32"] = [
    *(0, 0x80000000, 1, 0x807FFFFF, 0x3F800000, 0xBF000000, 0x3E800000, 0x3F400000, 0x437FFFFF),
    *(0xC3800000, 0x40490FDB, 0x3DCCCCCD, 0x7F800000, 0xFF800000, 0x7FC00000),
]
EDGES["number32"] = EDGES["tame32"][:-1]  # no NaN
EDGES["tame64"] = [
    *(0, 1 << 63, 1, 0x3FF0000000000000, 0xBFE0000000000000, 0x406FE00000000000),
    *(0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x400921FB54442D18),
]
# Floats whose products and their sums are exact in f32, so that the order of sums does not matter.
EDGES["exact16"] = [0, 0x8000, 0x3C00, 0xBC00, 0x3800, 0xB800, 0x4200, 0xC500, 0x4880, 0x4D40]
EDGES["exact32"] = [0, 0x80000000, 0x3F800000, 0xBF000000, 0x40400000, 0xC1A80000, 0x43808000]
# The same for bf16.
EDGES["brain16"] = [0, 0x8000, 0x3F80, 0xBF80, 0x3F00, 0x4040, 0xC0A0, 0x4110, 0xC1A8, 0x4228]
# Scales: only the exponent matters.
EDGES["scale32"] = [
    *(0x3F800000, 0x40000000, 0x3F000000, 0x3EC00000, 0x447A0000, 0x3A83126F),
    *(0x7E000000, 0x01800000, 0x7F800000, 0xFFABCDEF),
]
# Moderate floats, and the special values that an 8-bit format can represent.
EDGES["small32"] = [
    *(0, 0x80000000, 0x3F800000, 0xBF800000, 0x3E4CCCCD, 0x3F8CCCCD, 0x43E00000, 0xC3E80000),
    *(0x43E80001, 0x43700000, 0x43780000, 0x47600000, 0x47700000, 0x7F800000, 0xFF800000),
    *(0x7FC00000, 0x3B000000, 0x3A800000, 0x3AC00000, 0x37800000, 0x37000000, 0x40E80000),
]
EDGES["finite32"] = [v for v in EDGES["small32"] if v & 0x7F800000 != 0x7F800000]
EDGES["finite16"] = [0, 0x8000, 0x3C00, 0xBC00, 0x4480, 0x4B00, 0x3555, 0x0400, 0x5640, 0xD7FF]
# Moderate floats mixed with special values and, for bf16, values whose products reach 2^128.
EDGES["odd16"] = [
    *[0, 0x8000, 0x3C00, 0xBC00, 0x4248, 0xC100, 0x3555, 1, 0x83FF, 0x0400, 0x7BFF, 0x1401] * 6,
    *(0x7C00, 0xFC00, 0x7E00),
]
EDGES["oddbrain16"] = [
    *[0, 0x8000, 0x3F80, 0xBF81, 0x4049, 0xC2F7, 0x3DCC, 1, 0x807F, 0x0080, 0x1F81] * 6,
    *(0x5F00, 0x5F40, 0x5F80, 0xDFC0, 0x7F00, 0x7F80, 0xFF80, 0x7FC0),
]
# bf16 numbers whose products and sums need rounding, including a subnormal.
EDGES["ragged16"] = [0x3F80, 0xBF81, 0x4049, 0xC2F7, 0x3DCC, 0x4640, 0xC731, 0x3812, 1, 0x8000]
# bf16 whose products are halfway between two bf16, to even and to odd (7 · 37, 9 · 29), and addends
# far below them: rounding to f32 first would lose on which side of the middle the sum is.
EDGES["tiebrain16"] = [0x40E0, 0x4214, 0x4110, 0xC1E8, 0x2B80, 0xAB80, 0, 0x3F80]
# Finite bf16 of every sign and moderate magnitude, of random fractions.
EDGES["tamebrain16"] = [0x3F80, 0xBF81, 0x4049, 0x3DCC, 0xC640, 0x3812, 0x3F01, 0xBEFF]
# Special values of bf16, few enough for all pairs: zeros, infinities, quiet NaN.
EDGES["edgebrain16"] = [0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 1, 0x8001]
# For sine and cosine: within ±256 turns; neither is zero there.
EDGES["brainturn16"] = [0x3E00, 0xBF20, 0x4049, 0x41B1, 0x3DCC, 0xC10A, 0xBF81, 0x3812]
# Kinds that are not mixed with random numbers.
CHOSEN = (
    "scale32",
    "small32",
    "finite32",
    "finite16",
    "ragged16",
    "odd16",
    "oddbrain16",
    "edgebrain16",
    "brainturn16",
    "tiebrain16",
)


@dataclass(frozen=True)
class Probe:
    """`text`: one or more lines of assembly. `sources`: the types of a, b, c. `result`: the type of
    v[8:9], or of s[16:17] for a `scalar` instruction ("f32", "2f16", "b64", …). `ulp`: the
    tolerance of a float result. `signalling`: the manual passes NaNs through, quiet or not.
    `tininess`: a result that rounds up to the smallest normal number may be flushed, because
    tininess may be detected before or after rounding. `about`: the mnemonic, if it is not the first
    line's."""

    text: str
    sources: tuple[str, ...]
    result: str = "b64"
    ulp: int = 0
    scalar: bool = False
    signalling: bool = False
    tininess: bool = False
    about: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(edge_kind(kind) for kind in self.sources)


def edge_kind(kind: str) -> str:
    return kind if kind in EDGES else kind[1:]


def operands(columns: tuple[str, ...], rng: np.random.Generator) -> np.ndarray:
    """Returns uint64[WAVES * 64, 4]: a, b, c and the destination's old value."""
    count = WAVES * LANES
    result = rng.integers(0, 1 << 64, (count, 4), np.uint64)
    # Every pair of edges of the first two; the third uses another stride.
    edges = [np.array(EDGES[kind], np.uint64) for kind in columns]
    pairs = list(product(*(range(len(e)) for e in edges[:2])))
    order = rng.permutation(len(pairs))
    for row in range(count * 3 // 4):
        pair = pairs[order[row % len(pairs)]]
        choice = [*pair, *(rng.integers(len(e)) for e in edges[2:])]
        for column, (edge, kind) in enumerate(zip(edges, columns, strict=True)):
            value = edge[choice[column]]
            if kind.endswith("16"):  # the upper half has its own edge
                value |= edge[rng.integers(len(edge))] << np.uint64(16)
            result[row, column] = value
    # Scalar sources are those of one lane per wave: edges are rotated through it, for waves of 64
    # lanes (every second turn) and of 32.
    for turn, row in enumerate(range(SCALAR_LANE, count, LANES // 2)):
        for column, edge in enumerate(edges):
            step = turn // 2 + turn % 2 * (len(edge) // 2)
            value = edge[(step * (1, 5, 7, 11)[column] + column) % len(edge)]
            other = edge[(turn * 3 + column) % len(edge)] if columns[column].endswith("16") else 0
            result[row, column] = value | np.uint64(other) << np.uint64(16)
    for column, kind in enumerate(columns):  # occasionally, random floats of moderate size
        rows = np.arange(count * 3 // 4, count, 2 if kind in ("f16", "f32", "f64") else 1)
        rows = rows[rows % (LANES // 2) != SCALAR_LANE]
        if kind[:5] in ("exact", "brain"):
            result[rows, column] = exact(kind, rng, len(rows))
        elif kind in CHOSEN:
            result[rows, column] = rng.choice(np.array(EDGES[kind], np.uint64), len(rows))
        elif kind.startswith(("f", "tame", "number")):
            size = int(kind[-2:]) // 8
            values = rng.standard_normal(len(rows)) * 8.0 ** rng.integers(-3, 3, len(rows))
            result[rows, column] = np.clip(values, -256, 256).astype(f"f{size}").view(f"u{size}")
    _equal_ones(result, columns)
    _triples(result, columns)
    return result


def _equal_ones(operands: np.ndarray, columns: tuple[str, ...]) -> None:
    """Makes operands of some lanes equal to the wave's scalar ones, for waves of 64 lanes and of
    32; and in some lanes makes all operands equal."""
    if len(set(columns)) > 1:
        return
    half = LANES // 2
    for turn, start in enumerate(range(0, len(operands), half)):
        # Each of them is the last of 16 lanes in turn, to detect errors in the last lane of code
        # that processes 16 lanes at once.
        for lane, of in ((10, start // LANES * LANES), (16, start)):
            a, b = operands[of + SCALAR_LANE, :2]
            same = (a, b, a), (b, a, b), (a, a, b), (b, b, a), (a, a, a), (b, b, b)
            for number, values in enumerate(same):
                place = start + lane + (number + turn) % len(same)
                operands[place, : len(columns)] = values[: len(columns)]


# Sources of a sum a·b + c that is so close to the midpoint of two numbers that double rounding
# gives a wrong result, and sums with next to nothing, of either sign. Kind: (a, b, c), …
TRIPLES = {
    "f16": [
        # ±3 · 683 = ±2049, plus a tiny number, or six tenths of the last bit that f32 has there.
        *((a, 0x6156, c) for a in (0x4200, 0xC200) for c in (0x0001, 0x8001, 0x08CC, 0x88CC)),
        *product((0, 0x8000), repeat=3),
    ],
    "f32": list(product((0, 1 << 31), repeat=3)),
}


def _triples(operands: np.ndarray, columns: tuple[str, ...]) -> None:
    """Puts each of TRIPLES into some lanes of every wave; with two operands only the first two."""
    if len(set(columns)) > 1 or columns[0] not in TRIPLES:
        return
    listed = TRIPLES[columns[0]]
    for turn, start in enumerate(range(0, len(operands), LANES // 2)):
        for number in range(4):
            values = np.array(listed[(4 * turn + number) % len(listed)], np.uint64)
            if columns[0] == "f16":
                values |= values << np.uint64(16)
            operands[start + 28 + number, : len(columns)] = values[: len(columns)]


def exact(kind: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Returns halves of small integers, as f32 or as two 16-bit floats."""
    values = rng.integers(-30, 31, (2, count)) / np.float32(2)
    single = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    if kind == "exact32":
        return single[0]
    half = values.astype(np.float16).view(np.uint16).astype(np.uint64)
    low, high = single >> np.uint64(16) if kind == "brain16" else half
    return low | high << np.uint64(16)


@dataclass(frozen=True)
class Mode:
    """The initial MODE of waves. Denormals: 3 preserves them, LLVM's default; 0 flushes them;
    `short_denormals` are those of f16 and f64."""

    denormals: int = 3
    short_denormals: int = 3
    ieee: bool = True

    @property
    def directives(self) -> str:
        lines = [
            f"float_denorm_mode_32 {self.denormals}",
            f"float_denorm_mode_16_64 {self.short_denormals}",
        ]
        if not self.ieee:  # not on gfx12
            lines.append("ieee_mode 0")
        return "".join(f"  .amdhsa_{line}\n" for line in lines)


LLVMS = Mode()


@dataclass(frozen=True)
class Batch:
    probes: tuple[Probe, ...]
    text: str
    inputs: np.ndarray  # uint64[groups, WAVES * 64, 4]
    masks: np.ndarray  # uint64[WAVES, 2]: EXEC, and the initial mask in VCC and s[16:17]

    def outputs(self) -> np.ndarray:
        return np.zeros((len(self.probes), WAVES * LANES, 4), np.uint32)


@dataclass(frozen=True)
class Frame:
    """The assembly around the probes, and the division of work items into `waves`."""

    prologue: str
    load: str  # with {offset}
    vector: str  # with {text}
    scalar: str  # with {text}
    epilogue: str  # with {mode}
    waves: int
    lanes: int
    masks: tuple[int, ...]  # EXEC of consecutive waves


def batch(
    probes: list[Probe],
    seed: int = 1,
    frame: Frame | None = None,
    mode: Mode = LLVMS,
) -> Batch:
    """`frame`: gfx9's by default."""
    frame = frame or GFX9
    groups = sorted({probe.columns for probe in probes})
    # The values of a group do not depend on the rest of the batch.
    inputs = np.stack(
        [
            operands(columns, np.random.default_rng([seed, zlib.crc32(repr(columns).encode())]))
            for columns in groups
        ]
    )
    rng = np.random.default_rng(seed)
    ordered, body = [], []
    for number, columns in enumerate(groups):
        body.append(frame.load.format(offset=number * WAVES * LANES * 32))
        for probe in probes:
            if probe.columns == columns:
                ordered.append(probe)
                around = frame.scalar if probe.scalar else frame.vector
                body.append(around.format(text=probe.text))
    masks = np.zeros((frame.waves, 2), np.uint64)
    for wave in range(frame.waves):
        mask = frame.masks[wave % len(frame.masks)]
        masks[wave] = mask, rng.integers(0, 1 << 64, dtype=np.uint64)
    private = any("scratch_" in probe.text for probe in probes)
    ending = frame.epilogue.replace("{mode}", mode.directives)
    ending = ending.replace("{scratch}", _SCRATCH if private else "")
    ending = ending.replace("{private}", "64" if private else "0")
    text = frame.prologue + "".join(body) + ending
    return Batch(tuple(ordered), text, inputs, masks)


_PROLOGUE = f"""
.text
.globl probe
.p2align 8
.type probe,@function
probe:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dwordx2 s[8:9], s[0:1], 0x10
  v_lshl_or_b32 v13, s2, 6, v0
  v_lshlrev_b32_e32 v12, 4, v13
  v_lshlrev_b32_e32 v14, 4, v0
  v_and_b32_e32 v15, 0x30, v14
  v_lshlrev_b32_e32 v13, 5, v13
  s_lshl_b32 s3, s2, 4
  s_waitcnt lgkmcnt(0)
  s_load_dwordx4 s[20:23], s[8:9], s3
  s_waitcnt lgkmcnt(0)
  s_mov_b32 s10, {WAVES * LANES * 16}
  s_mov_b64 s[14:15], s[4:5]
"""
_LOAD = """
  s_add_u32 s4, s14, {offset}
  s_addc_u32 s5, s15, 0
  global_load_dwordx4 v[2:5], v13, s[4:5]
  global_load_dwordx4 v[6:9], v13, s[4:5] offset:16
  s_waitcnt vmcnt(0)
  v_mov_b32_e32 v18, v8
  v_mov_b32_e32 v19, v9
  v_readlane_b32 s24, v2, 3
  v_readlane_b32 s25, v3, 3
  v_readlane_b32 s26, v4, 3
  v_readlane_b32 s27, v5, 3
"""
_STORE = """  s_mov_b64 exec, -1
  v_mov_b32_e32 v10, s16
  v_mov_b32_e32 v11, s17
  global_store_dwordx4 v12, v[8:11], s[6:7]
  s_add_u32 s6, s6, s10
  s_addc_u32 s7, s7, 0
"""
_VECTOR = (
    """  v_mov_b32_e32 v8, v18
  v_mov_b32_e32 v9, v19
  s_mov_b64 vcc, s[22:23]
  s_mov_b64 s[16:17], s[22:23]
  s_mov_b64 exec, s[20:21]
  {text}
"""
    + _STORE
)
# Scalar instructions use the operands of four lanes in turn; v8 gets SCC, v9 both halves of EXEC.
_SCALAR = (
    "".join(
        f"""  v_readlane_b32 s24, v2, {lane}
  v_readlane_b32 s25, v3, {lane}
  v_readlane_b32 s26, v4, {lane}
  v_readlane_b32 s27, v5, {lane}
  s_mov_b64 exec, s[20:21]
  s_mov_b64 s[16:17], s[22:23]
  s_bitcmp1_b32 s22, {lane}
  {{text}}
  s_cselect_b32 s28, 1, 0
  s_mov_b32 s29, exec_lo
  s_mul_i32 s30, exec_hi, 3
  s_xor_b32 s29, s29, s30
  s_mov_b32 exec_lo, {(1 << 16 * number) & 0xFFFFFFFF}
  s_mov_b32 exec_hi, {(1 << 16 * number) >> 32}
  v_mov_b32_e32 v8, s28
  v_mov_b32_e32 v9, s29
  v_mov_b32_e32 v10, s16
  v_mov_b32_e32 v11, s17
  global_store_dwordx4 v12, v[8:11], s[6:7]
"""
        for number, lane in enumerate((0, 19, 33, 60))
    )
    + """  s_mov_b64 exec, -1
  s_add_u32 s6, s6, s10
  s_addc_u32 s7, s7, 0
"""
)
_SCRATCH = """  .amdhsa_private_segment_fixed_size 64
  .amdhsa_enable_private_segment 1
"""
_EPILOGUE = """
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel probe
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_vgpr_workitem_id 0
  .amdhsa_next_free_vgpr 96
  .amdhsa_next_free_sgpr 64
  .amdhsa_accum_offset 80
  .amdhsa_kernarg_size 24
{mode}  .amdhsa_group_segment_fixed_size 8192
{scratch}.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: probe
    .symbol: probe.kd
    .kernarg_segment_size: 24
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 8192
    .private_segment_fixed_size: {private}
    .wavefront_size: 64
    .sgpr_count: 64
    .vgpr_count: 80
    .agpr_count: 8
    .max_flat_workgroup_size: 64
    .args:
      - {.name: inputs, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: outputs, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: masks, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
...
.end_amdgpu_metadata
"""

GFX9 = Frame(_PROLOGUE, _LOAD, _VECTOR, _SCALAR, _EPILOGUE, WAVES, LANES, tuple(MASKS))


def known_to(target: str, texts: list[str], *options: str) -> list[bool]:
    """Returns which texts, of one or more lines, llvm-mc assembles for a target."""
    lines = [(number, line) for number, text in enumerate(texts) for line in text.split("\n")]
    done = subprocess.run(
        [hsaco.llvm_program("llvm-mc"), "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", *options],
        input="".join(f"{line}\n" for _, line in lines),
        capture_output=True,
        text=True,
    )
    places = re.findall(r"^<stdin>:(\d+):\d+: error", done.stderr, re.MULTILINE)
    refused = {lines[int(place) - 1][0] for place in places}
    return [number not in refused for number in range(len(texts))]


def views(kind: str, record: np.ndarray) -> np.ndarray:
    """Views the destination of records [.., 4] as an array of the result's kind."""
    if kind == "2f16":
        return np.ascontiguousarray(record[..., :1]).view(np.float16)
    if kind == "2bf16":
        shorts = np.ascontiguousarray(record[..., :1]).view(np.uint16)
        return (shorts.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if kind == "2f32":
        return np.ascontiguousarray(record[..., :2]).view(np.float32)
    width = int(kind[1:])
    raw = np.ascontiguousarray(record[..., : max(1, width // 32)])
    if width == 16:
        raw = (raw & np.uint32(0xFFFF)).astype(np.uint16)
    return raw.view(DTYPES[kind])


def differences(probe: Probe, mine: np.ndarray, other: np.ndarray) -> np.ndarray:
    """bool[lanes]: where two records [lanes, 4] of an instruction differ.

    The comparison is bit for bit, except that a NaN result's sign and payload are unspecified, so
    any quiet NaN equals any other; and that a transcendental result may be off by `ulp`.
    """
    if probe.scalar:  # its result comes first
        mine, other = (np.roll(record, 2, axis=1) for record in (mine, other))
    same = mine == other
    if probe.result[0] in "f2":
        a, b = views(probe.result, mine), views(probe.result, other)
        quiet = np.uint64(1) << np.uint64({2: 9, 4: 22, 8: 51}[a.itemsize])
        ra, rb = (x.view(f"u{x.itemsize}").astype(np.uint64) for x in (a, b))
        equal = (a != a) & (b != b) & (probe.signalling | (rb & quiet != 0))
        if probe.tininess:
            smallest = np.uint64(1) << np.uint64({2: 10, 4: 23, 8: 52}[a.itemsize])
            sign = np.uint64(1) << np.uint64(8 * a.itemsize - 1)
            equal |= (np.minimum(ra & ~sign, rb & ~sign) == 0) & ((ra ^ rb) == smallest)
        distance = np.abs(ordered(ra, a.itemsize) - ordered(rb, a.itemsize))
        equal |= (ra == rb) | ((distance <= probe.ulp) & (a == a) & (b == b))
        words = 1 if probe.result == "2bf16" else max(1, a.itemsize * a.shape[-1] // 4)
        known = equal.reshape(len(mine), -1).all(axis=1)
        if probe.result == "f16":
            known &= (mine[:, 0] ^ other[:, 0]) >> np.uint32(16) == 0
        return ~(known & same[:, words:].all(axis=1))
    return ~same.all(axis=1)


def ordered(raw: np.ndarray, size: int) -> np.ndarray:
    """Converts float bits to integers in the floats' order, one per step."""
    sign = np.uint64(1) << np.uint64(8 * size - 1)
    magnitude = (raw & (sign - np.uint64(1))).astype(np.int64)
    return np.where(raw & sign != 0, -magnitude, magnitude)
