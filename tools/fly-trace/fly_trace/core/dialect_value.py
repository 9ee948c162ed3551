"""What the values of the fly dialect have in common: a type, which says most of them, and a value.

A value that its type says wholly (a static layout, an atom, a tiled copy) is plain data: it exists
outside kernels too, is the same in the host function and in its kernels, and costs no op. Where an
op needs it as an operand, it is made at the start of the function that is traced, once.

`apply` is the one way from a function of the language to an op of the dialect.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, Self

from fly_trace.core import tracing

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder


class DialectValue:
    """`spec` is the type; `ssa` the value, None where the type says it all."""

    __slots__ = ("spec", "ssa")
    noun = "a value"  # how messages name it

    def __init__(self, spec: Any, ssa: ir.Value | None = None):
        self.spec = spec
        self.ssa = ssa

    @classmethod
    def wrapped(cls, spec: Any, ssa: ir.Value | None, origin: Any) -> Any:
        """The value of an op. `origin` is the operand that it is a part or another view of."""
        return cls(spec, ssa)

    @property
    def is_static(self) -> bool:
        """Whether all of it is known while tracing."""
        return self.ssa is None

    def value(self, builder: Builder) -> ir.Value:
        """The SSA value in the function that is traced."""
        if self.ssa is not None:
            return self.ssa
        return builder.static(self.spec, lambda: self.made(builder))

    def made(self, builder: Builder) -> ir.Value:
        """An op that makes a static value."""
        from fly_dialect.builders import ops

        return builder.fly(ops.static, self.spec)

    # -- as a variable of a branch or loop

    @property
    def carried(self) -> Any:
        """What must be the same on every way for a dynamic value to be carried."""
        return type(self), self.spec

    def with_ssa(self, ssa: ir.Value) -> Self:
        """The same kind of value, of which the type is unchanged."""
        return self.wrapped(self.spec, ssa, self)

    @property
    def compared_as(self) -> type:
        """Only values of one kind can be equal."""
        return type(self)

    def is_same(self, other: Any) -> bool:
        """Whether two values are known to be one: what `==` can't ask of dynamic ones."""
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


# Spec's class → the class of its values, and whether a value of a spec is static.
_CLASSES: dict[type, Any] = {}
_STATIC: dict[type, Any] = {}


def values_of(spec: type, is_static: Any = None) -> Any:
    """Decorates the class of the values whose types are `spec`. `is_static(spec)` says whether a
    type says its value wholly; left out, none does."""

    def register(cls: Any) -> Any:
        _CLASSES[spec] = cls
        _STATIC[spec] = is_static
        return cls

    return register


def says_all(spec: Any) -> bool:
    """Whether a type says its value wholly."""
    test = _STATIC.get(type(spec))
    return test is not None and test(spec)


def wrap(spec: Any, ssa: ir.Value | None, origin: Any = None) -> Any:
    """The language's value of an SSA value of type `spec`."""
    return _CLASSES[type(spec)].wrapped(spec, None if says_all(spec) else ssa, origin)


@lru_cache(maxsize=4096)
def _inferred(name: str, specs: tuple[Any, ...], attributes: tuple[tuple[str, Any], ...]) -> Any:
    """The type of an op's result. ValueError where the operands don't fit."""
    from fly_dialect.op_table import OPS

    infer = OPS[name].infer
    assert infer is not None, name
    data = {key: list(value) if isinstance(value, tuple) else value for key, value in attributes}
    (result,) = infer(list(specs), data)
    return result


def inferred(name: str, operands: tuple[DialectValue, ...], attributes: dict[str, Any]) -> Any:
    """The type of `fly.name`'s result; refused at the user's line where the operands don't fit."""
    given = tuple((key, value) for key, value in attributes.items() if value is not None)
    try:
        return _inferred(name, tuple(operand.spec for operand in operands), given)
    except ValueError as error:
        tracing.refuse(f"fx.{name.replace('.', '_')}: {error}")


def apply(
    name: str, *operands: DialectValue, origin: DialectValue | None = None, **attributes: Any
) -> Any:
    """The value of `fly.name` on `operands`. No op is built where its type says it wholly.

    Attributes are integers, tuples of integers, strings; None leaves one out. `origin` is the
    operand that the result is a part of, the first one if left out.
    """
    spec = inferred(name, operands, attributes)
    if origin is None and operands:
        origin = operands[0]
    if says_all(spec):
        return wrap(spec, None, origin)
    builder = tracing.current(f"fx.{name.replace('.', '_')}")
    values = [operand.value(builder) for operand in operands]
    return wrap(spec, builder.fly_op(name, values, attributes, spec), origin)
