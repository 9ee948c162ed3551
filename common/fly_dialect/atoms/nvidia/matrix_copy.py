"""Copies of matrices of 8 × 8 elements of 16 bits between shared memory and a warp's registers.

Source: PTX ISA 8.8, "ldmatrix" and "stmatrix".
"""

from __future__ import annotations

from typing import ClassVar, Self

from fly_common.record import record

from fly_dialect.atoms import reading
from fly_dialect.atoms.interface import CopyOp
from fly_dialect.atoms.registry import register
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.scanner import Scanner

THREADS = 32
ROW_BITS = 128  # of a matrix
MATRIX_BITS = 8 * ROW_BITS


@record
class MatrixCopy(CopyOp):
    """`count` matrices. Thread t passes the address of row t mod 8 of matrix t div 8."""

    SIZES: ClassVar[tuple[int, ...]] = (32, 64, 128)
    count: int
    trans: bool = False

    def __post_init__(self) -> None:
        if self.count not in (1, 2, 4):
            raise ValueError(f"a warp copies 1, 2 or 4 matrices at once, not {self.count}")

    @property
    def parameters(self) -> str:
        return f"x{self.count}{', trans' if self.trans else ''}"

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        scanner.expect("x")
        count = reading.number(scanner)
        trans = scanner.take(",")
        if trans:
            scanner.expect("trans")
        return cls(count, trans)

    @property
    def thr_layout(self) -> Layout:
        return Layout(THREADS, 1)

    @property
    def _rows(self) -> Layout:
        """The side of shared memory. With fewer than 4 matrices, the addresses of the last threads
        are not used."""
        rows = 8 * self.count
        return Layout(((rows, THREADS // rows), ROW_BITS), ((ROW_BITS, 0), 1))

    @property
    def _registers(self) -> Layout:
        """Thread t has the pair t mod 4 of row t div 4 of each matrix; of a transposed one of
        column t div 4."""
        if self.trans:
            return Layout(
                ((4, 8), (16, 2, self.count)),
                ((2 * ROW_BITS, 16), (1, ROW_BITS, MATRIX_BITS)),
            )
        return Layout((THREADS, (32, self.count)), (32, (1, MATRIX_BITS)))


@register
@record
class LoadMatrix(MatrixCopy):
    """`!fly_nvvm.sm75.ldmatrix<x4>`, `!fly_nvvm.sm75.ldmatrix<x4, trans>`."""

    NAME: ClassVar[str] = "fly_nvvm.sm75.ldmatrix"
    FAMILIES: ClassVar[tuple[str, ...]] = ("sm_80+",)

    @property
    def thr_bit_layout_src(self) -> Layout:
        return self._rows

    @property
    def thr_bit_layout_dst(self) -> Layout:
        return self._registers

    @property
    def thr_bit_layout_ref(self) -> Layout:
        return self._registers


@register
@record
class StoreMatrix(MatrixCopy):
    """`!fly_nvvm.sm90.stmatrix<x4>`, `!fly_nvvm.sm90.stmatrix<x4, trans>`."""

    NAME: ClassVar[str] = "fly_nvvm.sm90.stmatrix"
    FAMILIES: ClassVar[tuple[str, ...]] = ("sm_90+",)

    @property
    def thr_bit_layout_src(self) -> Layout:
        return self._registers

    @property
    def thr_bit_layout_dst(self) -> Layout:
        return self._rows
