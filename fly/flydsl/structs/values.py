"""The values of structs: `Composite`, of which every struct and union is a subclass.

A value with fields that are known while tracing (`fx.Constexpr`) has a class of its own for each of
their values: `Params[tile=32]`.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import FrozenInstanceError
from typing import Any, ClassVar

from fly_trace.memory.structs import Record, is_constant
from fly_trace.signatures.annotations import Constexpr
from fly_trace.values.dtypes import DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vectors import VectorType

from fly.flydsl.numbers.classes import name_of as vector_name
from fly.flydsl.numbers.operators import FlyDSLError, typed
from fly.flydsl.numbers.raw import lift
from fly.flydsl.structs import layout


def _protocol() -> Any:
    """The protocols of values, whose module imports this one."""
    return importlib.import_module("fly.flydsl.compiler.protocol")


RESERVED = ("replace", "peek", "poke")


class Composite(Record):
    """A struct, immutable; or a union, which has no values."""

    __fly_base__: ClassVar[Any] = None
    __fly_constants__: ClassVar[dict[str, Any]] = {}
    __dsl_type_identity__: ClassVar[Any] = None
    _schema_frozen = True

    def __init__(self, *values: Any, **named: Any):
        kind = type(self)
        if kind.__fly_overlap__:
            raise TypeError(f"the union {kind.__name__} has no value form; it describes memory")
        base = kind.__fly_base__
        given = _by_name(base, values, named)
        made = {
            name: coerced(base, name, field, given[name])
            for name, field in base.__fly_fields__.items()
        }
        special = specialized(base, made)
        if special is not kind:
            object.__setattr__(self, "__class__", special)
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}; use replace")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: Any) -> Any:
        if getattr(type(other), "__fly_base__", None) is not type(self).__fly_base__:
            return NotImplemented
        return all(
            same(getattr(self, name), getattr(other, name)) for name in type(self).__fly_fields__
        )

    def __hash__(self) -> int:
        kind = type(self)
        values = (getattr(self, name) for name in kind.__fly_fields__)
        return hash((kind.__fly_base__, *(getattr(one, "number", one) for one in values)))

    def __repr__(self) -> str:
        kind = type(self)
        body = ", ".join(f"{name}={getattr(self, name)!r}" for name in kind.__fly_fields__)
        return f"{kind.__name__}({body})"

    # -- the protocols

    def _stored(self) -> list[Any]:
        """The values of the fields that are no constants."""
        fields = type(self).__fly_fields__
        return [getattr(self, name) for name, kind in fields.items() if not is_constant(kind)]

    def __extract_to_ir_values__(self) -> list[Any]:
        extract_to_ir_values = _protocol().extract_to_ir_values
        return [one for value in self._stored() for one in extract_to_ir_values(value)]

    @classmethod
    def __construct_from_ir_values__(cls, values: list[Any], exemplar: Any = None) -> Any:
        construct_from_ir_values = _protocol().construct_from_ir_values
        extract_to_ir_values = _protocol().extract_to_ir_values
        made, at = dict(cls.__fly_constants__), 0
        wanted = 0
        for name, kind in cls.__fly_fields__.items():
            if is_constant(kind):
                if exemplar is not None:
                    made[name] = getattr(exemplar, name)
                continue
            like = getattr(exemplar, name, None)
            count = _count(kind) if like is None else len(extract_to_ir_values(like))
            part = values[at : at + count]
            at, wanted = at + count, wanted + count
            if len(part) == count:
                given = kind if like is None else like
                is_one = like is None and count == 1 and not isinstance(kind, type)
                made[name] = (
                    lift(part[0]) if is_one else construct_from_ir_values(kind, given, part)
                )
        if wanted != len(values):
            raise ValueError(f"{cls.__name__}: expected {wanted} ir.Values, got {len(values)}")
        return cls(**made)

    def __get_ir_types__(self) -> list[Any]:
        get_ir_types = _protocol().get_ir_types
        return [one for value in self._stored() for one in get_ir_types(value)]

    def __cache_signature__(self) -> Any:
        cache_signature = _protocol().cache_signature
        kind = type(self)
        constants = tuple(sorted(kind.__fly_constants__.items()))
        return kind.__dsl_type_identity__, constants, *map(cache_signature, self._stored())

    def __c_abi_spec__(self) -> list[Any]:
        c_abi_spec = _protocol().c_abi_spec
        found = []
        for name, kind in type(self).__fly_fields__.items():
            if not is_constant(kind):
                for ctype, fill in c_abi_spec(getattr(self, name)):
                    found.append((ctype, functools.partial(_fill_field, name, fill)))
        return found

    @classmethod
    def __peek_from_ptr__(cls, ptr: Any) -> Any:
        raise NotImplementedError(f"{cls.__name__} has no value form to read")

    @classmethod
    def __poke_into_ptr__(cls, ptr: Any, value: Any) -> None:
        raise NotImplementedError(f"{cls.__name__} has no value form to write")


def _fill_field(name: str, fill: Any, value: Any, storage: Any) -> None:
    fill(getattr(value, name), storage)


def _count(kind: Any) -> int:
    """The values of MLIR in a field of a type."""
    if isinstance(kind, type) and issubclass(kind, Composite):
        return sum(_count(one) for one in kind.__fly_fields__.values() if not is_constant(one))
    return 1


def same(a: Any, b: Any) -> bool:
    """Whether two fields are equal: numbers by type and value."""
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        if a.number is None or b.number is None:
            return a.value is b.value
        return a.dtype is b.dtype and a.number == b.number
    return bool(a == b)


def _by_name(kind: Any, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    fields = list(kind.__fly_fields__)
    title = f"{kind.__name__}(…)"
    if len(values) > len(fields):
        raise TypeError(f"{title} expected {len(fields)} field(s), got {len(values)} values")
    given = dict(zip(fields, values, strict=False))
    for name in named:
        if name not in fields:
            raise TypeError(f"{title} got unexpected field(s): {name}")
        if name in given:
            raise TypeError(f"{title} got multiple values for field {name!r}")
    given |= named
    missing = [name for name in fields if name not in given]
    if missing:
        raise TypeError(f"{title} is missing required field(s): {', '.join(missing)}")
    return given


def coerced(owner: Any, name: str, kind: Any, value: Any) -> Any:
    """The value of a field, of the field's type. TypeError for another one."""

    def wrong(what: str) -> TypeError:
        got = layout.name_of(type(value))
        return TypeError(f"{owner.__name__}(…): field {name!r} expects {what}, got {got}")

    if is_constant(kind):
        wanted = kind.kind if isinstance(kind, Constexpr) else None
        if isinstance(value, Scalar) or (
            isinstance(wanted, type)
            and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)))
        ):
            raise wrong(layout.name_of(wanted) if isinstance(wanted, type) else "a Python value")
        return value
    inner = getattr(kind, "inner", kind)  # of fx.Align
    if isinstance(inner, DType):
        held = typed(lift(value))
        if not isinstance(held, Scalar):
            raise wrong(inner.title)
        return inner(held)
    if isinstance(inner, VectorType):
        try:
            made = inner(value)
        except (FlyDSLError, TypeError, ValueError):
            raise wrong(vector_name(inner)) from None
        if isinstance(lift(value), type(made)) and lift(value).dtype is not inner.dtype:
            raise wrong(vector_name(inner))
        return made
    if hasattr(inner, "dtype") and hasattr(inner, "size"):  # of fx.Array
        from fly_trace.memory.structs import Array

        if not isinstance(value, Array):
            raise wrong(layout.name_of(inner))
        return value
    if isinstance(inner, type) and issubclass(inner, Composite):
        if not isinstance(value, inner):
            raise wrong(layout.name_of(inner))
        return value
    own = getattr(inner, "__coerce__", None)
    if own is not None:
        return own(value)
    if isinstance(inner, type) and not isinstance(value, inner):
        raise wrong(layout.name_of(inner))
    return value


def specialized(base: Any, values: dict[str, Any]) -> Any:
    """The class of a value with these fields."""
    constants = {
        name: values[name] for name, kind in base.__fly_fields__.items() if is_constant(kind)
    }
    inner = {
        name: type(value)
        for name, value in values.items()
        if isinstance(value, Composite) and type(value).__fly_constants__
    }
    if not constants and not inner:
        return base
    return _special(base, tuple(constants.items()), tuple(inner.items()))


@functools.lru_cache(maxsize=1024, typed=True)
def _special(base: Any, constants: Any, inner: Any) -> Any:
    shown = ", ".join(f"{name}={value!r}" for name, value in constants)
    name = f"{base.__name__}[{shown}]" if shown else base.__name__
    body = {
        "__module__": base.__module__,
        "__fly_constants__": {**dict(constants), **dict(inner)},
        "__fly_fields__": {**base.__fly_fields__, **dict(inner)},
    }
    return type(name, (base,), body)


def composite(
    name: str,
    fields: dict[str, Any],
    overlap: bool,
    module: str,
    members: dict[str, Any] | None = None,
) -> Any:
    """The class of a struct, or of a union."""
    identity = overlap, tuple((key, _identity(kind)) for key, kind in fields.items())
    body = {
        **(members or {}),
        "__module__": module,
        "__annotations__": dict(fields),
        "__fly_fields__": fields,
        "__fly_overlap__": overlap,
        "__dsl_type_identity__": identity,
    }
    made = type(name, (Composite,), body)
    made.__fly_base__ = made
    return made


def _identity(kind: Any) -> Any:
    found = getattr(kind, "__dsl_type_identity__", None)
    if found is not None:
        return found
    try:
        hash(kind)
    except TypeError:
        return repr(kind)
    return kind
