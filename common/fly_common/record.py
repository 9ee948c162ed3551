"""Frozen records for modules that every run of a tool imports: `dataclasses` without its 12 ms.

`dataclasses` imports `inspect`, which imports the tables of Python's parser and compiler. That
takes longer than the rest of a short run. `@record` replaces `@dataclass(frozen=True)`, without
inheritance, `field` and `InitVar`, and saves these 12 ms in each of a pipe's five tools.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from typing import Any, TypeVar, dataclass_transform

    Record = TypeVar("Record")


def _record(kind: type) -> type:
    """Makes a class with annotated fields, which may have defaults, a record.

    Records of one class are equal if their fields are. Hash and repr are those of the fields, and
    records are immutable. `__init__` calls `__post_init__` at its end, if there is one.
    """
    names = tuple(kind.__annotations__)
    defaults = {name: vars(kind)[name] for name in names if name in vars(kind)}

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        given = dict(zip(names, values, strict=False))
        if len(values) > len(names) or not given.keys().isdisjoint(named):
            raise TypeError(f"{kind.__name__}: too many values for {', '.join(names)}")
        fields = {**defaults, **given, **named}
        if fields.keys() != set(names):
            wrong = ", ".join(sorted(fields.keys() ^ set(names)))
            raise TypeError(f"{kind.__name__}: missing or unknown: {wrong}")
        vars(self).update(fields)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    def values(self: Any) -> tuple[Any, ...]:
        return tuple(vars(self)[name] for name in names)

    def __eq__(self: Any, other: object) -> bool:
        return type(other) is kind and values(self) == values(other)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    def __repr__(self: Any) -> str:
        shown = (f"{name}={value!r}" for name, value in zip(names, values(self), strict=True))
        return f"{kind.__qualname__}({', '.join(shown)})"

    def __delattr__(self: Any, name: str) -> None:
        raise AttributeError(f"{kind.__name__} is frozen: {name} can't be assigned")

    def __setattr__(self: Any, name: str, value: object) -> None:
        __delattr__(self, name)

    kind.__record_fields__ = names
    for method in (__init__, __eq__, __hash__, __repr__, __delattr__, __setattr__):
        setattr(kind, method.__name__, method)
    return kind


if TYPE_CHECKING:

    @dataclass_transform(frozen_default=True)
    def record(kind: type[Record]) -> type[Record]: ...

else:
    record = _record


def replace(one: Record, **changes: Any) -> Record:
    """Returns a copy of `one`, a record or a dataclass, with these fields changed."""
    fields = {name: vars(one)[name] for name in field_names(one)}
    return type(one)(**{**fields, **changes})


def is_record(value: object) -> bool:
    """Returns whether a value is an instance of a record."""
    return hasattr(type(value), "__record_fields__")


def field_names(value: object) -> tuple[str, ...]:
    """Returns the names of the fields of a record or of a dataclass, in their order."""
    kind: Any = type(value)
    return kind.__record_fields__ if is_record(value) else tuple(kind.__dataclass_fields__)
