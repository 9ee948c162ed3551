"""State of the conversion of the fly dialect to LLVM: the lowered values, and the ops to erase."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fly_dialect.bindings import ir
from fly_dialect.dialect import NAMESPACES, int_tuple_of, pointer_of, spec_of
from fly_dialect.layouts.integers import Int
from fly_dialect.op_table import find
from fly_dialect.types import BackendSpec, FlySpec, Spec
from fly_target.target import Target

from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder, operations, unused
from fly_opt.lowering import interface, spaces
from fly_opt.passes.base import refuse
from fly_opt.passes.target.set_target import target_of

FUNCTIONS = ("func.func", "gpu.func")
_GLOBAL = "llvm.mlir.global"
_DIALECTS = tuple(f"{namespace}." for namespace in NAMESPACES)


class Conversion:
    """The conversion's state. `table` maps an op's full name to the function that converts it: it
    returns the value that replaces the result, or None."""

    def __init__(
        self, table: Mapping[str, Callable[[Conversion, ir.Operation], ir.Value | None]]
    ) -> None:
        self.table = table
        self.builder = Builder()
        self.lowered: dict[ir.Value, ir.Value] = {}
        self.integers: dict[ir.Value, ir.Value] = {}  # scalar int_tuple → the integer in it
        self.done: list[ir.Operation] = []  # fly ops, in the order of the text
        self.retyped: list[tuple[ir.Value, ir.Type]] = []
        self.functions: list[ir.Operation] = []
        self.stack: ir.Operation | None = (
            None  # the last stack slot of the function that was entered last
        )
        self.gpu_module: ir.Operation | None = None  # the last that was entered
        self.symbols: set[str] = set()  # the shared variables in it
        self.dynamic: str | None = None  # the one that represents dynamic shared memory
        self.target: Target | None = None  # the module's, if known

    def run(self, module: ir.Operation) -> None:
        """Converts everything in `module`, definitions before uses."""
        self.target = target_of(module)
        for op in operations(module):
            name = op.name
            if name.startswith(_DIALECTS):
                self.builder.enter(op)
                self.fly_op(op, name)
            else:
                self.foreign_op(op, name)
        self.finish()

    def foreign_op(self, op: ir.Operation, name: str) -> None:
        for result in op.results:
            self.retype(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self.retype(argument)
        if name in FUNCTIONS:
            self.functions.append(op)
            self.stack = None
        elif name == "gpu.module":
            self.gpu_module, self.symbols, self.dynamic = op, _variables(op), None

    def retype(self, value: ir.Value) -> None:
        if isinstance(value.type, ir.OpaqueType) and (type_ := lowered_type(spec_of(value.type))):
            self.retyped.append((value, type_))

    def fly_op(self, op: ir.Operation, name: str) -> None:
        convert = self.table.get(name)
        if convert is not None:
            self.builder.at(op)
            try:
                value = convert(self, op)
            except ValueError as error:
                raise refuse(op, f"{name}: {error}") from None
            if value is not None:
                self.lowered[op.results[0]] = value
        self.done.append(op)

    def finish(self) -> None:
        """Erases the fly ops and gives values that carried fly pointers LLVM's types."""
        for op in reversed(self.done):
            for result in op.results:
                if result in self.lowered:
                    result.replace_all_uses_with(self.lowered[result])
            if not all(unused(result) for result in op.results) or (
                op.name not in self.table and not _pure(op)
            ):
                raise refuse(
                    op,
                    f"{op.name} is not a memory operation",
                    hint="run fly-rewrite-func-signature and fly-layout-lowering first",
                )
            op.erase()
        for value, type_ in self.retyped:
            value.set_type(type_)
        for function in self.functions:
            _retype_function(function)

    # -- values

    def value(self, value: ir.Value) -> ir.Value:
        """Returns the lowered value; a value of another dialect is returned unchanged."""
        return self.lowered.get(value, value)

    def offset(self, value: ir.Value) -> ir.Value:
        """Returns the integer in a scalar int_tuple built by make_int_tuple."""
        leaf = int_tuple_of(value).value
        if isinstance(leaf, Int) and leaf.value is not None:
            return self.builder.constant(leaf.value, leaf.width)
        if value not in self.integers:
            raise ValueError("the offset is not in normal form: run fly-layout-lowering first")
        return self.integers[value]

    def address(self, pointer: ir.Value, type_: ir.Type) -> ir.Value:
        """Returns the LLVM pointer for an access of `type_`, with the swizzle applied."""
        spec = pointer_of(pointer)
        pointers.lowered_space(spec)
        return pointers.swizzled(self.builder, self.value(pointer), spec, pointers.width(type_))

    # -- allocations

    def slot(self, build: Callable[[], ir.Operation]) -> ir.Operation:
        """Builds an op at the start of the function, after the slots built there before: a stack
        slot requested in a loop must not be allocated per iteration. Returns the op."""
        if self.functions:
            if self.stack is None:
                entry = self.functions[-1].regions[0].blocks[0]
                self.builder.ip = ir.InsertionPoint.at_block_begin(entry)
            else:
                self.builder.ip = ir.InsertionPoint.after(self.stack)
        self.stack = build()
        return self.stack

    def shared_variable(self, prefix: str, size: int, alignment: int, linkage: str) -> str:
        """Declares `size` bytes of shared memory in the gpu.module; returns the symbol."""
        module = self.gpu_module
        if module is None:
            raise ValueError("shared memory must be inside a gpu.module")
        block = module.regions[0].blocks[0]
        number = 0
        while (symbol := f"{prefix}_{number}") in self.symbols:
            number += 1
        self.symbols.add(symbol)
        ir.Operation.create(
            _GLOBAL,
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{size} x i8>")),
                "linkage": ir.Attribute.parse(f"#llvm.linkage<{linkage}>"),
                "addr_space": ir.IntegerAttr.get(pointers.integer(32), 3),
                "alignment": ir.IntegerAttr.get(pointers.integer(64), alignment),
                "dso_local": ir.UnitAttr.get(),
            },
            regions=1,
            loc=self.builder.loc,
            ip=ir.InsertionPoint.at_block_begin(block),
        )
        return symbol

    def address_of(self, symbol: str) -> ir.Value:
        attributes = {"global_name": ir.FlatSymbolRefAttr.get(symbol)}
        return self.builder.value("llvm.mlir.addressof", pointers.pointer(3), [], attributes)


def lowered_type(spec: Spec) -> ir.Type | None:
    """Returns the type to which a pointer, memref or atom lowers; None for any other type."""
    if isinstance(spec, str):
        return None
    if (own := spaces.of(spec)) is not None:
        return own.lowered_type(spec)
    if isinstance(spec, BackendSpec):
        lowering = interface.of_name(str(spec))
        return None if lowering is None else lowering.lowered_type(spec)
    number = pointers.space(spec)
    return _atom_type(spec) if number is None else pointers.pointer(number)


def _atom_type(spec: FlySpec) -> ir.Type | None:
    from fly_dialect.atoms import CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec

    if isinstance(spec, (TiledCopySpec, TiledMmaSpec)):
        spec = spec.atom
    if not isinstance(spec, (CopyAtomSpec, MmaAtomSpec)):
        return None
    from fly_opt.atoms import state

    return state.struct(spec.op)


def _variables(module: ir.Operation) -> set[str]:
    """Returns the names of the LLVM variables in a gpu.module."""
    names = (op.attributes["sym_name"] for op in operations(module) if op.name == _GLOBAL)
    return {ir.StringAttr(name).value for name in names}


def _pure(op: ir.Operation) -> bool:
    info = find(op.name)
    return info is not None and info.pure


def _retype_function(op: ir.Operation) -> None:
    old = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)

    def converted(type_: ir.Type) -> ir.Type:
        new = lowered_type(spec_of(type_)) if isinstance(type_, ir.OpaqueType) else None
        return type_ if new is None else new

    new = ir.FunctionType.get([*map(converted, old.inputs)], [*map(converted, old.results)])
    if new != old:
        op.attributes["function_type"] = ir.TypeAttr.get(new)
