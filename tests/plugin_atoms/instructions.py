"""The instructions as types."""

from __future__ import annotations

from typing import ClassVar, Self

from fly_common.record import record
from fly_dialect.atoms import MmaOp, reading
from fly_dialect.atoms.universal import ONE_THREAD, SizedCopy
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.scanner import Scanner

ONE = Layout((1, 1), (1, 1))


@record
class Fma(MmaOp):
    NAME: ClassVar[str] = "twice.fma"
    element: str

    def __post_init__(self) -> None:
        if self.element not in ("f32", "f64"):
            raise ValueError(f"there is no twice.fma of {self.element}")

    @property
    def parameters(self) -> str:
        return self.element

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        return cls(reading.word(scanner))

    @property
    def thr_layout(self) -> Layout:
        return ONE_THREAD

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return 1, 1, 1

    @property
    def elements(self) -> tuple[str, str, str, str]:
        return self.element, self.element, self.element, self.element

    thr_val_layout_a = thr_val_layout_b = thr_val_layout_c = ONE


@record
class Flip(SizedCopy):
    NAME: ClassVar[str] = "twice.flip"
