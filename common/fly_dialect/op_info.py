"""A row of the table of ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_common.record import record

if TYPE_CHECKING:
    from fly_dialect.inference.rules import Check, Infer


@record
class OpInfo:
    """`operands` and `results` are counts, several if some are optional; None is any number. `pure`
    ops have no side effects."""

    name: str
    operands: int | tuple[int, ...] | None
    results: int | None
    infer: Infer | None = None
    check: Check | None = None
    pure: bool = True
    form: str = "functional"  # the form of the op's text; see fly_dialect.text.forms
    dialect: str = "fly"

    @property
    def full_name(self) -> str:
        return f"{self.dialect}.{self.name}"
