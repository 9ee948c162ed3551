"""CDNA4's transposing LDS reads: ds_read_b64_tr_b16 and its variants.

Source: the CDNA4 ISA manual, "LDS transpose loads". Sixteen threads execute one together.
"""

from __future__ import annotations

from typing import ClassVar, Self

from fly_common.record import record

from fly_dialect.atoms import reading
from fly_dialect.atoms.amd.mfma import CDNA4
from fly_dialect.atoms.interface import CopyOp
from fly_dialect.atoms.registry import register
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.scanner import Scanner

# Bits per element → bits read per thread.
READ_BITS = {4: 64, 6: 96, 8: 64, 16: 64}
THREADS = 16


@register
@record
class LdsReadTranspose(CopyOp):
    """`!fly_rocdl.cdna4.lds_read_trans<trans = 16b, 64>`: thread t passes the address of row t of a
    tile in LDS and receives column t, in elements of `granularity` bits."""

    NAME: ClassVar[str] = "fly_rocdl.cdna4.lds_read_trans"
    FAMILIES: ClassVar[tuple[str, ...]] = (CDNA4,)
    SIZES: ClassVar[tuple[int, ...]] = (64, 96)
    granularity: int
    bit_size: int

    def __post_init__(self) -> None:
        if READ_BITS.get(self.granularity) != self.bit_size:
            known = ", ".join(f"({size}, {trans})" for trans, size in READ_BITS.items())
            raise ValueError(
                f"unsupported (bitSize, transGranularity) = ({self.bit_size}, "
                f"{self.granularity}) for LDS read transpose; expected one of {known}"
            )

    @property
    def parameters(self) -> str:
        return f"trans = {self.granularity}b, {self.bit_size}"

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        reading.key(scanner, "trans")
        granularity = reading.number(scanner)
        scanner.expect("b")
        scanner.expect(",")
        return cls(granularity, reading.number(scanner))

    @property
    def thr_layout(self) -> Layout:
        return Layout(THREADS, 1)

    @property
    def thr_bit_layout_src(self) -> Layout:
        return Layout((THREADS, self.bit_size), (self.bit_size, 1))

    @property
    def thr_bit_layout_dst(self) -> Layout:
        count = self.bit_size // self.granularity
        row = THREADS * self.granularity
        return Layout((THREADS, (self.granularity, count)), (self.granularity, (1, row)))

    @property
    def thr_bit_layout_ref(self) -> Layout:
        return self.thr_bit_layout_dst
