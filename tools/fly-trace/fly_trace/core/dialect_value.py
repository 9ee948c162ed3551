"""The base class of the fly dialect's values: a type, and an SSA value unless the type suffices.

A value that its type describes completely (a static layout, an atom, a tiled copy) is plain data.
It exists outside kernels too, is shared by the host function and its kernels, and needs no op. If
an op needs it as an operand, it is materialized once, at the start of the traced function.

`apply` maps all functions of the language to ops of the dialect.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, Self

from fly_plugin import active

from fly_trace.core import tracing

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder


class DialectValue:
    """`spec` is the type. `ssa` is the value, or None if the type describes it completely."""

    __slots__ = ("spec", "ssa")
    noun = "a value"  # the name in messages

    def __init__(self, spec: Any, ssa: ir.Value | None = None):
        self.spec = spec
        self.ssa = ssa

    @classmethod
    def wrapped(cls, spec: Any, ssa: ir.Value | None, origin: Any) -> Any:
        """Creates a value from an op's result. `origin` is the operand it is a part or view of."""
        return cls(spec, ssa)

    @property
    def is_static(self) -> bool:
        """Whether it is known completely while tracing."""
        return self.ssa is None

    def value(self, builder: Builder) -> ir.Value:
        """The SSA value in the current function."""
        if self.ssa is not None:
            return self.ssa
        return builder.static(self.spec, lambda: self.made(builder))

    def made(self, builder: Builder) -> ir.Value:
        """Builds an op for a static value."""
        from fly_dialect.builders import ops

        return builder.fly(ops.static, self.spec)

    # -- carried by branches and loops

    @property
    def carried(self) -> Any:
        """What must be equal on every path for a dynamic value to be carried."""
        return type(self), self.spec

    def with_ssa(self, ssa: ir.Value) -> Self:
        """A value of the same kind and type with another SSA value."""
        return self.wrapped(self.spec, ssa, self)

    def in_kernel(self, builder: Builder, ssa: ir.Value) -> Any:
        """The value in a kernel, as whose argument it is passed; `ssa` is its parameter."""
        return self.with_ssa(ssa)

    @property
    def compared_as(self) -> type:
        """The class for comparisons: only values of the same class can be equal."""
        return type(self)

    def is_same(self, other: Any) -> bool:
        """Whether two values are known to be the same. Unlike `==`, it accepts dynamic values."""
        return self is other or (
            isinstance(other, DialectValue)
            and self.compared_as is other.compared_as
            and self.is_static
            and other.is_static
            and self.spec == other.spec
        )

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, DialectValue):
            return NotImplemented
        alike = self.compared_as is other.compared_as
        if alike and self is not other and not (self.is_static and other.is_static):
            tracing.refuse(
                f"whether {self.described} and {other.described} are equal is known only when the"
                " kernel runs",
                "compare their integers, with == or fx.equal",
            )
        return self.is_same(other)

    def __hash__(self) -> int:
        return hash((self.compared_as, self.spec, id(self.ssa) if self.ssa is not None else 0))

    @property
    def described(self) -> str:
        return f"{self.noun} ({self})"

    def __str__(self) -> str:
        return str(self.spec).removeprefix("!fly.")

    def __repr__(self) -> str:
        return f"<{self}>"

    def __bool__(self) -> NoReturn:
        tracing.refuse(f"{self.noun} has no truth value", "use fx.equal or `is None`")


# Spec class → the class of its values, and a predicate that says whether a spec's value is static.
_CLASSES: dict[type, Any] = {}
_STATIC: dict[type, Any] = {}


def values_of(spec: type, is_static: Any = None) -> Any:
    """Registers the decorated class for values whose types are `spec`. `is_static(spec)` says
    whether a type describes its value completely; by default, none does."""

    def register(cls: Any) -> Any:
        _CLASSES[spec] = cls
        _STATIC[spec] = is_static
        return cls

    return register


def says_all(spec: Any) -> bool:
    """Whether a type describes its value completely."""
    test = _STATIC.get(type(spec))
    return test is not None and test(spec)


def wrap(spec: Any, ssa: ir.Value | None, origin: Any = None) -> Any:
    """The language's value of an SSA value of type `spec`."""
    return _CLASSES[type(spec)].wrapped(spec, None if says_all(spec) else ssa, origin)


@lru_cache(maxsize=4096)
def _inferred(name: str, specs: tuple[Any, ...], attributes: tuple[tuple[str, Any], ...]) -> Any:
    """The type of an op's result. Raises ValueError for invalid operands."""
    from fly_dialect.op_table import op

    infer = op(name).infer
    assert infer is not None, name
    data = {key: list(value) if isinstance(value, tuple) else value for key, value in attributes}
    (result,) = infer(list(specs), data)
    return result


def inferred(name: str, operands: tuple[DialectValue, ...], attributes: dict[str, Any]) -> Any:
    """The type of the result of `fly.name`. Invalid operands are reported at the user's line."""
    given = tuple((key, value) for key, value in attributes.items() if value is not None)
    # The ops of plugins depend on which are active.
    infer = _inferred.__wrapped__ if active() else _inferred
    try:
        return infer(name, tuple(operand.spec for operand in operands), given)
    except ValueError as error:
        tracing.refuse(f"fx.{name.replace('.', '_')}: {error}")


def apply(
    name: str, *operands: DialectValue, origin: DialectValue | None = None, **attributes: Any
) -> Any:
    """Returns the value of `fly.name` applied to `operands`. Builds no op if the result's type
    describes it completely.

    Attributes are integers, tuples of integers, or strings; None omits one. `origin` is the operand
    that the result is a part of; the default is the first one.
    """
    spec = inferred(name, operands, attributes)
    if origin is None and operands:
        origin = operands[0]
    if says_all(spec):
        return wrap(spec, None, origin)
    builder = tracing.current(f"fx.{name.replace('.', '_')}")
    values = [operand.value(builder) for operand in operands]
    return wrap(spec, builder.fly_op(name, values, attributes, spec), origin)
