"""Element types: MLIR's index, and which type belongs to a type of MLIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_trace.values.dtypes import BOOL, EVERY, STORED, DType, Integer, element_type
from fly_trace.values.vector.vectors import VectorType

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


class _IndexKind(DType):
    """The metaclass of Index, whose type in MLIR is not named by its width."""

    @property
    def ir(cls) -> str:
        return "index"

    @property
    def memory(cls) -> str:
        return "index"

    @property
    def has_arrays(cls) -> bool:
        return False


# MLIR's index, without a sign in divisions and comparisons, as in FlyDSL.
Index: Any = element_type(
    "Index",
    Integer,
    __name__,
    {"name": "index", "title": "Index", "kind": "uint", "bits": 64},
    _IndexKind,
)

# By the text of the type of MLIR, whose integers have no sign: FlyDSL takes them as signed.
_BY_TEXT: dict[str, DType] = {
    **{one.ir: one for one in EVERY.values() if one.kind in ("int", "float")},
    "i1": BOOL,
    "index": Index,
}


def dtype_of(kind: Any) -> DType | None:
    """The element type of a type of MLIR, given as such or as text; None if there is none."""
    return _BY_TEXT.get(str(kind))


def ir_type(kind: Any) -> Any:
    """The type of MLIR of an element type or a vector type."""
    from fly_dialect import dialect as fly

    if isinstance(kind, VectorType):
        return fly.type_of(f"vector<{kind.lanes}x{kind.dtype.ir}>")
    return fly.type_of(kind.ir)


def text_of(kind: Any) -> str:
    """The text in MLIR of an element type, given as one of FlyDSL's or MLIR's."""
    return kind.ir if isinstance(kind, DType) else str(kind)


def vector_parts(kind: ir.Type) -> tuple[int, DType] | None:
    """Lanes and element type of a vector type with one dimension; None for any other type."""
    from fly_dialect.bindings import ir

    if not isinstance(kind, ir.VectorType) or kind.rank != 1 or kind.scalable:
        return None
    dtype = dtype_of(kind.element_type)
    return None if dtype is None else (kind.shape[0], dtype)


def is_computed(dtype: DType) -> bool:
    """Whether there is arithmetic in a type."""
    return dtype.name not in STORED
