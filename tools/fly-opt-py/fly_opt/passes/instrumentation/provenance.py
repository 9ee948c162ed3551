"""Where pointers come from, in the IR of the slot opt.before-gpu-lowering.

`roots(pointer)` follows address computations, casts, the pairs of buffer pointers and the values
that branches and loops carry, to what has the memory: kernels' arguments, the addresses of
variables, allocas. It is None for a pointer that comes from elsewhere, such as from memory.
"""

from __future__ import annotations

from fly_dialect.bindings import ir

# Ops whose result points into the same memory as their first operand.
_MOVES = frozenset(
    (
        *("llvm.getelementptr", "llvm.addrspacecast", "llvm.bitcast", "llvm.freeze"),
        "builtin.unrealized_conversion_cast",
    )
)
_ROOTS = frozenset(("llvm.mlir.addressof", "llvm.alloca"))
# Ops that compute with an address as an integer: swizzles.
_ARITHMETIC = frozenset(
    (
        *(f"arith.{name}" for name in ("addi", "subi", "andi", "ori", "xori", "shli", "shrui")),
        *("arith.shrsi", "arith.extui", "arith.extsi", "arith.trunci", "arith.muli"),
        *(f"llvm.{name}" for name in ("add", "sub", "and", "or", "xor", "shl", "lshr", "ashr")),
        *("llvm.zext", "llvm.sext", "llvm.trunc"),
    )
)
_DEEPEST = 64  # operations between an integer and the pointer that it was


def maker(value: ir.Value) -> ir.Operation | None:
    """The op that has a value as its result; None for an argument of a block."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def roots(pointer: ir.Value) -> list[ir.Value] | None:
    """What may have the memory that `pointer` points into; None if that is not known."""
    found: list[ir.Value] = []
    return found if _collect(pointer, found, set()) else None


def root(pointer: ir.Value) -> ir.Value | None:
    """What has the memory that `pointer` points into; None if that is not one value."""
    found = roots(pointer)
    return found[0] if found is not None and len(found) == 1 else None


def _collect(value: ir.Value, found: list[ir.Value], seen: set[ir.Value]) -> bool:
    """Adds the roots of a value. Returns False if there is one that can't be told."""
    while value not in seen:
        seen.add(value)
        if isinstance(value, ir.BlockArgument):
            return _argument(value, found, seen)
        op = maker(value)
        assert op is not None
        name = op.name
        if name in _MOVES:
            value = op.operands[0]
        elif name in _ROOTS:
            # Each use of a variable may have an op of its own.
            if not any(_same(value, other) for other in found):
                found.append(value)
            return True
        elif name == "llvm.inttoptr":
            source = _pointer_of(op.operands[0])
            if source is None:
                return False
            value = source
        elif name == "llvm.extractvalue":
            part = field(op)
            if part is None:
                return False
            value = part
        elif name in ("llvm.select", "arith.select"):
            return all(_collect(one, found, seen) for one in list(op.operands)[1:])
        elif name in ("scf.if", "scf.for", "scf.while", "scf.execute_region"):
            return _of_region(op, ir.OpResult(value).result_number, found, seen)
        else:
            return False
    return True


def _same(value: ir.Value, other: ir.Value) -> bool:
    """Whether two roots are the address of the same variable."""
    first, second = maker(value), maker(other)
    if first is None or second is None or not first.name == second.name == "llvm.mlir.addressof":
        return False
    return first.attributes["global_name"] == second.attributes["global_name"]


def _argument(value: ir.BlockArgument, found: list[ir.Value], seen: set[ir.Value]) -> bool:
    owner = value.owner.owner.operation
    if owner.name in ("gpu.func", "llvm.func"):
        found.append(value)
        return True
    if owner.name == "scf.for":
        # Operands: lower bound, upper bound, step, then the initial values.
        number = value.arg_number - 1
        if number < 0:
            return False
        initial = owner.operands[3 + number]
        yielded = _terminator(owner.regions[0]).operands[number]
        return all(_collect(one, found, seen) for one in (initial, yielded))
    if owner.name == "scf.while":
        number, before = value.arg_number, owner.regions[0]
        if value.owner == before.blocks[0]:
            ways = owner.operands[number], _terminator(owner.regions[1]).operands[number]
        else:
            ways = (_terminator(before).operands[1 + number],)
        return all(_collect(one, found, seen) for one in ways)
    return False


def _of_region(op: ir.Operation, number: int, found: list[ir.Value], seen: set[ir.Value]) -> bool:
    if op.name == "scf.while":
        ends = [_terminator(op.regions[0]).operands[1 + number]]
    else:
        ends = [_terminator(one).operands[number] for one in op.regions if len(one.blocks) == 1]
        if op.name == "scf.for":
            ends.append(op.operands[3 + number])
    return bool(ends) and all(_collect(one, found, seen) for one in ends)


def _terminator(region: ir.Region) -> ir.Operation:
    return list(region.blocks[0].operations)[-1].operation


def field(op: ir.Operation) -> ir.Value | None:
    """The value that an extractvalue gets, where insertvalues in the same code put it."""
    position = op.attributes["position"]
    inner = maker(op.operands[0])
    while inner is not None and inner.name == "llvm.insertvalue":
        if inner.attributes["position"] == position:
            return inner.operands[1]
        inner = maker(inner.operands[0])
    return None


def _pointer_of(number: ir.Value) -> ir.Value | None:
    """The pointer that an integer was computed from, if that is one."""
    found: list[ir.Value] = []
    waiting, seen = [number], 0
    while waiting and seen < _DEEPEST:
        seen += 1
        value = waiting.pop()
        op = maker(value)
        if op is None:
            continue
        if op.name == "llvm.ptrtoint":
            if op.operands[0] not in found:
                found.append(op.operands[0])
        elif op.name in _ARITHMETIC:
            waiting += list(op.operands)
    return found[0] if len(found) == 1 and not waiting else None
