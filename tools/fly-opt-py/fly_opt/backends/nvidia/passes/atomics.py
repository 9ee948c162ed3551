"""fly-nvvm-atomics: scopes and orders of atomic operations, as LLVM's NVPTX backend knows them.

LLVM 22 generates `atom` without an order and a scope for every atomicrmw: relaxed, for the device.
Fences and compare-and-swap keep theirs.
"""

from __future__ import annotations

from typing import ClassVar

from fly_common.quoting import quoted
from fly_common.record import record
from fly_dialect.bindings import ir
from fly_target.target import Target

from fly_opt.ir.builder import operations
from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.target.set_target import target_of

_ATOMIC = ("llvm.atomicrmw", "llvm.cmpxchg", "llvm.fence", "llvm.load", "llvm.store")
# The scopes of a trace, which are those of the default target, and LLVM's for NVPTX. The
# "one-as" variants order accesses to one address space only; ordering all of them is stronger.
_SCOPES = {"agent": "device", "workgroup": "block", "wavefront": "block", "one-as": ""}
_OWN = ("", "singlethread", "block", "cluster", "device")
_SUFFIX = "-one-as"

# LLVM's orderings.
_MONOTONIC, _ACQUIRE, _RELEASE, _ACQUIRE_RELEASE, _SEQUENTIAL = 2, 4, 5, 6, 7
_ACQUIRES = (_ACQUIRE, _ACQUIRE_RELEASE, _SEQUENTIAL)
_RELEASES = (_RELEASE, _ACQUIRE_RELEASE, _SEQUENTIAL)

# LLVM's bin_op → PTX's operation and kind of type, of those with an instruction.
_INSTRUCTIONS = {
    0: ("exch", "b"),
    1: ("add", "u"),
    3: ("and", "b"),
    5: ("or", "b"),
    6: ("xor", "b"),
    7: ("max", "s"),
    8: ("min", "s"),
    9: ("max", "u"),
    10: ("min", "u"),
    11: ("add", "f"),
    15: ("inc", "u"),
    16: ("dec", "u"),
}
_CONSTRAINTS = {"i32": "r", "i64": "l", "f32": "f", "f64": "d"}
_SPACES = {"!llvm.ptr<1>": ".global", "!llvm.ptr": ""}


@record
class Atomics(Pass):
    """Renames the scopes of atomics, and adds the fences of their orders.

    An update with an order becomes a relaxed one between fences. One whose scope is the system
    becomes inline assembly with this scope, if it is a single instruction.
    """

    name: ClassVar[str] = "fly-nvvm-atomics"

    def run(self, op: ir.Operation) -> bool:
        target = target_of(op)
        if target is None:
            raise refuse(op, "the module has no target", "run fly-set-target{chip=…} first")
        found = [one for one in operations(op) if one.name in _ATOMIC]
        for inner in found:
            scope = _rename(inner, target)
            if inner.name == "llvm.atomicrmw":
                _order(inner, scope)
                if not scope:
                    _for_system(inner)
        return bool(found)


def _rename(op: ir.Operation, target: Target) -> str:
    """Sets the scope of NVPTX and returns it."""
    if "syncscope" not in op.attributes:
        return ""
    said = ir.StringAttr(op.attributes["syncscope"]).value
    scope = said.removesuffix(_SUFFIX)
    scope = _SCOPES.get(scope, scope)
    if scope not in _OWN:
        known = ", ".join(_OWN[1:])
        raise refuse(op, f"{target.name} has no scope {quoted(said)}", f"its scopes: {known}")
    if scope == "cluster" and "sm_90+" not in target.traits:
        scope = "device"  # the next greater scope
    if scope:
        op.attributes["syncscope"] = ir.StringAttr.get(scope)
    else:
        del op.attributes["syncscope"]
    return scope


def _order(op: ir.Operation, scope: str) -> None:
    ordering = ir.IntegerAttr(op.attributes["ordering"]).value
    sequential = ordering == _SEQUENTIAL
    if ordering in _RELEASES:
        with ir.InsertionPoint(op), op.location:
            _fence(_SEQUENTIAL if sequential else _RELEASE, scope)
    if ordering in _ACQUIRES:
        with ir.InsertionPoint.after(op), op.location:
            _fence(_ACQUIRE, scope)
    op.attributes["ordering"] = _i64(_MONOTONIC)


def _fence(ordering: int, scope: str) -> None:
    attributes: dict[str, ir.Attribute] = {"ordering": _i64(ordering)}
    if scope:
        attributes["syncscope"] = ir.StringAttr.get(scope)
    ir.Operation.create("llvm.fence", [], [], attributes)


def _i64(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _for_system(op: ir.Operation) -> None:
    """Replaces an update of global memory by an instruction for the scope of the system."""
    pointer, value = op.operands
    kind, space = str(value.type), _SPACES.get(str(pointer.type))
    known = _INSTRUCTIONS.get(ir.IntegerAttr(op.attributes["bin_op"]).value)
    if space is None or known is None or kind not in _CONSTRAINTS:
        return
    name, letter = known
    if letter == "f" and not kind.startswith("f"):
        return
    if letter != "b" and name in ("inc", "dec") and kind != "i32":
        return
    constraint = _CONSTRAINTS[kind]
    text = f"atom.relaxed.sys{space}.{name}.{letter}{kind[1:]} $0, [$1], $2;"
    attributes = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(f"={constraint},l,{constraint},~{{memory}}"),
        "has_side_effects": ir.UnitAttr.get(),
    }
    with ir.InsertionPoint(op), op.location:
        made = ir.Operation.create("llvm.inline_asm", [value.type], [pointer, value], attributes)
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()
