"""How control flow carries leaves of values: as SSA values of a type, to which it converts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_common.record import record

from fly_trace.control.carried.carried_values import Mismatch, is_number
from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue
from fly_trace.memory.pointers import Pointer
from fly_trace.memory.tensors import Tensor
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import I64, DType, PromotionError, check_fits
from fly_trace.values.promotion import common, default
from fly_trace.values.scalars import Number, Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder


@record
class LeafKind:
    """How a leaf is carried: a scalar of `dtype`, or a value `like` that one. If it `joins`,
    numbers of other types are converted.

    A leaf is a number, or a value with `ssa`, `carried` and `with_ssa`."""

    dtype: DType | None
    like: Any = None
    joins: bool = False

    def ssa(self, builder: Builder, leaf: Any) -> ir.Value:
        """The SSA value of a leaf. Raises Mismatch unless it has this kind or converts to it."""
        if self.dtype is not None:
            if not is_number(leaf) or (isinstance(leaf, Scalar) and not self._takes(leaf, builder)):
                raise Mismatch(self.like, leaf)
            if not isinstance(leaf, Scalar) and not self.joins:
                adopt(leaf, self.dtype)
            return builder.ssa(convert(leaf, self.dtype))
        if is_number(leaf) or leaf.carried != self.like.carried:
            raise Mismatch(self.like, leaf)
        if isinstance(leaf, Tensor | Pointer):
            leaf.access.join(self.like.access)
        return leaf.value(builder) if isinstance(leaf, DialectValue) else leaf.ssa

    def _takes(self, leaf: Scalar, builder: Any) -> bool:
        """The integers of the host function are all of one type."""
        assert self.dtype is not None
        if self.joins:
            return True
        wide = builder.host and leaf.dtype.is_integer and self.dtype.is_integer
        return wide or leaf.dtype is self.dtype

    def made(self, value: Any) -> Any:
        """Creates the leaf of an SSA value."""
        if self.dtype is None:
            return self.like.with_ssa(value)
        same_kind = isinstance(self.like, Scalar) and self.like.dtype is self.dtype
        return self.like.with_value(value) if same_kind else Scalar(self.dtype, value)

    def fill(self, leaf: Any, value: Any) -> None:
        """Sets the SSA value of a leaf that was created without one."""
        if self.dtype is None:
            leaf.ssa = value
        else:
            leaf.value = value


def kind_of(leaf: Any) -> LeafKind:
    """The kind of a variable that is `leaf` before a loop."""
    if isinstance(leaf, Scalar):
        return LeafKind(_wide(leaf.dtype), leaf)
    return LeafKind(_wide(default(leaf)), leaf) if is_number(leaf) else LeafKind(None, leaf)


def _wide(dtype: DType) -> DType:
    """The type that a number is carried in: the host function's integers have 64 bits."""
    return I64 if dtype.is_integer and _is_host() else dtype


def _is_host() -> bool:
    builder = tracing.active()
    return builder is not None and builder.host


def unify(a: Any, b: Any) -> LeafKind:
    """The kind of a variable that is `a` on one path and `b` on the other: for numbers, of their
    common type. Raises Mismatch if there is none."""
    if is_number(a) and is_number(b):
        try:
            types = [one.dtype if isinstance(one, Scalar) else default(one) for one in (a, b)]
            if _is_host() and types[0].is_integer and types[1].is_integer:
                return LeafKind(I64, joins=True)
            return LeafKind(common(a, b), joins=True)
        except PromotionError:
            raise Mismatch(a, b) from None
    if is_number(a) or is_number(b) or a.carried != b.carried:
        raise Mismatch(a, b)
    return LeafKind(None, a)


def adopt(number: Number, dtype: DType) -> DType:
    """Returns `dtype` if a Python number can be converted to it. Raises Mismatch otherwise."""
    if isinstance(number, bool) is not dtype.is_bool:
        raise Mismatch(number, dtype)
    try:
        check_fits(number, dtype)
    except PromotionError:
        raise Mismatch(number, dtype) from None
    return dtype
