"""Records: the part of `dataclasses` that modules of the compile path need, without its cost.

A decorator of `dataclasses` generates and compiles the source of five methods, 0.3 ms for a class,
and importing it loads `inspect` with the tables of Python's parser, 6 ms. A cold compile defines
120 such classes, and each of a pipe's five tools defines some. `@record` makes the same methods
from closures: 0.02 ms for a class. Modules that no compile imports use `dataclasses`.
"""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar, dataclass_transform, overload

    Record = TypeVar("Record")


# From so many objects of a class on, its `__init__` is one that Python calls directly.
OFTEN = 8


class _Missing:
    """The default of a field that has none."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


class Field:
    """What a field's class states of it beside its annotation; `field` makes it."""

    __slots__ = ("default", "factory", "in_repr", "is_parameter", "metadata")

    def __init__(
        self,
        default: Any = MISSING,
        factory: Callable[[], Any] | None = None,
        is_parameter: bool = True,
        in_repr: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.default = default
        self.factory = factory
        self.is_parameter = is_parameter
        self.in_repr = in_repr
        self.metadata = metadata or {}

    @property
    def is_required(self) -> bool:
        return self.is_parameter and self.default is MISSING and self.factory is None


def _field(
    *,
    default: Any = MISSING,
    default_factory: Any = None,
    init: bool = True,
    repr: bool = True,
    metadata: Any = None,
) -> Any:
    """Returns what a field's name is assigned in its class: as `dataclasses.field`."""
    return Field(default, default_factory, init, repr, metadata)


def _own_fields(kind: type) -> dict[str, Field]:
    """Returns the fields that a class adds to those of its bases, and leaves their plain defaults
    as the class's attributes."""
    found = {}
    for name, annotation in vars(kind).get("__annotations__", {}).items():
        if str(annotation).startswith(("ClassVar", "typing.ClassVar")):
            continue
        value = vars(kind).get(name, MISSING)
        made = value if isinstance(value, Field) else Field(value)
        if isinstance(value, Field):
            if made.default is MISSING:
                delattr(kind, name)
            else:
                setattr(kind, name, made.default)
        found[name] = made
    return found


def _inherited(kind: type) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for base in reversed(kind.__mro__[1:]):
        found.update(vars(base).get("__record_fields__", {}))
    return found


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Returns the function from a record to the values of its fields."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda self: ()
    only = attrgetter(names[0])
    return lambda self: (only(self),)


def _initialise(kind: type, fields: dict[str, Field]) -> Callable[..., None]:
    """Returns a record's `__init__`, which calls `__post_init__` at its end if there is one."""
    names = tuple(name for name, one in fields.items() if one.is_parameter)
    required = {name for name, one in fields.items() if one.is_required}
    defaults = {name: one.default for name, one in fields.items() if one.default is not MISSING}
    factories = {name: one.factory for name, one in fields.items() if one.factory is not None}
    known, count = frozenset(names), len(names)

    def arrange(values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        given = dict(zip(names, values, strict=False)) if values else {}
        if len(values) > count or not given.keys().isdisjoint(named):
            raise TypeError(f"{kind.__name__}: too many values for {', '.join(names)}")
        given.update(named)
        if not required <= given.keys() <= known:
            wrong = sorted((given.keys() - known) | (required - given.keys()))
            raise TypeError(f"{kind.__name__}: missing or unknown: {', '.join(wrong)}")
        for name, factory in factories.items():
            if name not in given:
                given[name] = factory()
        return {**defaults, **given}

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        if plain:
            nonlocal calls
            calls += 1
            if calls == OFTEN:
                setattr(kind, "__init__", _direct(names, defaults, finish))  # noqa: B010
            if len(values) == count and not named:
                self.__dict__.update(zip(names, values, strict=True))
            else:
                self.__dict__.update(arrange(values, named))
        else:
            for name, value in arrange(values, named).items():
                object.__setattr__(self, name, value)
        if finish:
            self.__post_init__()

    calls = 0
    finish = hasattr(kind, "__post_init__")
    # A base that is written in C may hold a field outside of `__dict__`.
    slots = any(hasattr(vars(base).get(name), "__set__") for base in kind.__mro__ for name in names)
    needed_first = required == set(names[: len(required)])
    plain = count == len(fields) and needed_first and not factories and not slots
    return __init__


def _direct(names: tuple[str, ...], defaults: dict[str, Any], finish: bool) -> Callable[..., None]:
    """Returns the `__init__` that `dataclass` would generate, of a class that is used often. It is
    that of another class with as many fields, with its names: compiling one takes 0.1 ms."""
    made = _INITS.get((len(names), finish))
    if made is None:
        made = _INITS[len(names), finish] = _compiled(len(names), finish)
    code = made.__code__
    held = {f"_{number}": name for number, name in enumerate(names)}
    constants = tuple(held.get(one, one) if type(one) is str else one for one in code.co_consts)
    # The last variable has no name that a field could have.
    code = code.replace(co_varnames=("self", *names, ".fields"), co_consts=constants)
    values = tuple(defaults[name] for name in names if name in defaults)
    function: Any = type(made)
    return function(code, made.__globals__, "__init__", values)


_INITS: dict[tuple[int, bool], Any] = {}


def _compiled(count: int, finish: bool) -> Callable[..., None]:
    names = [f"_{number}" for number in range(count)]
    lines = [f"def __init__(self, {', '.join(names)}):", " fields = self.__dict__"]
    lines += [f" fields[{name!r}] = {name}" for name in names]
    lines += [" self.__post_init__()"] if finish else []
    scope: dict[str, Any] = {}
    exec(compile("\n".join(lines), __file__, "exec"), scope)  # not a user's code
    return scope["__init__"]


def _compared(kind: type, values: Callable[[Any], tuple[Any, ...]], frozen: bool) -> dict[str, Any]:
    def __eq__(self: Any, other: object) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        return values(self) == values(other)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _frozen(kind: type) -> dict[str, Any]:
    def __delattr__(self: Any, name: str) -> None:
        raise AttributeError(f"{kind.__name__} is frozen: {name} can't be assigned")

    def __setattr__(self: Any, name: str, value: object) -> None:
        __delattr__(self, name)

    return {"__delattr__": __delattr__, "__setattr__": __setattr__}


def _record(kind: type | None = None, /, *, frozen: bool = True, eq: bool = True) -> Any:
    """Makes a class with annotated fields a record: as `dataclass(frozen=frozen, eq=eq)` would.

    Records of one class are equal if their fields are, unless eq=False; a frozen one can be hashed
    and its fields can't be assigned. Fields may have defaults, be inherited, or be described by
    `field`. Methods that the class itself defines stay.
    """
    if kind is None:
        return lambda kind: _record(kind, frozen=frozen, eq=eq)
    fields = {**_inherited(kind), **_own_fields(kind)}
    names = tuple(fields)
    shown = tuple(name for name, one in fields.items() if one.in_repr)

    def __repr__(self: Any) -> str:
        parts = (f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({', '.join(parts)})"

    methods: dict[str, Any] = {"__init__": _initialise(kind, fields), "__repr__": __repr__}
    if eq:
        methods.update(_compared(kind, _values(names), frozen))
    if frozen:
        methods.update(_frozen(kind))
    own = set(vars(kind))
    if "__eq__" in own:  # Python sets `__hash__` to None beside it
        own -= {"__hash__"} if vars(kind)["__hash__"] is None else set()
    for name, method in methods.items():
        if name not in own:
            setattr(kind, name, method)
    settings: Any = kind
    settings.__record_fields__ = fields
    settings.__record_frozen__ = frozen
    settings.__match_args__ = tuple(name for name, one in fields.items() if one.is_parameter)
    return kind


if TYPE_CHECKING:

    def field(
        *,
        default: Any = ...,
        default_factory: Callable[[], Any] = ...,
        init: bool = True,
        repr: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> Any: ...

    @overload
    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def record(kind: type[Record], /) -> type[Record]: ...

    @overload
    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def record(
        *, frozen: bool = True, eq: bool = True
    ) -> Callable[[type[Record]], type[Record]]: ...

    def record(kind: Any = None, /, *, frozen: bool = True, eq: bool = True) -> Any: ...

else:
    field, record = _field, _record


def replace(one: Record, **changes: Any) -> Record:
    """Returns a copy of `one`, a record or a dataclass, with these fields changed."""
    fields = {name: getattr(one, name) for name in _parameters(one)}
    return type(one)(**{**fields, **changes})


def is_record(value: object) -> bool:
    """Returns whether a value is an instance of a record."""
    return hasattr(type(value), "__record_fields__")


def fields_of(kind: type) -> Mapping[str, Field]:
    """Returns the fields of a class of records, or of a dataclass, by their names, in order."""
    made: Any = kind
    if "__dataclass_fields__" not in vars(kind):
        return made.__record_fields__
    import dataclasses

    found = {}
    for one in dataclasses.fields(made):
        default = MISSING if one.default is dataclasses.MISSING else one.default
        made_by = None if one.default_factory is dataclasses.MISSING else one.default_factory
        found[one.name] = Field(default, made_by, one.init, one.repr, one.metadata)
    return found


def field_names(value: object) -> tuple[str, ...]:
    """Returns the names of the fields of a record or of a dataclass, in their order."""
    kind: Any = type(value)
    return tuple(kind.__record_fields__ if is_record(value) else kind.__dataclass_fields__)


def as_dict(value: Any) -> Any:
    """Returns a record as a dict of its fields, and the records within it so too."""
    if is_record(value):
        return {name: as_dict(getattr(value, name)) for name in field_names(value)}
    if isinstance(value, dict):
        return {key: as_dict(one) for key, one in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(map(as_dict, value))
    return value


def _parameters(one: object) -> tuple[str, ...]:
    kind: Any = type(one)
    stated = kind.__record_fields__ if is_record(one) else None
    if stated is None:
        return tuple(name for name, made in kind.__dataclass_fields__.items() if made.init)
    return tuple(name for name, made in stated.items() if made.is_parameter)
