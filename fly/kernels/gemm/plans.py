"""How matrices are multiplied: instructions, tiles and accesses, decided by the host from arrays
and the target."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from fly_backend.choice import choose, row_of
from fly_common.errors import UsageError
from fly_dialect.atoms.amd.mfma import MFMA_FORMS
from fly_dialect.atoms.amd.wmma import GFX11_FORMS, GFX120X_FORMS
from fly_numerics.element_types import ELEMENT_TYPES, ElementType

from fly.kernels.arrays import address, strides

WIDEST = 16  # bytes of an access
ROW = 64  # bytes of a row of a tile in LDS
WAVES = 4  # of a block
EDGES = (32, 64, 128)  # rows, or columns, of a block's tile of C
BLOCKS = 304  # that fill a device: the compute units of an MI300X
STEPS = 8  # tiles along K, at least, of each part of a sum that is split
# The lanes that share a row of an operand of 16 rows.
PARTS = {"CDNA1": 4, "CDNA2": 4, "CDNA3": 4, "CDNA4": 4, "RDNA3": 1, "RDNA4": 2}
FORMS = {"MFMA": MFMA_FORMS, "WMMA": GFX11_FORMS + GFX120X_FORMS}
TYPES = {row.long_name: row for row in ELEMENT_TYPES.values()}
# What is multiplied with FMA: element type → the type of operands and sums.
FMA = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "i8": "i32"}


class Unit(NamedTuple):
    """What multiplies: "MFMA" and "WMMA" are instructions of 16 × 16 × `k`, "FMA" those of a lane.

    element: the type of operands. sum: that of sums. lanes: the size of a wave. parts: how many
    lanes share a row of an operand, each with its own values of K.
    """

    kind: str
    k: int
    element: str
    sum: str
    lanes: int
    parts: int = 1

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
        return self.wide * ROW // WIDEST


class Access(NamedTuple):
    """How an operand is loaded: `vector` elements at a time, which are adjacent in memory and lie
    along K or across K."""

    along_k: bool
    vector: int


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
    return _plan(unit_of(dtype), extents, a, b, splits)


@cache
def _plan(unit: Unit, extents: tuple[int, ...], a: Access, b: Access, splits: int | None) -> Plan:
    """See `plan`. Equal plans are one object, which calls of `@fly.jit` functions find fastest."""
    batches, m, k, n = extents
    made = Plan(unit, edge(m), edge(n), a, b, False, 1)
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
    return Access(inner == along_k, max(1, aligned // nbytes))


def element_type(dtype: Any) -> ElementType:
    """The element type that a type of NumPy or torch is. UsageError if there is none."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.removeprefix("torch.")
    if name not in TYPES:
        raise UsageError(f"matrices of {name} can't be multiplied")
    return TYPES[name]


def unit_of(dtype: Any) -> Unit:
    """What multiplies elements of a type of NumPy or torch on the target. UsageError if nothing
    does."""
    return _unit(element_type(dtype).name, choose().target)


@cache
def _unit(element: str, target: str) -> Unit:
    row = row_of(choose(target))
    sums = {"f64": "f64", "i8": "i32"}.get(element, "f32")
    for kind, forms in FORMS.items():
        extents = [
            form.k
            for form in forms
            if (form.m, form.a, form.b, form.acc) == (16, element, element, sums)
            and row.matrix in form.families
            and (form.k == 4 or element != "f32")  # the longer one rounds f32 to 10 bits
        ]
        if extents:
            return Unit(kind, max(extents), element, sums, row.wave_size, PARTS[row.matrix])
    if element in row.narrow_floats:
        return Unit("FMA", 1, "f32", "f32", row.wave_size)
    if element not in FMA:
        known = ", ".join((*FMA, *row.narrow_floats))
        raise UsageError(f"{row.name} can't multiply {element}", hint=f"it multiplies {known}")
    return Unit("FMA", 1, FMA[element], FMA[element], row.wave_size)
