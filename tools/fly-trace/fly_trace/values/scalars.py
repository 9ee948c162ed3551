"""Scalars: the numbers of a kernel. `operators` installs their operators."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from fly_trace.core import tracing

if TYPE_CHECKING:
    from fly_dialect.bindings import ir
    from fly_dialect.layouts.integers import Int

    from fly_trace.values.dtypes import DType

Number = bool | int | float


class Scalar:
    """A run-time value of one element type. Its class is that type: `type(x) is fx.Float32`.

    `value` is the SSA value. For a typed constant such as `fx.Float32(0)` it is `number`, which is
    materialized on use. Python's operators apply to it. Operations that need its value
    while tracing (`bool(x)`, `int(x)`, `len(x)`, use as a dictionary key) are refused.
    """

    __slots__ = ("dtype", "leaf", "number", "value")
    is_number = True  # `isinstance(x, fx.Float32)` asks for its dtype

    def __new__(cls, dtype: DType, *_: Any, **__: Any) -> Scalar:
        return object.__new__(dtype if cls is Scalar else cls)  # type: ignore[arg-type]

    def __init__(
        self,
        dtype: DType,
        value: ir.Value | None = None,
        number: Number | None = None,
        leaf: Int | None = None,
    ):
        self.dtype = dtype
        self.value: Any = number if value is None else value
        self.number = number
        self.leaf = leaf  # the type of an extent or coordinate: a fly_dialect Int

    if TYPE_CHECKING:
        # Installed by `operators`.
        def __add__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def to(
            self,
            dtype: DType,
            *,
            rounding: str | None = None,
            saturate: bool = False,
            rounding_mode: str | None = None,
        ) -> Scalar: ...
        def bitcast(self, dtype: DType) -> Scalar: ...

    def unpack(self) -> Scalar:
        """An int tuple of one integer, as a Python value: itself."""
        return self

    to_py_value = unpack

    def with_value(self, value: ir.Value | None) -> Scalar:
        """A scalar of the same kind with another value."""
        return Scalar(self.dtype, value)

    @property
    def ssa(self) -> ir.Value | None:
        """The SSA value; None for a typed constant."""
        return None if self.value is self.number else self.value

    @property
    def is_static(self) -> bool:
        """Whether its number is known while tracing."""
        return self.number is not None

    @property
    def described(self) -> str:
        return f"a dynamic {self.dtype.name}"

    def __repr__(self) -> str:
        if _shown.by is not None:  # in a list or tuple that is shown
            return _shown.by(self, "")
        shown = "" if self.number is None else f" = {self.number}"
        return f"<{self.dtype.name}{shown}>"

    # -- operations that need a static number

    def __bool__(self) -> bool:
        if self.number is not None:
            return bool(self.number)
        refuse_static(self, "has no truth value while the kernel is traced", _BOOL_HINT)

    def __int__(self) -> int:
        if self.number is not None:
            return int(self.number)
        refuse_static(self, "is not a Python int", "convert it with fx.Int32(x) or fx.Int64(x)")

    def __float__(self) -> float:
        if self.number is not None:
            return float(self.number)
        refuse_static(self, "is not a Python float", "convert it with fx.Float32(x)")

    def __complex__(self) -> NoReturn:
        refuse_static(self, "is not a Python complex number", None)

    def __index__(self) -> int:
        if isinstance(self.number, int):
            return int(self.number)
        refuse_static(
            self,
            "can't index or count in Python: it is known only when the kernel runs",
            _INDEX_HINT,
        )

    def __iter__(self) -> NoReturn:
        refuse_static(self, "is a scalar and can't be iterated or unpacked", None)

    def __len__(self) -> NoReturn:
        refuse_static(self, "is a scalar and has no length", None)

    def __contains__(self, _: Any) -> NoReturn:
        refuse_static(self, "is a scalar; nothing is in it", None)

    def __getitem__(self, _: Any) -> NoReturn:
        refuse_static(self, "is a scalar and can't be indexed", None)

    def __hash__(self) -> NoReturn:
        refuse_static(
            self,
            "can't be a key or in a set: it is known only when the kernel runs",
            "use a tuple or a list, or keys that are known while tracing",
        )

    def __str__(self) -> str:
        if _shown.by is not None:
            return _shown.by(self, "")
        refuse_static(
            self, "can't be converted to a string: it is known only when the kernel runs", None
        )

    def __format__(self, form: str) -> str:
        if _shown.by is not None:
            return _shown.by(self, form)
        refuse_static(
            self, "can't be converted to a string: it is known only when the kernel runs", None
        )

    def __round__(self, _: Any = None) -> NoReturn:
        refuse_static(self, "can't be rounded to a Python int", "use fx.floor, fx.ceil or fx.Int32")

    __trunc__ = __floor__ = __ceil__ = __round__


_BOOL_HINT = (
    "Python needs it in bool() and in code that is not"
    " traced: use &, |, fx.minimum, fx.maximum, fx.where"
)
_INDEX_HINT = (
    "loop with `for … in range(…)`, index a tensor, or make it known: a variable of"
    " fx.range_constexpr(…), an fx.Constexpr"
)


class _Shown(threading.local):
    """How scalars become text, with a format: in the message of a check, and in printed lines."""

    by: Callable[[Scalar, str], str] | None = None


_shown = _Shown()


@contextmanager
def shown_as(show: Callable[[Scalar, str], str]) -> Iterator[None]:
    """Scalars become the text that `show` gives for them."""
    before, _shown.by = _shown.by, show
    try:
        yield
    finally:
        _shown.by = before


def refuse_static(value: Scalar, what: str, hint: str | None) -> NoReturn:
    tracing.refuse(f"{value.described} {what}", hint)
