"""Calls of MLIR's builders from a traced program.

A builder gets the operands that values of the language stand for, at the place that is traced and
with the location of the user's line, and gives values of the language.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from types import ModuleType
from typing import Any

from fly_trace.core import tracing
from fly_trace.values.dtypes import BOOL, F32, I32
from fly_trace.values.functions.fast_math import of_op

from fly.flydsl.numbers.raw import escape, lift, lower

_PLACED = ("loc", "ip")


def called(function: Any, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Calls a function or a class of the bindings in the current trace."""
    builder = tracing.current(name)
    builder.load(name.partition(".")[0])
    escape(arguments, *named.values())
    given = {key: lower(value) for key, value in named.items() if key not in _PLACED}
    if not hasattr(given.get("fastmath"), "context") and "fastmath" in given:
        given = {**given, **of_op(builder, given.pop("fastmath"))}
    operands = list(map(lower, arguments))
    place = named.get("ip")
    with builder.ip if place is None else place, builder.locations.here():
        if name.startswith("rocdl."):
            for at, parameter in enumerate(_parameters(function)[: len(operands)]):
                if parameter:
                    operands[at] = _constant(builder, operands[at])
        return lift(function(*operands, **given))


@functools.cache
def _parameters(function: Any) -> tuple[bool, ...]:
    """Which parameters of a builder are values of MLIR."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(".ir.Value" in str(one.annotation) for one in parameters)


def _constant(builder: Any, value: Any) -> Any:
    """A number of Python as an operand: Int32, Float32 or Boolean."""
    if not isinstance(value, (bool, int, float)):
        return value
    dtype = BOOL if isinstance(value, bool) else I32 if isinstance(value, int) else F32
    return builder.constant(value, dtype)


class Builder:
    """A function, or the class of an operation, of the bindings."""

    def __init__(self, function: Any, name: str):
        functools.update_wrapper(self, function)
        self.function, self.name = function, name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return called(self.function, self.name, arguments, named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(getattr(value, "op", value), self.function)


def wrapped(value: Any, name: str) -> Any:
    """What a dialect's module shows for a value of the bindings' module: builders build."""
    from fly_dialect.bindings import ir

    if inspect.isclass(value):
        return Builder(value, name) if issubclass(value, ir.OpView) else value
    return Builder(value, name) if callable(value) and not isinstance(value, ModuleType) else value


# The project's own dialects, whose operations are functions of the language.
_FLYS = ("fly", "fly_rocdl")


def _language() -> ModuleType:
    return importlib.import_module("fly.flydsl.expr")


class Dialect(ModuleType):
    """The module of an upstream dialect, with its builders, and what FlyDSL's has besides."""

    def __init__(self, name: str):
        super().__init__(f"fly.flydsl._mlir.dialects.{name}")
        self.__path__: list[str] = []
        self._dialect = name

    @functools.cached_property
    def _own(self) -> dict[str, Any]:
        return own_of(self._dialect)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._own:
            return self._own[name]
        if self._dialect in _FLYS:
            return getattr(_language(), name)
        try:
            value = getattr(self._module(), name)
        except AttributeError:
            raise AttributeError(f"MLIR's dialect {self._dialect} has no {name}") from None
        made = wrapped(value, f"{self._dialect}.{name}")
        setattr(self, name, made)
        return made

    def _module(self) -> ModuleType:
        from fly_dialect import bindings

        return bindings.dialect(self._dialect)

    @property
    def __all__(self) -> list[str]:
        names = [name for name in dir(self._module()) if not name.startswith("_")]
        return sorted({*names, *self._own})


def own_of(dialect: str) -> dict[str, Any]:
    """What this package adds to a dialect: the public names of `fly.flydsl._mlir.added.NAME`."""
    try:
        module = importlib.import_module(f"fly.flydsl._mlir.added.{dialect}")
    except ModuleNotFoundError as error:
        if error.name != f"fly.flydsl._mlir.added.{dialect}":
            raise
        return {}
    return {name: getattr(module, name) for name in module.__all__}
