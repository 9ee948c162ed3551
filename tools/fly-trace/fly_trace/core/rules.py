"""Rules of numbers that a trace follows instead of the language's own.

A program in another language's terms is traced by the same machinery, but its `+` may have another
type. Its functions name their rules (`KernelFunction.rules`, `HostFunction.rules`), and the builder
of each has them while it is traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fly_common.errors import InputError

from fly_trace.core import tracing

if TYPE_CHECKING:
    from fly_trace.values.dtypes import DType


class Rules(Protocol):
    """What operators and conversions of Scalars and Vectors mean. Operands are Scalars, Vectors,
    numbers of Python, or anything that `convert` takes."""

    # The class of errors of the functions that are traced.
    error: type[InputError]
    # For programs whose trace is all that they want: a host function may have what only kernels can
    # do; functions may change objects from outside, and catch errors.
    is_free: bool
    # Whether a branch may leave a dictionary with its keys in another order than the other branch.
    merges_reordered: bool
    # Whether an object has no longer, behind a branch, an attribute with a dynamic value that only
    # one side has given it. Otherwise that is an error.
    drops_one_sided: bool

    def begin(self, builder: Any) -> None:
        """Called when a function is traced, with its builder, before any of its operations."""
        ...

    def binary(self, operation: str, a: Any, b: Any) -> Any:
        """`a operation b`, of which one is a Scalar or a Vector: add, lt, rshift, …"""
        ...

    def unary(self, operation: str, a: Any) -> Any:
        """neg, pos, invert or abs of a Scalar or a Vector."""
        ...

    def convert(self, value: Any, dtype: DType) -> Any:
        """`dtype(value)`."""
        ...

    def to(self, value: Any, dtype: Any, **how: Any) -> Any:
        """`value.to(dtype)` of a Scalar or a Vector."""
        ...

    def stored(self, value: Any, dtype: DType) -> Any:
        """What is stored for `value` to memory of `dtype`, or NotImplemented for what the
        language itself makes of it."""
        ...


def current() -> Rules | None:
    """The rules of the function that is being traced; None for the language's own."""
    builder = tracing.active()
    return tracing.OUTSIDE.rules if builder is None else builder.rules
