"""How matrices are multiplied: instructions, tiles and accesses, decided by the host from arrays
and the target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from fly_backend.choice import choose, row_of
from fly_common.errors import UsageError
from fly_dialect.atoms.amd.mfma import MFMA_FORMS, SCALED_FORMS
from fly_dialect.atoms.amd.wmma import GFX11_FORMS, GFX120X_FORMS, GFX1250_FORMS
from fly_numerics.element_types import ELEMENT_TYPES, ElementType

from fly.kernels.arrays import address, strides

WIDEST = 16  # bytes of an access
ROWS = (128, 64)  # bytes of a row of a tile in LDS, the greatest one that fits
STAGES = 2  # tiles in LDS of each operand
NEAR = 1 << 31  # bytes that a buffer descriptor covers
WAVES = 4  # of a block
EDGES = (32, 64, 128)  # rows, or columns, of a block's tile of C
BLOCKS = 304  # that fill a device: the compute units of an MI300X
STEPS = 8  # tiles along K, at least, of each part of a sum that is split
# The lanes that share a row of an operand of WMMA. Those of MFMA have all rows before they share.
PARTS = {"RDNA3": 1, "RDNA4": 2, "gfx1250": 2}
# The adjacent values of K that such a lane has, if it is fewer than all of its.
RUNS = {"gfx1250": 8}
FORMS = {
    "scaled MFMA": tuple(form for form in SCALED_FORMS if ELEMENT_TYPES[form.a].bits == 8),
    "MFMA": MFMA_FORMS,
    "WMMA": GFX11_FORMS + GFX120X_FORMS + GFX1250_FORMS,
}
TYPES = {row.long_name: row for row in ELEMENT_TYPES.values()}
# What is multiplied with FMA: element type → the type of operands and sums.
FMA = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "i8": "i32"}


class Unit(NamedTuple):
    """What multiplies: "MFMA", "scaled MFMA" and "WMMA" are instructions of `edge` × `edge` × `k`,
    "FMA" those of a lane.

    element: the type of operands. sum: that of sums. lanes: the size of a wave. row: the bytes of a
    row of a tile in LDS. parts: how many lanes share a row of an operand, each with its own values
    of K, of which `run` are adjacent.
    """

    kind: str
    edge: int
    k: int
    element: str
    sum: str
    lanes: int
    row: int
    parts: int = 1
    run: int = 1

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return WAVES * self.lanes

    @property
    def wide(self) -> int:
        """The values of K that a lane reads at a time, at least."""
        return WIDEST * 8 // ELEMENT_TYPES[self.element].bits

    @property
    def depth(self) -> int:
        """The extent of tiles of A and B along K."""
        return self.row * 8 // ELEMENT_TYPES[self.element].bits


class Access(NamedTuple):
    """How an operand is loaded: `vector` elements at a time, which are adjacent in memory and lie
    along K or across K. buffer: by a buffer descriptor, which adds distances in 32 bits."""

    along_k: bool
    vector: int
    buffer: bool = False


class Plan(NamedTuple):
    """How C = A·B is computed: by blocks that have a tile of C of `rows` × `columns` each.

    whole: K is a multiple of a tile's extent. splits: the parts of K that different blocks take.
    """

    unit: Unit
    rows: int
    columns: int
    a: Access
    b: Access
    whole: bool
    splits: int

    def ragged(self, along_k: bool) -> Plan:
        """This plan, for ranges of K that start and end anywhere, or of rows of A."""
        a, b = [one._replace(vector=1) if one.along_k == along_k else one for one in self[3:5]]
        if along_k:
            return self._replace(a=a, b=b, whole=False)
        return self._replace(a=a)


def plan(a: Any, b: Any, splits: int | None = None, groups: int = 1) -> Plan:
    """The plan for `a`, batches × M × K, and `b`, batches × K × N, of one element type. Into
    `splits` parts sums are divided, as many as fill a device if that is None; `groups` of rows of a
    are multiplied by different matrices.

    UsageError for an element type that the target can't multiply.
    """
    extents = (a.shape[0], -(-a.shape[1] // groups), a.shape[2], b.shape[2])
    return plan_for(a.dtype, extents, access(a, 2), access(b, 1), splits)


def plan_for(
    dtype: Any, extents: tuple[int, ...], a: Access, b: Access, splits: int | None
) -> Plan:
    """As `plan`, by the element type, the accesses, and the extents: batches, M, K and N."""
    tile = edge(extents[1]), edge(extents[3])
    return _plan(unit_of(dtype, tile), tile, extents, a, b, splits)


@cache
def _plan(
    unit: Unit,
    tile: tuple[int, int],
    extents: tuple[int, ...],
    a: Access,
    b: Access,
    splits: int | None,
) -> Plan:
    """See `plan`. Equal plans are one object, which calls of `@fly.jit` functions find fastest."""
    batches, m, k, n = extents
    on_amd = unit.kind != "FMA"
    a, b = [one._replace(buffer=one.buffer and on_amd) for one in (a, b)]
    made = Plan(unit, *tile, a, b, False, 1)
    steps = max(1, -(-k // made.unit.depth))
    if splits is None:
        blocks = batches * -(-m // made.rows) * -(-n // made.columns)
        splits = max(1, min(BLOCKS // max(1, blocks), steps // STEPS))
    each = -(-steps // min(splits, steps))
    return made._replace(whole=k > 0 and k % made.unit.depth == 0, splits=-(-steps // each))


def edge(extent: int) -> int:
    """The rows, or columns, of a tile of C that has so many, or of many such tiles."""
    return next((edge for edge in EDGES if edge >= extent), EDGES[-1])


def access(operand: Any, along_k: int) -> Access:
    """The access of an operand of three dimensions, the first of which counts matrices; dimension
    `along_k` is along K, the other one across."""
    steps, nbytes, across = strides(operand), operand.itemsize, 3 - along_k
    inner = along_k if steps[along_k] == 1 or operand.shape[along_k] == 1 else across
    outside = [steps[i] * nbytes for i in (0, 3 - inner) if operand.shape[i] > 1]
    aligned = math.gcd(WIDEST, address(operand), operand.shape[inner] * nbytes, *outside)
    buffer = fits_buffer(operand.shape[1:], steps[1:], nbytes)
    return Access(inner == along_k, max(1, aligned // nbytes), buffer)


def fits_buffer(extents: Sequence[int], steps: Sequence[int], nbytes: int) -> bool:
    """Whether a buffer descriptor covers elements of so many bytes, and a tile that ends beyond."""
    last = sum((extent + EDGES[-1]) * step for extent, step in zip(extents, steps, strict=True))
    return min(steps) >= 0 and last * nbytes < NEAR


def element_type(dtype: Any) -> ElementType:
    """The element type that a type of NumPy or torch is. UsageError if there is none."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.removeprefix("torch.")
    if name not in TYPES:
        raise UsageError(f"matrices of {name} can't be multiplied")
    return TYPES[name]


def unit_of(dtype: Any, tile: tuple[int, int]) -> Unit:
    """What multiplies elements of a type of NumPy or torch on the target, for tiles of C of so many
    rows and columns. UsageError if nothing does."""
    return _unit(element_type(dtype).name, tile, choose().target)


@cache
def _unit(element: str, tile: tuple[int, int], target: str) -> Unit:
    chip = row_of(choose(target))
    sums = {"f64": "f64", "i8": "i32"}.get(element, "f32")
    row = next((row for row in ROWS if 2 * shared_bytes(row, tile) < chip.lds), ROWS[-1])
    for kind, forms in FORMS.items():
        extents = [
            (form.m, form.k)
            for form in forms
            if (form.a, form.b, form.acc) == (element, element, sums)
            and chip.matrix in form.families
            and 2 * form.m <= min(tile)  # two waves beside each other
            and form.k * ELEMENT_TYPES[element].bits <= row * 8
            and (form.m * form.k == 64 or element != "f32")  # longer ones round f32 to 10 bits
        ]
        if extents:
            edge, k = max(extents)
            parts = PARTS.get(chip.matrix, chip.wave_size // edge)
            run = min(k // parts, RUNS.get(chip.matrix, k))
            return Unit(kind, edge, k, element, sums, chip.wave_size, row, parts, run)
    multiplied = {**FMA, **dict.fromkeys(chip.narrow_floats, "f32")}
    if element not in multiplied:
        known = ", ".join(multiplied)
        raise UsageError(f"{chip.name} can't multiply {element}", hint=f"it multiplies {known}")
    wide = multiplied[element]
    return Unit("FMA", 1, 1, wide, wide, chip.wave_size, ROWS[-1])


def shared_bytes(row: int, tile: tuple[int, int]) -> int:
    """The bytes of LDS of tiles of A and B with rows of `row` bytes."""
    return STAGES * row * sum(tile)
