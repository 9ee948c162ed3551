"""The accesses of memory by AMD's instructions; see `fly_opt.passes.instrumentation.accesses`."""

from __future__ import annotations

from fly_dialect.bindings import ir

from fly_opt.passes.instrumentation.accesses import ATOMIC, LOAD, STORE, Access, made
from fly_opt.passes.instrumentation.provenance import field, maker

_BUFFER = "rocdl.raw.ptr.buffer."
_BUFFER_INTRINSIC = "llvm.amdgcn.raw.ptr.buffer."
_TRANSPOSED = ("rocdl.ds.read.tr", "rocdl.ds.load.tr")
_TO_LDS = frozenset(
    (
        *("rocdl.global.load.lds", "rocdl.global.load.async.lds"),
        *("rocdl.load.to.lds", "rocdl.load.async.to.lds"),
    )
)


def accesses(op: ir.Operation) -> list[Access]:
    """What an op accesses; nothing for an op of LLVM's."""
    name, operands = op.name, op.operands
    if name.startswith(_TRANSPOSED):
        return made(LOAD, operands[0], op.results[0].type)
    if name in _TO_LDS:
        size = ir.IntegerAttr(op.attributes["size"]).value
        return _to_lds(operands[0], operands[1], size, ())
    if name.startswith(_BUFFER):
        return _of_buffer(name.removeprefix(_BUFFER), op, list(operands))
    if name == "llvm.call_intrinsic":
        intrinsic = ir.StringAttr(op.attributes["intrin"]).value
        if intrinsic.startswith(_BUFFER_INTRINSIC):
            return _of_buffer(intrinsic.removeprefix(_BUFFER_INTRINSIC), op, list(operands))
    return []


def _of_buffer(what: str, op: ir.Operation, operands: list[ir.Value]) -> list[Access]:
    if what in ("load.lds", "load.async.lds"):
        resource, lds, size, *offsets = operands
        nbytes = _constant(size)
        return [] if nbytes is None else _to_lds(_base(resource), lds, nbytes, tuple(offsets), True)
    if what == "load":
        return made(LOAD, _base(operands[0]), op.results[0].type, tuple(operands[1:3]), True)
    if what == "store":
        value, resource, *offsets = operands
        return made(STORE, _base(resource), value.type, tuple(offsets[:2]), True, value)
    if what.startswith("atomic"):
        # A compare and exchange has two values in front of the descriptor.
        first = 2 if "cmpswap" in what else 1
        resource, *offsets = operands[first:]
        return made(ATOMIC, _base(resource), operands[0].type, tuple(offsets[:2]), True)
    return []


def _to_lds(
    source: ir.Value,
    lds: ir.Value,
    nbytes: int,
    offsets: tuple[ir.Value, ...],
    buffer: bool = False,
) -> list[Access]:
    bits = 8 * nbytes
    return [
        Access(LOAD, source, nbytes, bits, offsets, buffer),
        Access(STORE, lds, nbytes, bits, per_lane=True),
    ]


def _base(resource: ir.Value) -> ir.Value:
    """The pointer that a descriptor was made of; the descriptor if that is not known."""
    value, op = resource, maker(resource)
    while op is not None and op.name == "llvm.extractvalue":
        found = field(op)
        if found is None:
            return resource
        value, op = found, maker(found)
    made_here = op is not None and op.name == "rocdl.make.buffer.rsrc"
    return op.operands[0] if op is not None and made_here else value


def _constant(value: ir.Value) -> int | None:
    op = maker(value)
    if op is None or op.name not in ("arith.constant", "llvm.mlir.constant"):
        return None
    return ir.IntegerAttr(op.attributes["value"]).value
