"""Values of a host function as a host program represents them: integer expressions, tuples of them,
and tensors viewed through layouts that the function builds.

Integers are mathematical: they do not wrap at the IR's width, as they do not in the Python source.
The reader of the program rejects values that leave 64 bits or do not fit a kernel's argument.
"""

from __future__ import annotations

import struct
from typing import Any

from fly_common.quoting import quoted
from fly_common.record import field, record
from fly_dialect import algebra as layout_algebra
from fly_dialect.bindings import ir
from fly_dialect.dialect import PREFIX, attributes_of, spec_of
from fly_dialect.inference import computation
from fly_dialect.inference.layouts import meaning_of
from fly_dialect.layouts import int_tuple
from fly_dialect.layouts.int_tuple import IntTuple, dynamic_leaves
from fly_dialect.layouts.layout import ComposedLayout
from fly_dialect.layouts.layout import Layout as AlgebraLayout
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    PtrSpec,
    layout_spec,
)
from fly_host.graph import Graph
from fly_host.program import Parameter as ProgramParameter
from fly_host.program import Scalar, Tensor, Word

from fly_opt.ir.boundary import carriers, parts
from fly_opt.lowering import interface
from fly_opt.passes.base import refuse
from fly_opt.passes.host import algebra
from fly_opt.passes.host.arguments import TOKEN, Parameter, parameter
from fly_opt.passes.host.made import (
    STATIC,
    MadeComposed,
    MadeCoordinates,
    MadeLayout,
    Tree,
    View,
    is_tree,
)
from fly_opt.passes.host.tensors import Layout, TensorValue

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
            tensor = TensorValue(made.made.name, made.spec, len(made.made.shape))
            # A pointer is where a tensor of one dimension begins.
            pointer = isinstance(spec_of(argument.type), PtrSpec)
            self.held[argument] = View(tensor) if pointer else tensor

    # -- operations ------------------------------------------------------------------------------

    def compute(self, op: ir.Operation) -> None:
        """Records the results of an operation. InputError if a program can't express them."""
        if op.name == "fly.get_leaves":
            self.held.update(zip(op.results, self.leaves(op), strict=True))
            return
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
        """Handles fly's operations on shapes, strides, layouts and views."""
        name = op.name.removeprefix(PREFIX)
        held = self.held.get(op.operands[0]) if len(op.operands) else None
        if len(op.results) == 1:
            spec = spec_of(op.results[0].type)
            if carriers(spec) == []:
                return self.static(spec)
            if name == "make_int_tuple" and isinstance(spec, IntTupleSpec):
                return self.tree(spec.value, [self.integer(op, operand) for operand in op.operands])
            if name == "get_scalar" and isinstance(held, int):
                return held
            if name in ("get_iter", "recast_iter") and isinstance(held, (TensorValue, View)):
                return View(held.of if isinstance(held, View) else held)
            if name == "ptrtoint" and isinstance(held, View) and str(op.results[0].type) == "i64":
                return held  # a kernel gets it as it gets a pointer
            if name == "get_layout" and isinstance(held, TensorValue):
                return Layout(held)
            if name in ("get_shape", "get_stride") and isinstance(held, (TensorValue, Layout)):
                # Only what is asked for becomes an expression.
                of = held.of if isinstance(held, Layout) else held
                return of.tree(self.graph, "extent" if name == "get_shape" else "stride")
            try:
                if name == "make_view":
                    base, layout = map(self.meaning, op.operands)
                    return self.made_of(computation.View(base, layout))
                operands = [self.meaning(operand) for operand in op.operands]
                found = algebra.computed(name, operands, attributes_of(op))
            except ValueError as error:
                raise refuse(op, f"{op.name} in the host function: {error}") from None
            if found is not None:
                return self.made_of(found)
        raise refuse(
            op,
            f"{op.name} is not supported in the host function",
            "it may compute shapes, strides and layouts, and give a tensor another layout; what"
            " reads or writes memory belongs into a kernel",
        )

    def leaves(self, op: ir.Operation) -> list[int]:
        """The results of fly.get_leaves: integers."""
        try:
            found = layout_algebra.integers(self.meaning(op.operands[0]))
        except ValueError as error:
            raise refuse(op, f"{op.name} in the host function: {error}") from None
        if len(found) != len(op.results):  # dynamicOnly
            found = [leaf for leaf in found if not leaf.type.is_static]
        return [algebra.indices_of(self.graph, leaf) for leaf in found]

    def meaning(self, value: Any) -> Any:
        """What a value is for the algebra: by its type, and by what it holds. ValueError if a
        program can't have it."""
        spec = spec_of(value.type)
        if not isinstance(spec, MemRefSpec) and carriers(spec) == []:
            return meaning_of(spec)
        return self.meaning_by(spec, self.held.get(value))

    def meaning_by(self, spec: Any, held: Any) -> Any:
        if carriers(spec) == []:
            return meaning_of(spec)
        held = self.made(held)
        if isinstance(spec, IntTupleSpec) and is_tree(held):
            return algebra.leaves_of(self.graph, spec.value, held)
        if isinstance(spec, LayoutSpec) and isinstance(held, MadeLayout):
            return AlgebraLayout(*map(self.meaning_by, parts(spec), held.parts))
        if isinstance(spec, ComposedLayoutSpec) and isinstance(held, MadeComposed):
            outer, offset, inner = map(self.meaning_by, parts(spec), held.parts)
            return ComposedLayout(inner, offset, outer)
        if isinstance(spec, CoordTensorSpec) and isinstance(held, MadeCoordinates):
            return computation.View(*map(self.meaning_by, parts(spec), held.parts))
        if isinstance(spec, PtrSpec) and isinstance(held, View):
            return held
        if isinstance(spec, MemRefSpec) and isinstance(held, (TensorValue, View)):
            of, layout = (
                (held, Layout(held)) if isinstance(held, TensorValue) else (held.of, held.layout)
            )
            return computation.View(View(of), self.meaning_by(layout_spec(spec.layout), layout))
        raise ValueError(f"it takes a value of type {spec}, which a program can't have")

    def made_of(self, meaning: Any) -> Any:
        """A result of the algebra as what the host function makes."""
        if isinstance(meaning, computation.View):
            layout = self.made_of(meaning.layout)
            if isinstance(meaning.base, View):
                return View(meaning.base.of, layout)
            return MadeCoordinates(algebra.indices_of(self.graph, meaning.base), layout)
        if isinstance(meaning, AlgebraLayout):
            return MadeLayout(
                *(algebra.indices_of(self.graph, part) for part in (meaning.shape, meaning.stride))
            )
        if isinstance(meaning, ComposedLayout):
            offset = algebra.indices_of(self.graph, meaning.offset)
            return MadeComposed(self.made_of(meaning.inner), offset, self.made_of(meaning.outer))
        if int_tuple.is_tree(meaning):
            return algebra.indices_of(self.graph, meaning)
        return STATIC

    def made(self, held: Any) -> Any:
        """A layout by its leaves: that of a tensor too."""
        if not isinstance(held, Layout):
            return held
        tensor = held.of
        return MadeLayout(tensor.tree(self.graph, "extent"), tensor.tree(self.graph, "stride"))

    def static(self, spec: Any) -> Any:
        """Returns the representation of a value that is static by its type."""
        if isinstance(spec, (LayoutSpec, ComposedLayoutSpec, IntTupleSpec, CoordTensorSpec)):
            return self.made_of(meaning_of(spec))
        return STATIC

    def tree(self, value: IntTuple, dynamic: list[int]) -> Tree:
        """Converts an int_tuple to expressions, taking its dynamic leaves from `dynamic`."""
        assert len(dynamic) == len(dynamic_leaves(value)), "the verifier has seen to it"
        given = iter(dynamic)
        return algebra.indices_of(self.graph, algebra.filled(self.graph, value, given))

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
