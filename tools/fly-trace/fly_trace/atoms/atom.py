"""Atoms: single copy and matrix instructions, and the state that some of them carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from fly_common.quoting import quoted
from fly_dialect.atoms import CopyAtomSpec, CopyOp, MmaAtomSpec, MmaOp
from fly_dialect.atoms.universal import UniversalAtomic as UniversalAtomicOp
from fly_dialect.atoms.universal import UniversalCopy as UniversalCopyOp
from fly_dialect.atoms.universal import UniversalFma as UniversalFmaOp

from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, apply, values_of
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import IntTuple, int_tuple
from fly_trace.layouts.layouts import Layout
from fly_trace.memory.view_construction import static_layout
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import I32, I64, DType

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

__all__ = [
    "AtomicOp",
    "CopyAtom",
    "MmaAtom",
    "SyncScope",
    "UniversalAtomic",
    "UniversalAtomicAdd",
    "UniversalAtomicAnd",
    "UniversalAtomicDec",
    "UniversalAtomicInc",
    "UniversalAtomicMax",
    "UniversalAtomicMin",
    "UniversalAtomicOr",
    "UniversalCopy",
    "UniversalCopy8b",
    "UniversalCopy16b",
    "UniversalCopy32b",
    "UniversalCopy64b",
    "UniversalCopy128b",
    "UniversalFMA",
    "atom_set_value",
    "make_copy_atom",
    "make_mma_atom",
]


class AtomicOp:
    """The updates of an atomic copy's destination."""

    Add, Max, Min, And, Or, Inc, Dec = "add", "max", "min", "and", "or", "inc", "dec"


class SyncScope:
    """LLVM's synchronization scopes on every target. Backends add their own."""

    System = ""
    SingleThread = "singlethread"


class Stateful(DialectValue):
    """A value that may carry an instruction's state, which is not part of its type."""

    __slots__ = ()

    @property
    def has_state(self) -> bool:
        """Whether the instruction has state, so that a static atom can become dynamic."""
        return bool(instruction(self.spec).state)

    @property
    def fields(self) -> dict[str, str]:
        """Maps the state's fields to their types."""
        return {field.name: field.type for field in instruction(self.spec).state}

    def set_value(self, field: Any, value: Any = None) -> Self:
        """Returns the atom with new values in its state: `set_value("soffset", n)`, or a dict."""
        if isinstance(field, dict):
            atom = self
            for name, item in field.items():
                atom = atom.set_value(name, item)
            return atom
        kind = self.fields.get(field)
        if kind is None:
            known = ", ".join(self.fields) or "none"
            tracing.refuse(f"{self} has no state {quoted(field)}", f"its state: {known}")
        builder = tracing.kernel("an atom's state")
        number = builder.ssa(convert(value, I64 if kind == "i64" else I32))
        ssa = builder.fly_op("atom.set_value", [self.value(builder), number], {"field": field})
        return self.with_ssa(ssa)


def instruction(spec: Any) -> Any:
    """The instruction of the type of an atom or a tiled op."""
    return getattr(spec, "atom", spec).op


@values_of(CopyAtomSpec)
class CopyAtom(Stateful):
    """A copy instruction. `layout_src_tv` and similar properties map (thread, value) to a position,
    in elements."""

    __slots__ = ()
    noun = "a copy atom"

    def made(self, builder: Builder) -> ir.Value:
        from fly_dialect.builders import ops

        return builder.fly(ops.make_copy_atom, self.spec.op, self.spec.bits)

    @property
    def val_bits(self) -> int:
        """The width of an element in bits."""
        return self.spec.bits

    @property
    def thr_layout(self) -> Layout:
        """The threads that execute it together."""
        return static_layout(self.spec.op.thr_layout)

    thr_id = thr_layout

    @property
    def layout_src_tv(self) -> Layout:
        return static_layout(self.spec.thr_val_layout_src)

    @property
    def layout_dst_tv(self) -> Layout:
        return static_layout(self.spec.thr_val_layout_dst)

    @property
    def layout_ref_tv(self) -> Layout:
        return static_layout(self.spec.thr_val_layout_ref)


@values_of(MmaAtomSpec)
class MmaAtom(Stateful):
    """A matrix instruction. `layout_A_tv` and similar properties map (thread, value) to a position
    in the operand."""

    __slots__ = ()
    noun = "an mma atom"

    def made(self, builder: Builder) -> ir.Value:
        from fly_dialect.builders import ops

        return builder.fly(ops.make_mma_atom, self.spec.op)

    @property
    def shape_mnk(self) -> IntTuple:
        """M, N and K."""
        return int_tuple(self.spec.op.shape_mnk)

    @property
    def thr_layout(self) -> Layout:
        """The threads that execute it together."""
        return static_layout(self.spec.op.thr_layout)

    thr_id = thr_layout

    @property
    def layout_A_tv(self) -> Layout:
        return static_layout(self.spec.op.thr_val_layout_a)

    @property
    def layout_B_tv(self) -> Layout:
        return static_layout(self.spec.op.thr_val_layout_b)

    @property
    def layout_C_tv(self) -> Layout:
        return static_layout(self.spec.op.thr_val_layout_c)


# -- instructions of all targets -------------------------------------------------------------------


def made(family: Any, what: str, *fields: Any, **named: Any) -> Any:
    """Creates an instruction. Invalid parameters are reported at the user's line."""
    try:
        return family(*fields, **named)
    except (ValueError, TypeError) as error:
        tracing.refuse(f"{what}: {error}")


def element(dtype: Any, what: str) -> str:
    """The MLIR type of an element type."""
    if isinstance(dtype, DType):
        return dtype.ir
    return tracing.refuse(f"{what} takes an element type, as fx.Float16, not {describe(dtype)}")


def UniversalCopy(bit_size: int) -> CopyOp:
    """A load and a store of `bit_size` bits, between any two address spaces."""
    return made(UniversalCopyOp, "fx.UniversalCopy", bit_size)


def _copy(bits: int) -> Any:
    def function() -> CopyOp:
        return UniversalCopy(bits)

    function.__name__ = function.__qualname__ = f"UniversalCopy{bits}b"
    function.__doc__ = f"A load and a store of {bits} bits, between any memories."
    return function


UniversalCopy8b, UniversalCopy16b, UniversalCopy32b = _copy(8), _copy(16), _copy(32)
UniversalCopy64b, UniversalCopy128b = _copy(64), _copy(128)


def UniversalAtomic(atomic_op: str, val_type: DType, syncscope: str = SyncScope.System) -> CopyOp:
    """A copy that updates its destination: `AtomicOp.Add` adds the source to it."""
    what = "fx.UniversalAtomic"
    return made(UniversalAtomicOp, what, atomic_op, element(val_type, what), syncscope)


def _atomic(op: str) -> Any:
    def function(val_type: DType, syncscope: str = SyncScope.System) -> CopyOp:
        return UniversalAtomic(op, val_type, syncscope)

    function.__name__ = function.__qualname__ = f"UniversalAtomic{op.title()}"
    function.__doc__ = f"A copy that updates its destination by `{op}`."
    return function


UniversalAtomicAdd, UniversalAtomicMax = _atomic("add"), _atomic("max")
UniversalAtomicMin, UniversalAtomicAnd = _atomic("min"), _atomic("and")
UniversalAtomicOr, UniversalAtomicInc = _atomic("or"), _atomic("inc")
UniversalAtomicDec = _atomic("dec")


def UniversalFMA(ty: DType) -> MmaOp:
    """A multiply-add of a single thread."""
    return made(UniversalFmaOp, "fx.UniversalFMA", element(ty, "fx.UniversalFMA"))


# -- atoms -----------------------------------------------------------------------------------------


def make_copy_atom(copy_op_type: CopyOp, elem_type: Any) -> CopyAtom:
    """Creates the atom of a copy instruction. `elem_type` is the element type that its layouts
    count, or its width in bits."""
    if not isinstance(copy_op_type, CopyOp):
        tracing.refuse(
            f"fx.make_copy_atom takes a copy instruction first, not {describe(copy_op_type)}",
            "as in fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)",
        )
    bits = elem_type.bits if isinstance(elem_type, DType) else elem_type
    if not isinstance(bits, int) or isinstance(bits, bool) or bits <= 0:
        tracing.refuse(f"fx.make_copy_atom takes an element type, not {describe(elem_type)}")
    if isinstance(copy_op_type, UniversalCopyOp) and copy_op_type.bit_size % bits:
        tracing.refuse(
            f"fx.make_copy_atom: {copy_op_type.bit_size} bits are no whole number of elements of"
            f" {bits} bits",
            f"use fx.UniversalCopy({bits * -(-copy_op_type.bit_size // bits)})",
        )
    return CopyAtom(CopyAtomSpec(copy_op_type, bits))


def make_mma_atom(mma_op_type: MmaOp) -> MmaAtom:
    """Creates the atom of a matrix instruction."""
    if not isinstance(mma_op_type, MmaOp):
        tracing.refuse(
            f"fx.make_mma_atom takes a matrix instruction, not {describe(mma_op_type)}",
            "as in fx.make_mma_atom(fx.UniversalFMA(fx.Float32))",
        )
    return MmaAtom(MmaAtomSpec(mma_op_type))


def atom_set_value(atom: Any, field: str, value: Any) -> Any:
    """Returns the atom with a new value in its state."""
    if not isinstance(atom, Stateful):
        tracing.refuse(f"fx.atom_set_value takes an atom, not {describe(atom)}")
    return atom.set_value(field, value)


def get_atom(name: str, tiled: DialectValue) -> Any:
    """The atom of a tiled op, with its state."""
    if tiled.is_static:
        spec = tiled.spec.atom
        return CopyAtom(spec) if isinstance(spec, CopyAtomSpec) else MmaAtom(spec)
    return apply(name, tiled)
