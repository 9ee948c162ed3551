"""Lane moves that only gfx10 and later have: v_permlane16, v_permlanex16, and gfx12's variants with
a selector in each lane (RDNA3 and RDNA4 ISA manuals).
"""

from __future__ import annotations

from collections.abc import Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import LANES, Handler, load_row, store_row
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.vector.lanes import Body, element, scratch_row

ROW_LANES = 16
BOUND, INACTIVE = 1, 2  # bits of the extra word: bound_ctrl, fi


def operations() -> Iterator[Operation]:
    for name, other in (("v_permlane16", 0), ("v_permlanex16", ROW_LANES)):
        yield Operation(f"{name}_b32", "custom", body=_permute(other, False))
        yield Operation(f"{name}_var_b32", "custom", body=_permute(other, True))


def _permute(other: int, varies: bool) -> Body:
    """Operands: the result, the source, and the lanes to read: four bits for each lane of a row in
    two scalars, or (`varies`) the low four bits of each lane of a row. `other` is or'ed to the
    row's first lane: 16 selects the other row of the pair. If the source lane is inactive, a lane
    keeps its value, or reads 0 if bound_ctrl is set."""

    def run(h: Handler) -> None:
        mask, result, origin = h.exec_mask(), scratch_row(h), h.constant("i64", 0)
        store_row(result, origin, load_row(h.operand(0), origin, LANES), None)
        bound = (h.extra() & BOUND).compare("ne", 0)
        any_lane = (h.extra() & INACTIVE).compare("ne", 0)
        table = None
        if not varies:
            low, high = (h.operand(number).load("i32").zext("i64") for number in (2, 3))
            table = low | (high << 32)

        def fetch(lane: Value) -> None:
            if table is None:
                place = element(h.operand(2), lane).load("i32").zext("i64") & (ROW_LANES - 1)
            else:
                place = table.lshr((lane & (ROW_LANES - 1)) << 2) & (ROW_LANES - 1)
            source = ((lane & -ROW_LANES) ^ other) | place
            valid = any_lane | (mask.lshr(source) & 1).compare("ne", 0)
            value = valid.select(element(h.operand(1), source).load("i32"), 0)
            target = element(result, lane)
            target.store((valid | bound).select(value, target.load("i32")))

        h.for_lanes(mask, fetch)
        # Inactive lanes have their old values there.
        store_row(h.operand(0), origin, load_row(result, origin, LANES), None)

    return run
