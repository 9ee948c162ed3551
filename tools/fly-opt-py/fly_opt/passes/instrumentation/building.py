"""What passes build that instrument kernels: integer arithmetic, and code around an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from fly_dialect.bindings import ir

from fly_opt.lowering import interface
from fly_opt.lowering.interface import Lowering
from fly_opt.passes.base import refuse
from fly_opt.passes.instrumentation.provenance import maker
from fly_opt.passes.target.set_target import target_of

EQ, SLT, SLE, SGT, SGE, ULT = 0, 2, 3, 4, 5, 6  # arith.cmpi's predicates
_LABELS = {"block": "gpu.block_id", "thread": "gpu.thread_id"}
_SIZES = {"block": "gpu.grid_dim", "thread": "gpu.block_dim"}


class Arithmetic:
    """An insertion point and a location. Integers have 64 bits unless they say otherwise."""

    def __init__(self, ip: ir.InsertionPoint, loc: ir.Location):
        self.ip, self.loc = ip, loc
        self.i64 = ir.IntegerType.get_signless(64)
        self.i1 = ir.IntegerType.get_signless(1)

    def op(
        self,
        name: str,
        type_: ir.Type,
        operands: Sequence[ir.Value],
        attributes: Mapping[str, ir.Attribute] | None = None,
    ) -> ir.Value:
        """Builds an op with one result."""
        made = ir.Operation.create(
            name, [type_], list(operands), dict(attributes or {}), loc=self.loc, ip=self.ip
        )
        return made.results[0]

    def constant(self, value: int) -> ir.Value:
        attribute = ir.IntegerAttr.get(self.i64, value)
        return self.op("arith.constant", self.i64, [], {"value": attribute})

    def wide(self, value: ir.Value, signed: bool = True) -> ir.Value:
        """An integer or index as 64 bits."""
        if value.type == self.i64:
            return value
        if isinstance(value.type, ir.IndexType):
            return self.op("arith.index_cast", self.i64, [value])
        return self.op("arith.extsi" if signed else "arith.extui", self.i64, [value])

    def narrow(self, value: ir.Value, bits: int) -> ir.Value:
        return self.op("arith.trunci", ir.IntegerType.get_signless(bits), [value])

    def address(self, pointer: ir.Value) -> ir.Value:
        return self.op("llvm.ptrtoint", self.i64, [pointer])

    def again(self, root: ir.Value) -> ir.Value:
        """A root of a pointer (`provenance.roots`), as a value that can be used here: the address
        of a variable may have been taken in another region."""
        op = maker(root)
        if op is None or op.name != "llvm.mlir.addressof":
            return root
        return self.op(op.name, root.type, [], {"global_name": op.attributes["global_name"]})

    def offset(self, pointer: ir.Value, base: ir.Value, narrow: bool) -> ir.Value:
        """The bytes from `base` to `pointer`; `narrow`: their addresses have 32 bits."""
        difference = self.sub(self.address(pointer), self.address(base))
        return self.wide(self.narrow(difference, 32)) if narrow else difference

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.addi", self.i64, [a, b])

    def sub(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.subi", self.i64, [a, b])

    def mul(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.muli", self.i64, [a, b])

    def div(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """The quotient, rounded down."""
        return self.op("arith.floordivsi", self.i64, [a, b])

    def rem(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.remsi", self.i64, [a, b])

    def shl(self, a: ir.Value, bits: int) -> ir.Value:
        return self.op("arith.shli", self.i64, [a, self.constant(bits)])

    def min(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.minsi", self.i64, [a, b])

    def max(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.maxsi", self.i64, [a, b])

    def product(self, values: Sequence[ir.Value]) -> ir.Value:
        return reduce(self.mul, values) if values else self.constant(1)

    def compare(self, predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
        attributes = {"predicate": ir.IntegerAttr.get(self.i64, predicate)}
        return self.op("arith.cmpi", self.i1, [a, b], attributes)

    def both(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.andi", self.i1, [a, b])

    def either(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.ori", self.i1, [a, b])

    def select(self, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.select", a.type, [condition, a, b])

    def number(self, what: str) -> ir.Value:
        """The number of this `block` in the grid, or of this `thread` in the block; x is the
        fastest."""

        def read(name: str, axis: str) -> ir.Value:
            attribute = ir.Attribute.parse(f"#gpu<dim {axis}>")
            return self.wide(self.op(name, ir.IndexType.get(), [], {"dimension": attribute}))

        total = read(_LABELS[what], "z")
        for axis in "yx":
            total = self.mul(total, read(_SIZES[what], axis))
            total = self.add(total, read(_LABELS[what], axis))
        return total


def lowering_of(op: ir.Operation) -> Lowering:
    """The backend's part of the lowering, for a module with a target."""
    target = target_of(op)
    if target is None:
        raise refuse(op, "the module has no target", "run fly-set-target{chip=…} first")
    return interface.of_target(target)


def gpu_modules(op: ir.Operation) -> list[ir.Operation]:
    """The gpu.modules of a module."""
    inner = [one.operation for one in op.regions[0].blocks[0]]
    return [one for one in inner if one.name == "gpu.module"]


def kernels(module: ir.Operation) -> list[ir.Operation]:
    """The kernels of a gpu.module."""
    inner = [one.operation for one in module.regions[0].blocks[0]]
    return [one for one in inner if one.name == "gpu.func"]


def symbol_of(op: ir.Operation) -> str:
    """The name of a function or variable."""
    return ir.StringAttr(op.attributes["sym_name"]).value


def guarded(
    op: ir.Operation,
    condition: ir.Value,
    otherwise: Callable[[Arithmetic], None],
    skip: bool = True,
) -> None:
    """Runs `op` where `condition` holds. Elsewhere runs what `otherwise` builds, and op's results
    are zero. With `skip` false, op runs in any case."""
    types = [one.type for one in op.results] if skip else []
    ip, loc = ir.InsertionPoint(op), op.location
    branch = ir.Operation.create("scf.if", types, [condition], regions=2, loc=loc, ip=ip)
    then, other = (region.blocks.append() for region in branch.regions)
    results = list(op.results) if skip else []
    for old, new in zip(results, branch.results, strict=False):
        old.replace_all_uses_with(new)
    end = _yield(then, results, loc)
    if skip:
        op.move_before(end)
    at = ir.InsertionPoint(other)
    zeros = [_zero(type_, at, loc) for type_ in types]
    otherwise(Arithmetic(ir.InsertionPoint(_yield(other, zeros, loc)), loc))


def _zero(type_: ir.Type, at: ir.InsertionPoint, loc: ir.Location) -> ir.Value:
    """Zero, also of the float types that LLVM does not have."""
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    if not isinstance(element, (ir.FloatType, ir.IntegerType)):
        return ir.Operation.create("llvm.mlir.zero", [type_], [], loc=loc, ip=at).results[0]
    is_float = isinstance(element, ir.FloatType)
    zero = ir.FloatAttr.get(element, 0.0) if is_float else ir.IntegerAttr.get(element, 0)
    if isinstance(type_, ir.VectorType):
        zero = ir.DenseElementsAttr.get_splat(type_, zero)
    return ir.Operation.create(
        "arith.constant", [type_], [], {"value": zero}, loc=loc, ip=at
    ).results[0]


def _yield(block: ir.Block, values: Sequence[ir.Value], loc: ir.Location) -> ir.Operation:
    return ir.Operation.create("scf.yield", [], list(values), loc=loc, ip=ir.InsertionPoint(block))


def call(
    at: ir.InsertionPoint, loc: ir.Location, name: str, operands: Sequence[ir.Value]
) -> ir.Operation:
    """Builds a call of a function of the gpu.module that returns nothing."""
    attributes: dict[str, ir.Attribute] = {
        "callee": ir.FlatSymbolRefAttr.get(name),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    return ir.Operation.create("llvm.call", [], list(operands), attributes, loc=loc, ip=at)


def add_functions(module: ir.Operation, text: str, *names: str) -> None:
    """Adds the functions `names` of a text to a gpu.module. The text is verified by itself, so it
    declares the variables and functions that these use."""
    parsed = ir.Module.parse(text)
    for one in list(parsed.body):
        if one.operation.name == "llvm.func" and symbol_of(one.operation) in names:
            module.regions[0].blocks[0].append(one.detach_from_parent())
