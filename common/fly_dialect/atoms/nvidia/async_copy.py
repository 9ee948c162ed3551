"""cp.async: copies from global to shared memory that bypass registers (sm_80 and later).

Source: PTX ISA 8.8, "cp.async".
"""

from __future__ import annotations

from typing import ClassVar

from fly_common.record import record

from fly_dialect.atoms.registry import register
from fly_dialect.atoms.universal import SizedCopy


@register
@record
class AsyncCopy(SizedCopy):
    """`!fly_nvvm.sm80.cp_async<128>`: a thread copies 32, 64 or 128 bits. Groups of copies are
    waited for."""

    NAME: ClassVar[str] = "fly_nvvm.sm80.cp_async"
    FAMILIES: ClassVar[tuple[str, ...]] = ("sm_80+",)
    SIZES: ClassVar[tuple[int, ...]] = (32, 64, 128)

    def __post_init__(self) -> None:
        if self.bit_size not in self.SIZES:
            raise ValueError(f"cp.async copies 32, 64 or 128 bits, not {self.bit_size}")
