"""The lanes of a wave: a constant once the target is known, 64 on CDNA and 32 on RDNA.

A trace is target-independent, so it refers to the size symbolically (gpu.subgroup_size).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record
from fly_target.target import Target

from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.target.set_target import target_of

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


LEAST_WAVE = 32
_OF_WAVES = "ofWaves"


@record
class FoldWaveSize(Pass):
    """Replaces gpu.subgroup_size by a constant, and gives shared arrays of waves their size.

    So uses of the size fold. What is allocated for waves of 32 lanes is more than wider ones need.
    """

    name: ClassVar[str] = "fly-fold-wave-size"
    only_with: ClassVar[tuple[str, ...]] = ("subgroup_size", "ofWaves")

    def run(self, op: ir.Operation) -> bool:
        from fly_dialect.bindings import ir

        target = _target(op)
        both = _named(op, "gpu.subgroup_size", "fly.make_ptr")
        found = [one for one in both if one.name == "gpu.subgroup_size"]
        arrays = [one for one in both if one.name != "gpu.subgroup_size"]
        for size in found:
            index = size.results[0].type
            value = ir.IntegerAttr.get(index, target.wave_size)
            constant = ir.Operation.create(
                "arith.constant",
                [index],
                attributes={"value": value},
                loc=size.location,
                ip=ir.InsertionPoint(size),
            )
            size.results[0].replace_all_uses_with(constant.results[0])
            size.erase()
        return _shrink_arrays(arrays, target.wave_size) or bool(found)


def _shrink_arrays(allocations: list[ir.Operation], lanes: int) -> bool:
    """Gives arrays of waves the size that they need with waves of so many lanes."""
    from fly_dialect.bindings import ir

    arrays = [one for one in allocations if _OF_WAVES in _given(one)]
    for array in arrays:
        given = _given(array)
        size = ir.IntegerAttr(given.pop("allocSize"))
        del given[_OF_WAVES]
        given["allocSize"] = ir.IntegerAttr.get(size.type, size.value * LEAST_WAVE // lanes)
        array.attributes["dictAttrs"] = ir.DictAttr.get(given)
    return bool(arrays)


def _given(array: ir.Operation) -> dict[str, ir.Attribute]:
    """The attributes of an allocation. What makes a pointer of another one has none."""
    from fly_dialect.bindings import ir

    attributes = array.attributes
    if "dictAttrs" not in attributes:
        return {}
    return {one.name: one.attr for one in ir.DictAttr(attributes["dictAttrs"])}


@record
class CheckShuffles(Pass):
    """Rejects lane shuffles among more lanes than the target's waves have.

    Such a shuffle would silently read only its own half of the group. Run this after canonicalize,
    which removes code that a test of the wave size excludes.
    """

    name: ClassVar[str] = "fly-check-shuffles"
    only_with: ClassVar[tuple[str, ...]] = ("shuffle",)

    def run(self, op: ir.Operation) -> bool:
        from fly_dialect.bindings import ir

        target = _target(op)
        for shuffle in _named(op, "gpu.shuffle"):
            width = shuffle.operands[2].owner
            if isinstance(width, ir.Block) or width.name != "arith.constant":
                continue
            lanes = ir.IntegerAttr(width.attributes["value"]).value
            if lanes > target.wave_size:
                raise refuse(
                    shuffle,
                    f"a shuffle uses {lanes} lanes, but a wave of {target.name} has"
                    f" {target.wave_size}",
                    "omit the width to use the whole wave; fx.num_warp_threads() is its size",
                )
        return False


def _target(op: ir.Operation) -> Target:
    target = target_of(op)
    if target is None:
        raise refuse(op, "the module has no target", "run fly-set-target{chip=…} first")
    return target


def _named(root: ir.Operation, *names: str) -> list[ir.Operation]:
    """Returns the operations of these names inside `root`, in textual order."""
    from fly_dialect.bindings import ir

    found: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(collect)
    return found
