"""The values that control flow carries: Python trees whose leaves may be dynamic.

Branches and loops carry tuples, lists and dictionaries of numbers leaf by leaf, as well as vectors
and the dialect's dynamic values (tensors, layouts) of one type, and the user's objects field by
field. Any other object (a function, None) must be the same on every path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from fly_common.quoting import quoted

from fly_trace.control.carried import object_fields
from fly_trace.core import rules, tracing
from fly_trace.core.dialect_value import DialectValue
from fly_trace.core.tracing import describe
from fly_trace.effects.snapshots import Origin
from fly_trace.memory.structs import stored_fields
from fly_trace.values.scalars import Scalar


class Undefined:
    """The value of a local variable that is not assigned. `why` gives the reason."""

    __slots__ = ("hint", "name", "why")

    def __init__(self, name: str, why: str = "", hint: str | None = None):
        self.name = name
        self.why = why or f"`{name}` is used before it has a value"
        self.hint = hint

    def refuse(self) -> NoReturn:
        tracing.refuse(self.why, self.hint)


class Fields(dict[str, Any]):
    """The attributes of an object that is changed in place."""


class Held:
    """A part of a container that is carried by itself, or not at all. It must be the same object on
    all paths, unless it is a list or dictionary in `contents`, which has by `id` what the carried
    containers hold on this path: then another one can be made of those of two paths."""

    __slots__ = ("contents", "value")

    def __init__(self, value: Any, contents: Mapping[int, Any]):
        self.value = value
        self.contents = contents

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Held) and self.value is other.value

    __hash__ = None  # type: ignore[assignment]

    @property
    def described(self) -> str:
        return _kind(self.value)


def plain(one: Any) -> Any:
    """The object that stands for a part."""
    return one.value if isinstance(one, Held) else one


def _kind(value: Any) -> str:
    if object_fields.is_object(value):
        return f"an object of {type(value).__name__}"
    return f"a {type(value).__name__}" if type(value) in (list, dict) else describe(value)


class _Missing:
    described = "missing"


MISSING = _Missing()  # the value of an attribute that an object does not have yet


def part_of(container: Any, key: Any) -> str:
    """The end of the path to an item of a dictionary, or to an object's attribute."""
    return f".{key}" if type(container) is Fields else f"[{quoted(key, 40)}]"


class Mismatch(Exception):
    """Two values that cannot be merged. `path` leads to the leaf that differs, as in `[0]`."""

    def __init__(self, a: Any, b: Any, path: str = ""):
        super().__init__(path)
        self.a, self.b, self.path = a, b, path


class ConstantMismatch(Mismatch):
    """Two values of a struct's field that has to be known while tracing."""


def is_number(value: Any) -> bool:
    return isinstance(value, (Scalar, bool, int, float))


def is_leaf(value: Any) -> bool:
    """Whether a value is carried as one SSA value: a number, or a value of the dialect that is
    dynamic or can become dynamic, such as an atom with state."""
    if is_number(value):
        return True
    if fields_of(value) is not None:
        return False
    return getattr(value, "ssa", None) is not None or getattr(value, "has_state", False)


def merge(a: Any, b: Any, join: Callable[[Any, Any], Any], path: str = "") -> Any:
    """Merges two trees. `join` makes a leaf from two numbers that differ. Raises Mismatch if the
    trees differ otherwise."""
    if a is b:
        return a
    if isinstance(a, Held) or isinstance(b, Held):
        return _merged_containers(a, b, join, path)
    if object_fields.is_in_place(a) or object_fields.is_in_place(b):
        raise Mismatch(a, b, path)
    if _is_one_sided(a, b):
        return MISSING
    if is_leaf(a) and is_leaf(b):
        if same(a, b):
            return a
        try:
            return join(a, b)
        except Mismatch:
            raise Mismatch(a, b, path) from None
    if type(a) is type(b):
        if isinstance(a, (tuple, list)) and len(a) == len(b):
            items = [
                merge(x, y, join, f"{path}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True))
            ]
            _freeze(a, b)
            return _rebuilt(a, items)
        if isinstance(a, dict) and (list(a) == list(b) or _is_reordered(a, b)):
            _freeze(a, b)
            return _joined({key: merge(a[key], b[key], join, path + part_of(a, key)) for key in a})
        if (fields := fields_of(a)) is not None:
            check_constants(a, b, path)
            made = {
                name: merge(getattr(a, name), getattr(b, name), join, f"{path}.{name}")
                for name in fields
            }
            return a.with_fields(made)  # type: ignore[union-attr]
        if not isinstance(a, (tuple, list, dict)):
            opened = object_fields.is_object(a)
            if not (opened and (_is_dynamic(a) or _is_dynamic(b))) and equal(a, b):
                return a
            if opened and (made := _merged_objects(a, b, join, path)) is not None:
                return made
    raise Mismatch(a, b, path)


def _is_reordered(a: dict[Any, Any], b: dict[Any, Any]) -> bool:
    """Whether two dictionaries differ in the order of their keys only, under rules that let the
    first one's order be that of both."""
    own = rules.current()
    return own is not None and own.merges_reordered and a.keys() == b.keys()


def _is_one_sided(a: Any, b: Any) -> bool:
    """Whether a dynamic attribute that only one path gives an object is dropped."""
    if a is not MISSING and b is not MISSING:
        return False
    own = rules.current()
    return own is not None and own.drops_one_sided and _is_dynamic(b if a is MISSING else a)


def _is_dynamic(value: Any) -> bool:
    """Whether an object of the function's own holds a dynamic value."""
    return any(
        isinstance(leaf, (Scalar, DialectValue)) or not is_number(leaf) for leaf in leaves(value)
    )


def _merged_containers(a: Any, b: Any, join: Callable[[Any, Any], Any], path: str) -> Any:
    """A new list or dictionary with the contents of two, one or both of which are changed in place,
    and may not change any more: rows are swapped, or one is replaced."""
    x, y = plain(a), plain(b)
    if x is y:
        return a
    if type(x) is not type(y) or type(x) not in (list, dict):
        raise Mismatch(a, b, path)
    contents = [one.contents.get(id(one.value)) if isinstance(one, Held) else one for one in (a, b)]
    if None in contents:
        raise Mismatch(a, b, path)
    try:
        made = merge(contents[0], contents[1], join, path)
    except Mismatch as mismatch:
        if mismatch.path == path:  # of other lengths, or with other keys
            raise Mismatch(a, b, path) from None
        raise
    _freeze(x, y)
    if type(made) is list:
        made[:] = map(plain, made)
    else:
        made.update({key: plain(one) for key, one in made.items()})
    return _joined(made)


def _merged_objects(a: Any, b: Any, join: Callable[[Any, Any], Any], path: str) -> Any:
    """A new object with the merged fields of two objects of a class, or None."""
    x, y = object_fields.read(a), object_fields.read(b)
    if x.keys() != y.keys():
        return None
    fields = {name: merge(x[name], y[name], join, f"{path}.{name}") for name in x}
    _freeze(a, b)
    return _joined(object_fields.rebuilt(a, fields))


def transform(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Applies `leaf` to the leaves of a tree."""
    if is_leaf(value):
        return leaf(value)
    if object_fields.is_in_place(value):
        return value
    _freeze(value)
    if isinstance(value, list):
        return _copied(value, [transform(item, leaf) for item in value])
    if isinstance(value, tuple):
        return _rebuilt(value, [transform(item, leaf) for item in value])
    if isinstance(value, dict):
        held = {key: transform(item, leaf) for key, item in value.items()}
        return _copied(value, Fields(held) if type(value) is Fields else held)
    if (fields := fields_of(value)) is not None:
        return value.with_fields({n: transform(getattr(value, n), leaf) for n in fields})
    if object_fields.is_own_object(value):
        held = {name: transform(one, leaf) for name, one in object_fields.read(value).items()}
        return _copied(value, object_fields.rebuilt(value, held))
    return value


def _copied(original: Any, copy: Any) -> Any:
    """Registers a copy of a container that a loop carries."""
    builder = tracing.active()
    if builder is not None:
        builder.copies[id(copy)] = copy, original, len(builder.copies)
    return _joined(copy)


def leaves(value: Any) -> list[Any]:
    """The leaves of a tree, in order."""
    if is_leaf(value):
        return [value]
    if object_fields.is_in_place(value):
        return []
    if isinstance(value, (tuple, list)):
        parts: Iterable[Any] = value
    elif isinstance(value, dict):
        parts = value.values()
    elif (fields := fields_of(value)) is not None:
        parts = [getattr(value, name) for name in fields]
    elif object_fields.is_own_object(value):
        parts = object_fields.read(value).values()
    else:
        return []
    return [leaf for part in parts for leaf in leaves(part)]


def fields_of(value: Any) -> Any:
    """The names of a struct's fields that can be dynamic, or None. A field annotated `fx.Constexpr`
    is part of the structure: it is the same on all paths, and not carried."""
    fields = getattr(type(value), "__fly_fields__", None)
    return stored_fields(fields) if isinstance(fields, dict) else fields


def check_constants(a: Any, b: Any, path: str) -> None:
    """Raises Mismatch if two structs of a type differ in a field that is known while tracing."""
    for name in type(a).__fly_fields__:
        x, y = getattr(a, name), getattr(b, name)
        if name not in fields_of(a) and x is not y and not equal(x, y):
            raise ConstantMismatch(x, y, f"{path}.{name}")


def _rebuilt(like: Any, items: list[Any]) -> Any:
    if isinstance(like, list):
        return _joined(items)
    return type(like)(*items) if hasattr(like, "_fields") else tuple(items)


def _joined(container: Any) -> Any:
    """Registers a list or dictionary that control flow created."""
    builder = tracing.active()
    if builder is not None:
        builder.frozen.carry(container)
    return container


def _freeze(*containers: Any) -> None:
    """Registers lists, dictionaries and objects that control flow has copied. A variable then is
    the copy or the container itself, depending on the path, so that neither may change."""
    builder = tracing.active()
    if builder is None:
        return
    for one in containers:
        if type(one) not in (list, dict) and not object_fields.is_own_object(one):
            continue
        entry = builder.frozen.find(one)
        if (
            entry is None
            or entry.origin is not Origin.BEFORE
            or id(one) in builder.in_place
            or not entry.changed  # or else the region's end reports the change
        ):
            builder.frozen.carry(one)


def settle(container: Any) -> None:
    """Has a container that may not change any more be what it is now, behind the control flow that
    has merged it."""
    builder = tracing.active()
    if builder is None:
        return
    entry = builder.frozen.find(container)
    if entry is not None and entry.origin is Origin.CARRIED:
        builder.frozen.carry(container)


def same(a: Any, b: Any) -> bool:
    """Whether two leaves are the same Python number (0.0 is not -0.0) or static atom."""
    if isinstance(a, DialectValue):
        return a.is_same(b)
    if not (is_number(a) and is_number(b)) or isinstance(a, Scalar) or isinstance(b, Scalar):
        return False
    return type(a) is type(b) and repr(a) == repr(b)


def equal(a: Any, b: Any) -> bool:
    """Returns whether two values are equal. False if they can not be compared."""
    if isinstance(a, DialectValue):
        return a.is_same(b)
    try:
        return bool(a == b)
    except Exception:
        return False
