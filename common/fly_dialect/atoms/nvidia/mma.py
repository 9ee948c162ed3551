"""The matrix instruction of a warp: mma.sync (sm_80 and later).

Source: PTX ISA 8.8, "Matrix Fragments for mma.m16n8k…".
"""

from __future__ import annotations

from typing import ClassVar

from fly_common.record import record

from fly_dialect.atoms.matrix import Form, WaveMma
from fly_dialect.atoms.registry import register
from fly_dialect.layouts.layout import Layout
from fly_dialect.types import bits

AMPERE, ADA = "sm_80+", "sm_89+"
THREADS = 32
_FLOAT8 = ("f8E4M3FN", "f8E5M2")


@register
@record
class MmaSync(WaveMma):
    """`!fly_nvvm.sm80.mma<16x8x16, (f16, f16) -> f32>`: a warp multiplies matrices in registers."""

    NAME: ClassVar[str] = "fly_nvvm.sm80.mma"
    FAMILIES: ClassVar[tuple[str, ...]] = (AMPERE, ADA)
    FORMS: ClassVar[tuple[Form, ...]] = (
        Form(16, 8, 16, "f16", "f16", "f32", (AMPERE,)),
        Form(16, 8, 16, "f16", "f16", "f16", (AMPERE,)),
        Form(16, 8, 16, "bf16", "bf16", "f32", (AMPERE,)),
        Form(16, 8, 8, "f32", "f32", "f32", (AMPERE,)),
        Form(16, 8, 32, "i8", "i8", "i32", (AMPERE,)),
        *(Form(16, 8, 32, a, b, "f32", (ADA,)) for a in _FLOAT8 for b in _FLOAT8),
    )

    def __post_init__(self) -> None:
        if not self.is_known:
            raise ValueError(
                f"unsupported mma.sync configuration: {self.shape} with {self.types};"
                f" {self.nearest()}"
            )

    @property
    def thr_layout(self) -> Layout:
        return Layout(THREADS, 1)

    @property
    def _word(self) -> int:
        """The elements of a register, which lie along K."""
        return 32 // bits(self.a)

    @property
    def thr_val_layout_a(self) -> Layout:
        """Registers: rows t div 4 and 8 below, then the other half of K."""
        m, word = self.m, self._word
        half = self.k // 2 * m
        return Layout(((4, 8), (word, 2, 2)), ((word * m, 1), (m, 8, half)))

    @property
    def thr_val_layout_b(self) -> Layout:
        n, word = self.n, self._word
        return Layout(((4, 8), (word, 2)), ((word * n, 1), (n, self.k // 2 * n)))

    @property
    def thr_val_layout_c(self) -> Layout:
        m = self.m
        return Layout(((4, 8), (2, 2)), ((2 * m, 1), (m, 8)))
