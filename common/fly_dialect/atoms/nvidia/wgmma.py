"""Hopper's matrix instruction of four warps: wgmma.mma_async.

Source: PTX ISA 8.8, "Asynchronous Warpgroup Level Matrix Instructions".
"""

from __future__ import annotations

from typing import ClassVar

from fly_common.record import record

from fly_dialect.atoms.matrix import Form, WaveMma
from fly_dialect.atoms.registry import register
from fly_dialect.layouts.layout import Layout

HOPPER = "Hopper"
ROWS = 64
THREADS = 128
STEP_BYTES = 32  # of K
_FLOAT8 = ("f8E4M3FN", "f8E5M2")
# A, B and accumulator, and K.
_TYPES = (
    ("f16", "f16", "f32", 16),
    ("f16", "f16", "f16", 16),
    ("bf16", "bf16", "f32", 16),
    ("f32", "f32", "f32", 8),
    *((a, b, acc, 32) for a in _FLOAT8 for b in _FLOAT8 for acc in ("f32", "f16")),
)


@register
@record
class Wgmma(WaveMma):
    """`!fly_nvvm.sm90.wgmma<64x256x16, (bf16, bf16) -> f32>`: 128 threads multiply matrices in
    shared memory, along K or, with elements of 16 bits, across K. The sums are in registers, and
    are written asynchronously."""

    NAME: ClassVar[str] = "fly_nvvm.sm90.wgmma"
    FAMILIES: ClassVar[tuple[str, ...]] = (HOPPER,)
    IN_SHARED: ClassVar[tuple[str, ...]] = ("a", "b")
    FORMS: ClassVar[tuple[Form, ...]] = tuple(
        Form(ROWS, n, k, a, b, acc, (HOPPER,)) for a, b, acc, k in _TYPES for n in range(8, 257, 8)
    )

    def __post_init__(self) -> None:
        if not self.is_known:
            raise ValueError(
                f"unsupported wgmma configuration: {self.shape} with {self.types}; {self.nearest()}"
            )

    @property
    def thr_layout(self) -> Layout:
        return Layout(THREADS, 1)

    @property
    def thr_val_layout_a(self) -> Layout:
        """All threads see the whole tile, which is in shared memory."""
        return Layout((THREADS, (self.m, self.k)), (0, (1, self.m)))

    @property
    def thr_val_layout_b(self) -> Layout:
        return Layout((THREADS, (self.n, self.k)), (0, (1, self.n)))

    @property
    def thr_val_layout_c(self) -> Layout:
        """PTX ISA, "Register Fragments and Shared Memory Matrix Layouts": figure of matrix D. Four
        threads share a row of 8 columns, a warp has 16 rows."""
        m = self.m
        return Layout(((4, 8, 4), (2, 2, self.n // 8)), ((2 * m, 1, 16), (m, 8, 8 * m)))


@register
@record
class WgmmaRegisters(Wgmma):
    """`!fly_nvvm.sm90.wgmma_rs<64x128x16, (bf16, bf16) -> f32>`: the same with A in registers."""

    NAME: ClassVar[str] = "fly_nvvm.sm90.wgmma_rs"
    IN_SHARED: ClassVar[tuple[str, ...]] = ("b",)
    FORMS: ClassVar[tuple[Form, ...]] = tuple(
        form for form in Wgmma.FORMS if form.a in ("f16", "bf16") and form.acc == "f32"
    )

    @property
    def thr_val_layout_a(self) -> Layout:
        """PTX ISA, the same section: figure of matrix A. The values of a step along K lie as sums
        of 16 columns do."""
        m = self.m
        return Layout(((4, 8, 4), (2, 2, 2)), ((2 * m, 1, 16), (m, 8, 8 * m)))
