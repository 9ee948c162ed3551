"""Values of a host function as a host program represents them: integer expressions, tuples of them,
and tensors viewed through layouts that the function builds.

Integers are mathematical: they do not wrap at the IR's width, as they do not in the Python source.
The reader of the program rejects values that leave 64 bits or do not fit a kernel's argument.
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

from fly_common.quoting import quoted
from fly_common.record import field, record
from fly_dialect.bindings import ir
from fly_dialect.dialect import spec_of
from fly_dialect.layouts.int_tuple import IntTuple
from fly_dialect.layouts.integers import Int
from fly_dialect.types import IntTupleSpec, LayoutSpec, MemRefSpec
from fly_host.graph import Graph
from fly_host.program import Parameter as ProgramParameter
from fly_host.program import Scalar, Tensor, Word

from fly_opt.ir.boundary import carriers
from fly_opt.lowering import interface
from fly_opt.passes.base import refuse
from fly_opt.passes.host.arguments import TOKEN, Parameter, parameter
from fly_opt.passes.host.tensors import Layout, TensorValue

# An integer tuple of the program: the index of an expression, or a tuple of integer tuples.
Tree: TypeAlias = "int | tuple[Tree, ...]"


@record
class MadeLayout:
    """A layout that the host function builds."""

    shape: Tree
    stride: Tree

    @property
    def parts(self) -> tuple[Tree, Tree]:
        """Returns the parts in the order of `boundary.parts`."""
        return self.shape, self.stride


@record
class MadeComposed:
    """A composed layout that the host function builds; `inner` is STATIC for a swizzle."""

    inner: Any
    offset: Tree
    outer: Any

    @property
    def parts(self) -> tuple[Any, Tree, Any]:
        """Returns the parts in the order of `boundary.parts`."""
        return self.outer, self.offset, self.inner


@record
class View:
    """A tensor seen through a layout that the host function makes; without one, where the tensor
    begins."""

    of: TensorValue
    layout: MadeLayout | MadeComposed | None = None


BINARY = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.floordivsi": "floordiv",
    "arith.ceildivsi": "ceildiv",
    "arith.ceildivui": "ceildiv",
    "arith.divsi": "truncdiv",
    "arith.divui": "truncdiv",
    "arith.remsi": "rem",
    "arith.remui": "rem",
    "arith.minsi": "min",
    "arith.minui": "min",
    "arith.maxsi": "max",
    "arith.maxui": "max",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.shli": "shl",
    "arith.shrsi": "shr",
    "arith.shrui": "shr",
}
# arith's predicates, by number → operator, and whether the operands are swapped.
COMPARISONS = (
    ("eq", False),
    ("ne", False),
    ("lt", False),
    ("le", False),
    ("lt", True),
    ("le", True),
    ("lt", False),
    ("le", False),
    ("lt", True),
    ("le", True),
)
CASTS = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui")
STATIC = object()  # a value that its type says wholly: an atom, a tiled copy, a swizzle
# dtypes of scalars that integer expressions may read
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")


@record(frozen=False)
class Values:
    """The parameters and expressions of a program, and what stands for each SSA value. A wave of
    the target has `wave_size` lanes."""

    wave_size: int
    parameters: list[ProgramParameter] = field(default_factory=list)
    graph: Graph = field(default_factory=Graph)
    # What an SSA value is: a Tree, a TensorValue, its Layout, a Parameter (a scalar or a stream), a
    # MadeLayout, a View, or the Word of a float constant.
    held: dict[Any, Any] = field(default_factory=dict)

    def make(self, op: str, *operands: Any) -> int:
        """The index of an expression."""
        return self.graph.make(op, *operands)

    # -- parameters ------------------------------------------------------------------------------

    def argument(self, host: Any, argument: Any, attributes: Any, named: bool) -> None:
        if str(argument.type) == TOKEN and not named:
            return  # FlyDSL's: the stream is nobody's choice there
        fallback = None if named else f"arg{len(self.parameters)}"
        made = parameter(host, argument, attributes, fallback)
        if any(other.name == made.made.name for other in self.parameters):
            raise refuse(
                host,
                f"two arguments of the host function have the same name {quoted(made.made.name)}",
            )
        self.parameters.append(made.made)
        self.held[argument] = made
        if isinstance(made.made, Tensor):
            tensor = made.made
            self.held[argument] = TensorValue(tensor.name, made.spec, len(tensor.shape))

    # -- operations ------------------------------------------------------------------------------

    def compute(self, op: ir.Operation) -> None:
        """Records the results of an operation. InputError if a program can't express them."""
        self.held[op.results[0] if len(op.results) == 1 else op] = self.value(op)

    def value(self, op: ir.Operation) -> Any:
        name = op.name
        if name in BINARY:
            return self.make(BINARY[name], *map(self.integer, (op, op), op.operands))
        if name == "arith.constant":
            return self.constant(op)
        if name == "gpu.subgroup_size":
            return self.make("const", self.wave_size)
        if name == "arith.cmpi":
            operator, swapped = COMPARISONS[op.attributes["predicate"].value]
            a, b = (self.integer(op, operand) for operand in op.operands)
            return self.make(operator, *((b, a) if swapped else (a, b)))
        if name == "arith.select":
            return self.make("select", *(self.integer(op, operand) for operand in op.operands))
        if name in CASTS:
            value = self.integer(op, op.operands[0])
            # True, sign-extended, is -1.
            from_bit = name == "arith.extsi" and str(op.operands[0].type) == "i1"
            return self.make("sub", self.make("const", 0), value) if from_bit else value
        if name.startswith("fly."):
            return self.tuple_value(op)
        lowering = interface.of_name(name)
        if lowering is not None and (made := lowering.host_values().get(name)) is not None:
            return made(self, op)
        raise refuse(
            op,
            f"{name} is not supported in the host function",
            "a host program supports integer arithmetic (arith.*), fly.get_shape, fly.get_stride,"
            " fly.get, fly.get_scalar, fly.empty, fly.call, fly.check, scf.for, scf.while, scf.if,"
            " gpu.subgroup_size and gpu.launch_func",
        )

    def constant(self, op: ir.Operation) -> Any:
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.FloatAttr):
            return self.float_word(op, str(op.results[0].type), attribute.value)
        return self.make("const", int(attribute.value))

    def float_word(self, op: ir.Operation, kind: str, value: float) -> Word:
        """Returns a float constant as a kernel argument: its bits."""
        if kind == "bf16":
            bits = struct.unpack("<I", struct.pack("<f", value))[0] >> 16  # exact: value is a bf16
            return Word("integer", expression=self.make("const", bits), size=2)
        codes = {"f16": ("<e", "<h"), "f32": ("<f", "<i"), "f64": ("<d", "<q")}
        if kind not in codes:
            raise refuse(op, f"a constant of type {kind} can't be a kernel's argument")
        pack, unpack = codes[kind]
        bits = struct.unpack(unpack, struct.pack(pack, value))[0]
        return Word("integer", expression=self.make("const", bits), size=struct.calcsize(pack))

    def tuple_value(self, op: ir.Operation) -> Any:
        """Handles fly's operations on shapes, strides and layouts."""
        name, held = op.name, self.held.get(op.operands[0]) if len(op.operands) else None
        if name in ("fly.get_layout", "fly.get_shape", "fly.get_stride"):
            if isinstance(held, TensorValue):
                held = Layout(held)
            if isinstance(held, Layout):
                if name == "fly.get_layout":
                    return held
                return held.of.tree(self.graph, "extent" if name == "fly.get_shape" else "stride")
        elif name == "fly.get" and is_tree(held):
            for mode in op.attributes["mode"]:
                held = held[mode] if isinstance(held, tuple) else held
            return held
        elif name == "fly.get_scalar" and isinstance(held, int):
            return held
        elif (made := self.made_value(op, held)) is not None:
            return made
        raise refuse(
            op,
            f"{name} is not supported in the host function",
            "extents and strides come from fly.get_shape and fly.get_stride of an argument, one"
            " of them with fly.get and fly.get_scalar; a tensor may be given another layout"
            " by fly.get_iter and fly.make_view",
        )

    def made_value(self, op: ir.Operation, held: Any) -> Any:
        """Returns a tuple, layout or view that the host function builds; None for any other op."""
        if not len(op.results):
            return None
        name, spec = op.name, spec_of(op.results[0].type)
        if name == "fly.make_int_tuple" and isinstance(spec, IntTupleSpec):
            return self.tree(spec.value, [self.integer(op, operand) for operand in op.operands])
        if carriers(spec) == []:
            return self.static(spec)
        operands = [self.held.get(operand) for operand in op.operands]
        if name == "fly.make_layout" and all(map(is_tree, operands)):
            shape, stride = operands
            return MadeLayout(shape, stride)  # type: ignore[arg-type]
        if name == "fly.make_composed_layout":
            inner, offset, outer = map(self.made, operands)
            if is_tree(offset):
                return MadeComposed(inner, offset, outer)
        if name == "fly.get_iter" and isinstance(held, TensorValue):
            return View(held)
        if name == "fly.make_view" and isinstance(held, View) and isinstance(spec, MemRefSpec):
            return View(held.of, self.made(operands[1]))
        return None

    def made(self, held: Any) -> Any:
        """A layout by its leaves: that of a tensor too."""
        if not isinstance(held, Layout):
            return held
        tensor = held.of
        return MadeLayout(tensor.tree(self.graph, "extent"), tensor.tree(self.graph, "stride"))

    def static(self, spec: Any) -> Any:
        """Returns the representation of a value that is static by its type."""
        if isinstance(spec, LayoutSpec):
            return MadeLayout(self.tree(spec.layout.shape, []), self.tree(spec.layout.stride, []))
        return self.tree(spec.value, []) if isinstance(spec, IntTupleSpec) else STATIC

    def tree(self, value: IntTuple, dynamic: list[int]) -> Tree:
        """Converts an int_tuple to expressions, taking its dynamic leaves from `dynamic`."""
        if isinstance(value, tuple):
            return tuple(self.tree(part, dynamic) for part in value)
        assert isinstance(value, Int), "a host function has integers only"
        return dynamic.pop(0) if value.value is None else self.make("const", value.value)

    def integer(self, op: Any, value: Any) -> int:
        """The expression of an integer operand of `op`."""
        held = self.held.get(value)
        if isinstance(held, int):
            return held
        if isinstance(held, Parameter) and isinstance(held.made, Scalar):
            scalar = held.made
            if scalar.dtype in INTEGERS:
                return self.make("scalar", scalar.name)
            raise refuse(
                op,
                f"{op.name} computes with {scalar.name}, which is {scalar.dtype}: a host program"
                " computes with integers",
                f"pass {scalar.name} on to the kernel and compute there",
            )
        raise refuse(op, f"{op.name} takes a value that is not an integer of the host program")


def is_tree(held: Any) -> bool:
    """Returns whether a value is a Tree."""
    if isinstance(held, tuple):
        return all(map(is_tree, held))
    return isinstance(held, int)
