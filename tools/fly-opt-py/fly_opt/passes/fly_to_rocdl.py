"""`convert-fly-to-rocdl`: pointers become LLVM's, element accesses loads and stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar

from fly_dialect.bindings import ir
from fly_dialect.dialect import PREFIX, attributes_of, int_tuple_of, pointer_of, spec_of, type_of
from fly_dialect.infer_memory import allocation_size
from fly_dialect.layout import Int
from fly_dialect.op_table import OPS
from fly_dialect.types import (
    SPACES,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    PtrSpec,
    Spec,
)

from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.fly_builder import Builder, operations, unused
from fly_opt.passes.storage import storage_type

Value = Any  # an ir.Value

FUNCTIONS = ("func.func", "gpu.func")
_GLOBAL = "llvm.mlir.global"

# LDS is 64 KiB a compute unit; its largest natural alignment is that of ds_read_b128.
LDS_ALIGNMENT = 16
DYNAMIC_LDS_ALIGNMENT = 1024  # what fly.get_dyn_shared's type promises


@dataclass(frozen=True)
class ConvertFlyToROCDL(Pass):
    """Turns fly pointers into LLVM pointers and fly memory ops into LLVM's.

    ptr and memref types become !llvm.ptr<1> (global), <3> (shared), <5> (register). add_offset
    becomes a getelementptr that counts in elements, without inbounds: a pointer may be computed for
    an access that a condition then keeps from happening. ptr.load and ptr.store carry the alignment
    of the pointer's type. A shared make_ptr becomes an LDS variable of its own in the gpu.module, a
    register make_ptr an alloca in the function's first block, get_dyn_shared the zero-length
    variable that stands for the LDS a launch asks for.
    """

    name: ClassVar[str] = "convert-fly-to-rocdl"

    def run(self, op: Any) -> None:
        conversion = _Conversion()
        for inner in operations(op):
            conversion.op(inner)
        conversion.finish()


class _Conversion:
    def __init__(self) -> None:
        self.builder = Builder()
        self.lowered: dict[Value, Value] = {}
        self.integers: dict[Value, Value] = {}  # scalar int_tuple → the integer in it
        self.done: list[Any] = []  # fly ops, in the order of the text
        self.retyped: list[tuple[Value, Any]] = []
        self.functions: list[Any] = []
        self.gpu_module: Any = None  # the last that was entered
        self.symbols: set[str] = set()  # the LDS variables in it
        self.dynamic: str | None = None  # the one that stands for dynamic LDS

    def op(self, op: Any) -> None:
        name = op.name
        if name.startswith(PREFIX):
            self.builder.enter(op)
            self.fly_op(op, name[len(PREFIX) :])
            return
        for result in op.results:
            self.retype(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self.retype(argument)
        if name in FUNCTIONS:
            self.functions.append(op)
        elif name == "gpu.module":
            self.gpu_module, self.symbols, self.dynamic = op, _variables(op), None

    def retype(self, value: Value) -> None:
        if isinstance(value.type, ir.OpaqueType) and (space := _space(spec_of(value.type))):
            self.retyped.append((value, _pointer(space)))

    def fly_op(self, op: Any, name: str) -> None:
        convert = _CONVERT.get(name)
        if convert is not None:
            self.builder.at(op)
            try:
                value = convert(self, op)
            except ValueError as error:
                raise refuse(op, f"{op.name}: {error}") from None
            if value is not None:
                self.lowered[op.results[0]] = value
        self.done.append(op)

    def finish(self) -> None:
        """Erases the fly ops and gives what carried fly pointers LLVM's types."""
        for op in reversed(self.done):
            for result in op.results:
                if result in self.lowered:
                    result.replace_all_uses_with(self.lowered[result])
            if not all(unused(result) for result in op.results) or (
                op.name[len(PREFIX) :] not in _CONVERT and not _pure(op)
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

    def value(self, value: Value) -> Value:
        return self.lowered.get(value, value)

    def offset(self, value: Value) -> Value:
        """The integer in a scalar int_tuple that make_int_tuple made."""
        leaf = int_tuple_of(value).value
        if isinstance(leaf, Int) and leaf.value is not None:
            return self.builder.constant(leaf.value, leaf.width)
        if value not in self.integers:
            raise ValueError("the offset is not in normal form: run fly-layout-lowering first")
        return self.integers[value]

    def address(self, pointer: Value) -> Value:
        """The LLVM pointer an access goes to: the type's swizzle is applied here."""
        spec, address = pointer_of(pointer), self.value(pointer)
        _lowered_space(spec)
        if spec.swizzle is None:
            return address
        b, i64 = self.builder, ir.IntegerType.get_signless(64)
        swizzle = spec.swizzle
        mask = ((1 << swizzle.mask) - 1) << (swizzle.base + swizzle.shift)
        number = b.value("llvm.ptrtoint", i64, [address])
        picked = b.value("arith.andi", i64, [number, b.constant(mask, 64)])
        moved = b.value("arith.shrui", i64, [picked, b.constant(swizzle.shift, 64)])
        result = b.value("arith.xori", i64, [number, moved])
        return b.value("llvm.inttoptr", _pointer(SPACES[spec.space]), [result])

    # -- LDS

    def lds(self, prefix: str, size: int, alignment: int, linkage: str) -> str:
        """Declares `size` bytes of LDS in the gpu.module; gives the symbol."""
        module = self.gpu_module
        if module is None:
            raise ValueError("shared memory is a kernel's: it must be inside a gpu.module")
        block = module.regions[0].blocks[0]
        number = 0
        while (symbol := f"{prefix}_{number}") in self.symbols:
            number += 1
        self.symbols.add(symbol)
        i64 = ir.IntegerType.get_signless(64)
        ir.Operation.create(
            _GLOBAL,
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{size} x i8>")),
                "linkage": ir.Attribute.parse(f"#llvm.linkage<{linkage}>"),
                "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 3),
                "alignment": ir.IntegerAttr.get(i64, alignment),
                "dso_local": ir.UnitAttr.get(),
            },
            regions=1,
            loc=self.builder.loc,
            ip=ir.InsertionPoint.at_block_begin(block),
        )
        return symbol

    def address_of(self, symbol: str) -> Value:
        attributes = {"global_name": ir.FlatSymbolRefAttr.get(symbol)}
        return self.builder.value("llvm.mlir.addressof", _pointer(3), [], attributes)


def _variables(module: Any) -> set[str]:
    """The names of the LLVM variables in a gpu.module."""
    names = (op.attributes["sym_name"] for op in operations(module) if op.name == _GLOBAL)
    return {ir.StringAttr(name).value for name in names}


def _pure(op: Any) -> bool:
    info = OPS.get(op.name[len(PREFIX) :])
    return info is not None and info.pure


def _space(spec: Spec) -> int | None:
    """LLVM's number of the address space of a pointer or memref; None for what is neither."""
    if isinstance(spec, (PtrSpec, MemRefSpec)) and spec.space in SPACES:
        return SPACES[spec.space]
    return None


def _lowered_space(spec: Spec) -> int:
    space = _space(spec)
    if space is None:
        raise ValueError(f"there is no lowering for {spec}")
    return space


def _pointer(space: int) -> Any:
    return type_of(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")


def _alignment(spec: PtrSpec) -> Any:
    """The greatest power of two that the type promises and the swizzle leaves."""
    alignment = spec.alignment
    if spec.swizzle is not None:
        alignment = gcd(alignment, 1 << spec.swizzle.base)
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), alignment & -alignment)


def _retype_function(op: Any) -> None:
    old = ir.TypeAttr(op.attributes["function_type"]).value

    def converted(type_: Any) -> Any:
        space = _space(spec_of(type_)) if isinstance(type_, ir.OpaqueType) else None
        return type_ if space is None else _pointer(space)

    new = ir.FunctionType.get([*map(converted, old.inputs)], [*map(converted, old.results)])
    if new != old:
        op.attributes["function_type"] = ir.TypeAttr.get(new)


# -- one function an op: the value that takes the result's place ----------------------------------
def _make_int_tuple(conversion: _Conversion, op: Any) -> None:
    if len(op.operands) == 1:
        conversion.integers[op.results[0]] = op.operands[0]


def _same(conversion: _Conversion, op: Any) -> Value | None:
    """The address stays what it is: get_iter and make_view of a memref, recast_iter."""
    operand = op.operands[0]
    if isinstance(spec_of(operand.type), (IntTupleSpec, LayoutSpec, CoordTensorSpec)):
        return None
    return conversion.value(operand)


def _to_llvm_ptr(conversion: _Conversion, op: Any) -> Value:
    pointer = op.operands[0]
    expected, found = _pointer(_lowered_space(pointer_of(pointer))), op.results[0].type
    if expected != found:
        raise ValueError(f"{pointer_of(pointer)} becomes {expected}, not {found}")
    return conversion.value(pointer)


def _add_offset(conversion: _Conversion, op: Any) -> Value | None:
    pointer, offset = op.operands
    if isinstance(spec_of(pointer.type), IntTupleSpec):
        return None
    spec = pointer_of(pointer)
    attributes = {
        "elem_type": ir.TypeAttr.get(storage_type(spec.element)),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([_DYNAMIC_INDEX]),
    }
    operands = [conversion.value(pointer), conversion.offset(offset)]
    type_ = _pointer(_lowered_space(spec))
    return conversion.builder.pure("llvm.getelementptr", type_, operands, attributes)


# LLVM::GEPOp::kDynamicIndex: the index is the next operand.
_DYNAMIC_INDEX = -(2**31)


def _ptr_load(conversion: _Conversion, op: Any) -> Value:
    pointer = op.operands[0]
    attributes = {"alignment": _alignment(pointer_of(pointer))}
    address = conversion.address(pointer)
    return conversion.builder.value("llvm.load", op.results[0].type, [address], attributes)


def _ptr_store(conversion: _Conversion, op: Any) -> None:
    value, pointer = op.operands
    attributes = {"alignment": _alignment(pointer_of(pointer))}
    operands = [conversion.value(value), conversion.address(pointer)]
    conversion.builder.op("llvm.store", None, operands, attributes)


def _ptrtoint(conversion: _Conversion, op: Any) -> Value:
    operands = [conversion.value(op.operands[0])]
    return conversion.builder.value("llvm.ptrtoint", op.results[0].type, operands)


def _inttoptr(conversion: _Conversion, op: Any) -> Value:
    space = _lowered_space(spec_of(op.results[0].type))
    return conversion.builder.value("llvm.inttoptr", _pointer(space), [op.operands[0]])


def _make_ptr(conversion: _Conversion, op: Any) -> Value:
    spec, given = pointer_of(op.results[0]), attributes_of(op)
    size = allocation_size(given)
    if size is None or spec.space not in ("shared", "register"):
        raise ValueError(f"there is no lowering for {spec}")
    if spec.space == "register":
        return _alloca(conversion, spec, size)
    asked = given["dictAttrs"].get("allocAlign", max(LDS_ALIGNMENT, spec.alignment))
    return conversion.address_of(conversion.lds("__shared_alloc", size, asked, "internal"))


def _alloca(conversion: _Conversion, spec: PtrSpec, count: int) -> Value:
    """A stack slot. In the first block, or a loop would take a new one each time round."""
    builder = conversion.builder
    if conversion.functions:
        entry = conversion.functions[-1].regions[0].blocks[0]
        builder.ip = ir.InsertionPoint.at_block_begin(entry)
    i64 = ir.IntegerType.get_signless(64)
    attributes = {"value": ir.IntegerAttr.get(i64, count)}
    number = builder.value("arith.constant", i64, [], attributes)
    attributes = {"elem_type": ir.TypeAttr.get(storage_type(spec.element))}
    return builder.value("llvm.alloca", _pointer(5), [number], attributes)


def _get_dyn_shared(conversion: _Conversion, op: Any) -> Value:
    if conversion.dynamic is None:
        symbol = conversion.lds("__dynamic_shared", 0, DYNAMIC_LDS_ALIGNMENT, "external")
        conversion.dynamic = symbol
    base = conversion.address_of(conversion.dynamic)
    attributes = {
        "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([0]),
    }
    return conversion.builder.value("llvm.getelementptr", _pointer(3), [base], attributes)


_CONVERT: dict[str, Callable[[_Conversion, Any], Value | None]] = {
    "make_int_tuple": _make_int_tuple,
    "get_iter": _same,
    "make_view": _same,
    "recast_iter": _same,
    "to_llvm_ptr": _to_llvm_ptr,
    "add_offset": _add_offset,
    "ptr.load": _ptr_load,
    "ptr.store": _ptr_store,
    "ptrtoint": _ptrtoint,
    "inttoptr": _inttoptr,
    "make_ptr": _make_ptr,
    "get_dyn_shared": _get_dyn_shared,
}
