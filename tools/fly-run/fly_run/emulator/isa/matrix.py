"""The matrix instructions as data: shapes, element formats, and the layout across lanes.

A matrix instruction computes D = A·B + C for `blocks` independent matrices: A is M × K, B is K × N,
C and D are M × N. They are distributed over a wave's lanes. Three functions describe the layout:

    input_at(shape, lane, element)      row (of B: column), k and block of an element of A or B
    output_at(shape, row, column, block)    register and lane of an element of C or D
    index_sets(shape)                   how a sparse instruction finds its indices

Sources: CDNA2 and CDNA3 ISA manuals, "Matrix Arithmetic Instructions"; AMD's matrix instruction
calculator (github.com/ROCm/amd_matrix_instruction_calculator), which prints the same tables; for
gfx950's f8f6f4 operands the CDNA4 ISA manual, "8-bit and Smaller Matrix Operations and Layouts".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fly_target import registry
from fly_target.amd.facts import facts_of

LANES, WAVE_32 = 64, 32


@dataclass(frozen=True)
class Shape:
    """Sizes, formats and layout of the operands of one instruction. `a` and `b` name formats of
    `semantics.matrix.formats`; `result` is the element type of C and D. `model` says how exact
    arithmetic sums (see `semantics.matrix.arithmetic`). A sparse instruction stores two of every
    four elements of A along k in its registers; the other two are zero."""

    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    result: str
    model: str
    sparse: bool = False
    wave: str = ""  # "gfx11", "gfx12" or "gfx1250": the layouts of waves of 32
    addend: str = ""  # the element type of C, if it differs from that of D

    @property
    def lanes(self) -> int:
        return WAVE_32 if self.wave else LANES

    @property
    def elements(self) -> int:
        """The number of elements of B per lane, and of A unless it is sparse."""
        if self.wave == "gfx11":
            return self.k  # lanes 16 to 31 repeat lanes 0 to 15
        return self.m * self.k * self.blocks // self.lanes

    @property
    def results(self) -> int:
        """The number of elements of D per lane."""
        return self.m * self.n * self.blocks // self.lanes

    @property
    def distinct_lanes(self) -> int:
        """The number of lanes, from the first, that hold all elements of A and B."""
        return 16 if self.wave == "gfx11" else self.lanes

    @property
    def split(self) -> int:
        """The length of runs of elements along k in a lane; 0 if they are all one run."""
        if self.wave == "gfx12" and self.a in ("f16", "bf16"):
            return 8 if self.sparse else 4
        if self.wave == "gfx1250" and self.a != "f32":
            run = 8 if self.a in ("f16", "bf16") else 16
            return 2 * run if self.sparse else run
        return 0

    @property
    def groups(self) -> int:
        """The number of lane groups that share the k of a matrix."""
        return self.distinct_lanes // (self.m * self.blocks)


def input_at(shape: Shape, lane: int, element: int, split: int = 0) -> tuple[int, int, int]:
    """Returns the row of A (column of B), k and block of element number `element` of a lane. A
    lane's elements are consecutive along k; with `split` they come in runs of that length, and each
    group of lanes has a run before the first group's next run."""
    row = lane % shape.m
    if shape.result == "double" and shape.m == 4:
        # The only instruction with both several blocks and several groups.
        return row, lane // (shape.m * shape.blocks), lane // shape.m % shape.blocks
    block, group = (
        (lane // shape.m, 0) if shape.blocks > 1 else (0, lane // shape.m)
    )  # several blocks: each has its own lanes
    run = split or shape.elements
    k = (element // run * shape.groups + group) * run + element % run
    return row, k, block


def output_at(shape: Shape, row: int, column: int, block: int) -> tuple[int, int]:
    """Returns the register (the first of two for f64) and lane of an element of C or D."""
    if shape.result == "double":
        if shape.m == 4:
            return 0, 16 * row + 4 * block + column
        return 2 * (row // 4), 16 * (row % 4) + column
    if shape.wave == "gfx11":
        return row // 2, row % 2 * 16 + column
    if shape.wave in ("gfx12", "gfx1250"):
        return row % 8, row // 8 * 16 + column
    if shape.m == 4:
        return row, 4 * block + column
    rows = 4 * (LANES // shape.m)  # the rows in four consecutive registers
    register = row // rows * 4 + row % 4
    registers = shape.m * shape.n // LANES
    return block * registers + register, row % rows // 4 * shape.n + column


def index_sets(shape: Shape) -> tuple[int, int]:
    """Returns the number of index bits that a sparse instruction uses, and how many such sets an
    index register holds. An index has two bits for each element of A in the lane."""
    bits = shape.elements  # half as many elements of A, two bits each
    return bits, 32 // bits


# -- the instructions ---------------------------------------------------------------------------

_NAME = re.compile(
    r"v_(mfma|smfmac|mfma_scale)_(f32|i32|f64)_(\d+)x(\d+)x(\d+)(_?)(?:(\d+)b_)?([a-z]\w*)"
)
# Elements in a lane by format: CDNA2's names don't encode the number of blocks.
_CDNA2_ELEMENTS = {"f32": 1, "f16": 4, "bf16": 2, "bf16_1k": 4, "i8": 4, "f64": 1}
_CDNA2_MODELS = {"f16": "ftz4", "bf16": "ftz2", "bf16_1k": "ftz4"}
_CDNA3_MODELS = {"f16": "tr8", "bf16": "tr8", "xf32": "tr4"}
_RESULTS = {"f32": "float", "i32": "i32", "f64": "double"}


def _named(template: str, shapes: str) -> list[str]:
    return [template.format(shape) for shape in shapes.split()]


_CDNA1 = [
    *_named("v_mfma_f32_{}f32", "32x32x1 16x16x1 4x4x1 32x32x2 16x16x4"),
    *_named("v_mfma_f32_{}f16", "32x32x4 16x16x4 4x4x4 32x32x8 16x16x16"),
    *_named("v_mfma_f32_{}bf16", "32x32x2 16x16x2 4x4x2 32x32x4 16x16x8"),
    *_named("v_mfma_i32_{}i8", "32x32x4 16x16x4 4x4x4 32x32x8 16x16x16"),
]
_CDNA2 = [
    *_CDNA1,
    *_named("v_mfma_f32_{}bf16_1k", "32x32x4 16x16x4 4x4x4 32x32x8 16x16x16"),
    *_named("v_mfma_f64_{}f64", "16x16x4 4x4x4"),
]
_CDNA3 = [
    *_named("v_mfma_f32_{}_f32", "32x32x1_2b 16x16x1_4b 4x4x1_16b 32x32x2 16x16x4"),
    *_named("v_mfma_f32_{}_f16", "32x32x4_2b 16x16x4_4b 4x4x4_16b 32x32x8 16x16x16"),
    *_named("v_mfma_f32_{}_bf16", "32x32x4_2b 16x16x4_4b 4x4x4_16b 32x32x8 16x16x16"),
    *_named("v_mfma_i32_{}_i8", "32x32x4_2b 16x16x4_4b 4x4x4_16b 32x32x16 16x16x32"),
    *_named("v_mfma_f64_{}_f64", "16x16x4 4x4x4_4b"),
    *_named("v_smfmac_f32_{}_f16", "16x16x32 32x32x16"),
    *_named("v_smfmac_f32_{}_bf16", "16x16x32 32x32x16"),
    *_named("v_smfmac_i32_{}_i8", "16x16x64 32x32x32"),
]
_BYTES = ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")
# FNUZ formats on CDNA3, OCP formats on CDNA4.
_CDNA3_BYTES = [
    name
    for pair in _BYTES
    for name in (
        *_named(f"v_mfma_f32_{{}}_{pair}", "16x16x32 32x32x16"),
        *_named(f"v_smfmac_f32_{{}}_{pair}", "16x16x64 32x32x32"),
    )
]
_XF32 = _named("v_mfma_f32_{}_xf32", "16x16x8 32x32x4")
_CDNA4 = [
    *_named("v_mfma_f32_{}_f16", "16x16x32 32x32x16"),
    *_named("v_mfma_f32_{}_bf16", "16x16x32 32x32x16"),
    *_named("v_mfma_i32_{}_i8", "16x16x64 32x32x32"),
    *_named("v_smfmac_f32_{}_f16", "16x16x64 32x32x32"),
    *_named("v_smfmac_f32_{}_bf16", "16x16x64 32x32x32"),
    *_named("v_smfmac_i32_{}_i8", "16x16x128 32x32x64"),
    *_named("v_mfma_f32_{}_f8f6f4", "16x16x128 32x32x64"),
    *_named("v_mfma_scale_f32_{}_f8f6f4", "16x16x128 32x32x64"),
]
_CDNA4_BYTES = [
    name for pair in _BYTES for name in _named(f"v_smfmac_f32_{{}}_{pair}", "16x16x128 32x32x64")
]
# The mnemonics of each set of matrix instructions (`Target.matrix`), and the meaning of `fp8` and
# `bf8` there. No model of CDNA1's sums is published: they are chains.
TABLE = (
    (("CDNA1",), _CDNA1, ""),
    (("CDNA2",), _CDNA2, ""),
    (("CDNA3", "CDNA4"), _CDNA3, ""),
    (("CDNA3",), _CDNA3_BYTES + _XF32, "_fnuz"),
    (("CDNA4",), _CDNA3_BYTES + _CDNA4 + _CDNA4_BYTES, ""),
)
# The formats of f8f6f4 operands by the number in cbsz (A) and blgp (B).
NARROW = ("fp8", "bf8", "fp6", "bf6", "fp4")


def instructions() -> Iterator[tuple[str, Shape, tuple[str, ...]]]:
    """Yields each mnemonic with its shape and the sets of matrix instructions that contain it."""
    for sets, mnemonics, variety in TABLE:
        for mnemonic in mnemonics:
            shape = shape_of(mnemonic, variety)
            yield mnemonic, replace(shape, model="fma") if sets == ("CDNA1",) else shape, sets
    for name, wave, mnemonics in WAVE_TABLE:
        for mnemonic in mnemonics:
            shape = wave_shape_of(mnemonic, wave)
            if name == "gfx1250" and shape.model.startswith("pairs"):
                shape = replace(shape, model="tr8")
            yield mnemonic, shape, (name,)


def results(mnemonic: str) -> int:
    """Returns how many matrices of its shape an instruction computes: 32x16 is two, one above the
    other."""
    return 2 if "_32x16x" in mnemonic else 1


def remark(target: str, mfma: str) -> str:
    """Describes, for users, the arithmetic of the matrix instructions of `target`."""
    if mfma == "fast":
        return "matrix instructions: fast, as chains of fused multiply-adds"
    return f"matrix instructions: {facts_of(registry.find(target)).sums_note}"


_WAVE_NAME = re.compile(
    r"v_(s?)w(?:mma|mmac)(?:_scale(?:16)?)?_(f32|f16|bf16|bf16f32|i32)_(?:16|32)x16x(\d+)"
    r"_([a-z0-9]+)(?:_(.*))?"
)
_WAVE_RESULTS = {"f32": "float", "f16": "f16", "bf16": "bf16", "i32": "i32", "bf16f32": "bf16"}
_WAVE_MODELS = {"gfx11": "complements", "gfx12": "pairs"}
_WAVE_FLOATS = ("f32_{}_f16", "f32_{}_bf16", "f16_{}_f16", "bf16_{}_bf16")
_GFX11 = [
    f"v_wmma_{name.format('16x16x16')}" for name in (*_WAVE_FLOATS, "i32_{}_iu8", "i32_{}_iu4")
]
_GFX12 = [
    *_GFX11,
    "v_wmma_i32_16x16x32_iu4",
    *(f"v_wmma_f32_16x16x16_{pair}" for pair in _BYTES),
    *(
        f"v_swmmac_{name.format('16x16x32')}"
        for name in (*_WAVE_FLOATS, "i32_{}_iu8", "i32_{}_iu4")
    ),
    "v_swmmac_i32_16x16x64_iu4",
    *(f"v_swmmac_f32_16x16x32_{pair}" for pair in _BYTES),
]
# gfx1250's own, besides those of gfx12, which LLVM knows there too. Layouts: AMD's CDNA5 layouts as
# FlyDSL's MmaAtom.cpp and rocjitsu's mma/layout.h have them. FlyDSL has runs of 8 for elements of 8
# bits where rocjitsu has 16; as A and B are alike, only the order of sums depends on it. The layout
# of a sparse A of 8 bits is derived from it and not documented publicly; that of its indices is
# rocjitsu's.
SCALED = ("v_wmma_scale_f32", "v_wmma_scale16_f32")
_GFX1250 = [
    "v_wmma_f32_16x16x4_f32",
    *(
        f"v_{kind}_{result}_16x16x{k}_{element}"
        for kind, k in (("wmma", 32), ("swmmac", 64))
        for element in ("f16", "bf16")
        for result in ("f32", element)
    ),
    "v_wmma_bf16f32_16x16x32_bf16",
    *(
        f"v_{kind}_{result}_16x16x{k}_{pair}"
        for kind, k in (("wmma", 64), ("wmma", 128), ("swmmac", 128))
        for result in ("f32", "f16")
        for pair in _BYTES
    ),
    "v_wmma_i32_16x16x64_iu8",
    "v_swmmac_i32_16x16x128_iu8",
    *(
        f"{stem}_{shape}"
        for stem in ("v_wmma_f32", *SCALED)
        for shape in ("16x16x128_f8f6f4", "32x16x128_f4")
    ),
]
WAVE_TABLE = (
    ("RDNA3", "gfx11", _GFX11),
    ("RDNA4", "gfx12", _GFX12),
    ("gfx1250", "gfx12", _GFX12),
    ("gfx1250", "gfx1250", _GFX1250),
)


def wave_shape_of(mnemonic: str, wave: str) -> Shape:
    """Returns the shape of a WMMA or SWMMAC instruction. `result` is "f16" or "bf16" if C and D
    are."""
    match = _WAVE_NAME.fullmatch(mnemonic)
    if match is None:
        raise ValueError(f"{mnemonic} is not a matrix instruction")
    sparse, result, k, a, b = match.groups()
    if a in ("f8f6f4", "f4"):
        # The modifiers name the formats of the first kind. Of 32 rows, the lowering makes two
        # products of 16.
        form = "narrow" if a == "f8f6f4" else "fp4"
        return Shape(16, 16, int(k), 1, form, form, "float", "gtr16", wave=wave)
    if a == "f32":
        return Shape(16, 16, int(k), 1, a, a, "float", "fma", wave=wave)
    model = "fma" if result == "i32" else "tr8" if b is None else "gtr16"
    if result != "i32" and b is None and not sparse and wave in _WAVE_MODELS:
        model = f"{_WAVE_MODELS[wave]}_{result}"
    kinds = (a, b or a, _WAVE_RESULTS[result])
    addend = "float" if result == "bf16f32" else ""
    return Shape(16, 16, int(k), 1, *kinds, model, bool(sparse), wave, addend)


def shape_of(mnemonic: str, variety: str = "") -> Shape:
    """Returns the shape that a mnemonic spells out; `variety` is appended to the names of 8-bit
    float formats. gfx90a has no underscore before the format."""
    match = _NAME.fullmatch(mnemonic)
    if match is None:
        raise ValueError(f"{mnemonic} is not a matrix instruction")
    kind, result, *sizes, underscore, blocks, formats = match.groups()
    m, n, k = (int(size) for size in sizes)
    if underscore:
        count, model = int(blocks or 1), _CDNA3_MODELS.get(formats, "fma")
    else:
        count = LANES * _CDNA2_ELEMENTS[formats] // (m * k)
        model = _CDNA2_MODELS.get(formats, "fma")
    if formats == "f8f6f4":
        a = b = "narrow"
        model = "gtr16"
    elif formats in _BYTES:
        a, b = (name + variety for name in formats.split("_"))
        model = "gtr16"
    else:
        a = b = formats.removesuffix("_1k")
    if model == "tr8" and k == 4:
        model = "tr4"  # the sum has a single block along k
    return Shape(m, n, k, count, a, b, _RESULTS[result], model, kind == "smfmac")
