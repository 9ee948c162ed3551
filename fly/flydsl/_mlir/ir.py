"""`flydsl._mlir.ir`: MLIR's types, attributes and insertion points. `Value` is what FlyDSL takes
for a value of MLIR, which includes tensors, layouts, vectors and results of builders."""

from __future__ import annotations

from typing import Any

from fly_dialect.bindings import ir as _ir

from fly.flydsl._mlir import ambient
from fly.flydsl._mlir.insertion import InsertionPoint as InsertionPoint
from fly.flydsl.numbers.raw import is_spec, is_value, lift, lower


class _ValueKind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return is_value(value)

    def __call__(cls, value: Any) -> Any:
        return lift(lower(value))


class Value(metaclass=_ValueKind):
    """A value of MLIR. `isinstance(x, ir.Value)`; `ir.Value(x)` is the value itself."""

    is_any_value = True


class _TypeKind(type):
    """A class of types that also has the fly dialect's."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _ir.Type) or is_spec(value)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_ir.Type, name)


class Type(metaclass=_TypeKind):
    """`ir.Type.parse("!llvm.ptr<1>")`."""


ambient.install()


def __getattr__(name: str) -> Any:
    return getattr(_ir, name)


def __dir__() -> list[str]:
    return sorted({*dir(_ir), *globals()})
