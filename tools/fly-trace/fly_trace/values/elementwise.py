"""Builds the same ops on scalars and on vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_trace.values import wide_integers
from fly_trace.values.dtypes import BOOL, F32, F64, I32, I64, DType
from fly_trace.values.vector_shapes import vector_ir

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

# comparison → predicates of arith.cmpi (signed, unsigned) and arith.cmpf (unordered only for !=).
PREDICATES = {
    "eq": (0, 0, 1),
    "ne": (1, 1, 13),
    "lt": (2, 6, 4),
    "le": (3, 7, 5),
    "gt": (4, 8, 2),
    "ge": (5, 9, 3),
}


class Elementwise:
    """The ops of scalars, or of vectors of `lanes` elements."""

    def __init__(self, builder: Builder, lanes: int | None = None):
        self.builder = builder
        self.lanes = lanes

    def kind(self, dtype: DType) -> str:
        """The MLIR type of values of `dtype`."""
        return dtype.ir if self.lanes is None else vector_ir(dtype, self.lanes)

    def op(
        self, name: str, dtype: DType, *operands: ir.Value, **attributes: ir.Attribute
    ) -> ir.Value:
        return self.builder.one(name, self.kind(dtype), *operands, **attributes)

    def constant(self, number: bool | int | float, dtype: DType) -> ir.Value:
        if self.lanes is None:
            return self.builder.constant(number, dtype)
        return self.builder.splat(number, dtype, self.kind(dtype))

    def test(self, operation: str, x: ir.Value, y: ir.Value, dtype: DType) -> ir.Value:
        """A comparison of two values of `dtype`: lt le gt ge eq ne."""
        signed, unsigned, ordered = PREDICATES[operation]
        if dtype.is_float:
            name, predicate = "arith.cmpf", ordered
        else:
            name, predicate = "arith.cmpi", signed if dtype.kind == "int" else unsigned
        return self.op(name, BOOL, x, y, predicate=self.builder.integer(predicate, "i64"))

    def select(self, test: ir.Value, x: ir.Value, y: ir.Value, dtype: DType) -> ir.Value:
        return self.op("arith.select", dtype, test, x, y)

    def convert(self, x: ir.Value, source: DType, dtype: DType) -> ir.Value:
        """Integers wrap, floats round to nearest even, a float is truncated to an integer (out of
        range: undefined), and a bool is the comparison with zero."""
        if dtype is source:
            return x
        if "index" in (source.ir, dtype.ir):
            return self._of_index(x, source, dtype)
        if dtype.is_bool:
            if source.is_narrow:
                wide = F32 if source.is_float else I32
                x, source = self.convert(x, source, wide), wide
            return self.test("ne", x, self.constant(0, source), source)
        if source.bits == 128 and dtype.is_float:
            wide = F64 if dtype is F64 else F32
            return self.convert(wide_integers.from_integer(self, x, source, wide), wide, dtype)
        if dtype.bits == 128 and source.is_float:
            return wide_integers.from_float(self, self.convert(x, source, F64), dtype)
        for name, kind in steps(source, dtype):
            x = self.op(name, kind, x)
        return x

    def _of_index(self, x: ir.Value, source: DType, dtype: DType) -> ir.Value:
        """From or to MLIR's index, which has 64 bits on every target and is not negative."""
        if source.ir == "index":
            x, source = self.op("arith.index_cast", I64, x), I64
            return self.convert(x, source, dtype)
        if not source.is_integer or source.bits != 64:
            x = self.convert(x, source, I64)
        return self.op("arith.index_cast", dtype, x)


def steps(source: DType, dtype: DType) -> list[tuple[str, DType]]:
    """The ops that convert from `source` to `dtype`, which is not a bool, each with its result
    type. Narrow floats are only converted to and from f32, like the hardware's instructions."""
    if source.is_narrow and source.is_float:
        rest = [] if dtype is F32 else steps(F32, dtype)
        return [("arith.extf", F32), *rest]
    if dtype.is_narrow and dtype.is_float:
        first = [] if source is F32 else steps(source, F32)
        return [*first, ("arith.truncf", dtype)]
    if source.is_float and dtype.is_float:
        if dtype.bits > source.bits:
            return [("arith.extf", dtype)]
        if dtype.bits < source.bits:
            return [("arith.truncf", dtype)]
        # f16 and bf16 have different ranges: convert through f32, which contains both.
        return [("arith.extf", F32), ("arith.truncf", dtype)]
    if source.is_float:
        return [("arith.fptosi" if dtype.is_signed else "arith.fptoui", dtype)]
    if dtype.is_float:
        return [("arith.sitofp" if source.kind == "int" else "arith.uitofp", dtype)]
    if dtype.bits == source.bits:
        return []
    if dtype.bits < source.bits:
        return [("arith.trunci", dtype)]
    return [("arith.extsi" if source.kind == "int" else "arith.extui", dtype)]
