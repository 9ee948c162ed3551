"""Moves between lanes of gfx1250: V_PERMLANE_BCAST, _UP, _DOWN, _XOR and _IDX_GEN, within groups of
lanes whose size a scalar gives (CDNA5 ISA manual, 15.14, as tests of public programs quote it).

A group has 1, 2, 4, … 32 lanes. A lane whose source would be outside its group keeps its own value.
Whether EXEC disables sources is not documented: they are read whether active or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import LANES, Handler, load_row, store_row
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.vector.lanes import Body, element, scratch_row

# (lane, its group's first lane, selector, group's size) → the lane to read
Choice = Callable[[Value, Value, Value, Value], Value]


def operations() -> Iterator[Operation]:
    for name, choice in CHOICES.items():
        yield Operation(f"v_permlane_{name}_b32", "custom", body=_permute(choice))
    yield Operation("v_permlane_idx_gen_b32", "custom", body=_index)


def _broadcast(lane: Value, first: Value, selector: Value, size: Value) -> Value:
    return first + (selector & (size - 1))


def _up(lane: Value, first: Value, selector: Value, size: Value) -> Value:
    source = lane - selector
    return source.compare("sge", first).select(source, lane)


def _down(lane: Value, first: Value, selector: Value, size: Value) -> Value:
    source = lane + selector
    return source.compare("slt", first + size).select(source, lane)


def _cross(lane: Value, first: Value, selector: Value, size: Value) -> Value:
    source = lane ^ selector
    inside = source.compare("sge", first) & source.compare("slt", first + size)
    return inside.select(source, lane)


CHOICES: dict[str, Choice] = {"bcast": _broadcast, "up": _up, "down": _down, "xor": _cross}


def _group(h: Handler, lane: Value, operand: int) -> tuple[Value, Value]:
    """Returns a lane's group: its first lane and its size, a power of two up to 32."""
    given = h.operand(operand).load("i32").zext("i64") & 63
    size = h.intrinsic("llvm.umin", h.intrinsic("llvm.umax", given, given.like(1)), given.like(32))
    return lane & -size, size


def _permute(choice: Choice) -> Body:
    """Operands: the result, the source, the selector and the group's size in scalars."""

    def run(h: Handler) -> None:
        result, origin = scratch_row(h), h.constant("i64", 0)
        store_row(result, origin, load_row(h.operand(0), origin, LANES), None)
        selector = h.operand(2).load("i32").zext("i64") & 63

        def fetch(lane: Value) -> None:
            first, size = _group(h, lane, 3)
            source = choice(lane, first, selector, size)
            element(result, lane).store(element(h.operand(1), source).load("i32"))

        h.for_lanes(h.exec_mask(), fetch)
        store_row(h.operand(0), origin, load_row(result, origin, LANES), None)

    return run


def _index(h: Handler) -> None:
    """The byte address of a lane of the group, as ds_bpermute takes it. Operands: the result, the
    lane's number in the group, the group's size in a scalar."""

    def make(lane: Value) -> None:
        first, size = _group(h, lane, 2)
        chosen = element(h.operand(1), lane).load("i32").zext("i64") & (size - 1)
        element(h.operand(0), lane).store(((first + chosen) << 2).trunc("i32"))

    h.for_lanes(h.exec_mask(), make)
