"""Reads and restores the state of containers, objects with attributes, and iterators.

A `Kind` describes the objects of one type; `object_kinds` maps types to kinds.
"""

from __future__ import annotations

import collections
import functools
import operator
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from fly_common.quoting import quoted

from fly_trace.effects import user_code

MISSING: Any = type("Missing", (), {})()
Members = Iterable[tuple[str, Any]]  # a member's path suffix (see `Entry.path`), and the member


def no_state(value: Any) -> Any:
    """Reads the state of an object without state."""


class Kind(NamedTuple):
    """`read` returns an object's state, `same` compares two states, `write` restores one.
    `children` are the objects that it holds. `is_data`: calls may change it. `whole` is the kind to
    use if the values of a function's names are compared too. `applies`: whether an object is
    observed."""

    read: Callable[[Any], Any]
    same: Callable[[Any, Any], bool] = operator.eq
    write: Callable[[Any, Any], None] | None = None
    children: Callable[[Any], Members] = lambda value: ()
    is_data: bool = True
    whole: Any = None
    applies: Callable[[Any], bool] | None = None

    @property
    def has_state(self) -> bool:
        """Whether objects have a state of their own, or only hold others."""
        return self.read is not no_state


def _identical(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(map(operator.is_, a, b))


def _alike(a: list[Any], b: list[Any]) -> bool:
    """Compares members that are created each time they are read."""
    return len(a) == len(b) and all(
        x is y or (type(x) is type(y) and type(x) in _BY_VALUE and x == y)
        for x, y in zip(a, b, strict=True)
    )


_BY_VALUE = frozenset((int, float, str, bytes, bool, range))


# -- containers ------------------------------------------------------------------------------------


def _indexed(items: Iterable[Any]) -> Members:
    return ((f"[{at}]", item) for at, item in enumerate(items))


def _write_list(value: Any, state: list[Any]) -> None:
    list.__setitem__(value, slice(None), state)


def dict_members(value: Any) -> list[Any]:
    return [*dict.keys(value), *dict.values(value)]


def _write_dict(value: Any, state: list[Any]) -> None:
    half = len(state) // 2
    dict.clear(value)
    dict.update(value, zip(state[:half], state[half:], strict=True))


def _write_ordered(value: Any, state: list[Any]) -> None:
    collections.OrderedDict.clear(value)
    for key, item in zip(state[::2], state[1::2], strict=True):
        collections.OrderedDict.__setitem__(value, key, item)


def _dict_children(value: Any) -> Members:
    for key, item in dict.items(value):
        yield f"[{quoted(key, 40)}]" if type(key) in _BY_VALUE else "[…]", item
        if type(key) not in _BY_VALUE:
            yield "[…]", key


def _same_set(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and set(map(id, a)) == set(map(id, b))


def _write_set(value: Any, state: list[Any]) -> None:
    set.clear(value)
    set.update(value, state)


def _write_deque(value: Any, state: list[Any]) -> None:
    value.clear()
    value.extend(state)


def _write_bytes(value: Any, state: bytes) -> None:
    value[:] = (
        type(value)(state) if type(value) is bytearray else type(value)(value.typecode, state)
    )


LIST = Kind(lambda v: list(list.__iter__(v)), _identical, _write_list, _indexed)
DICT = Kind(dict_members, _identical, _write_dict, _dict_children)
ORDERED = Kind(
    lambda v: [part for pair in collections.OrderedDict.items(v) for part in pair],
    _identical,
    lambda v, state: _write_ordered(v, state),
    _dict_children,
)
SET = Kind(
    lambda v: list(set.__iter__(v)), _same_set, _write_set, lambda v: (("{…}", i) for i in v)
)
DEQUE = Kind(lambda v: list(collections.deque.__iter__(v)), _identical, _write_deque, _indexed)
BYTES = Kind(bytes, operator.eq, _write_bytes)
# Immutable, but the objects that they hold may change.
TUPLE = Kind(no_state, children=lambda v: _indexed(tuple.__iter__(v)))
FROZENSET = Kind(no_state, children=lambda v: (("{…}", item) for item in v))
PROXY = Kind(
    no_state, children=lambda v: ((f"[{quoted(key, 40)}]", item) for key, item in v.items())
)


# -- attributes ------------------------------------------------------------------------------------


# The slots of a class: positions in its `__mro__`, and names. (A slot refers to its class.)
_places: weakref.WeakKeyDictionary[type, tuple[tuple[int, str], ...]] = weakref.WeakKeyDictionary()


def _slots(kind: type) -> list[Any]:
    places = _places.get(kind)
    if places is None:
        places = _places[kind] = _slot_places(kind)
    return [vars(kind.__mro__[position])[name] for position, name in places]


def _slot_places(kind: type) -> tuple[tuple[int, str], ...]:
    return tuple(
        (position, name)
        for position, base in enumerate(kind.__mro__)
        for name, member in vars(base).items()
        if type(member) is types.MemberDescriptorType and member.__objclass__ is base
        if user_code.is_users_class(base)
    )


def _attributes(value: Any) -> dict[str, Any]:
    """All attributes of an object, including slots."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        held = {}
    found = dict(held) if type(held) is dict else {}
    for slot in _slots(type(value)):
        try:
            found[slot.__name__] = slot.__get__(value)
        except AttributeError:
            continue
    return found


def _read_attributes(value: Any) -> dict[str, Any]:
    """Attributes by name, without the results of `functools.cached_property`: reading such a
    property is not a visible change."""
    found = _attributes(value)
    for name in list(found):
        if type(getattr(type(value), name, None)) is functools.cached_property:
            del found[name]
    return found


def same_names(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return len(a) == len(b) and all(b.get(name, MISSING) is item for name, item in a.items())


def _write_attributes(value: Any, state: dict[str, Any]) -> None:
    for name in _read_attributes(value):
        if name not in state:
            object.__delattr__(value, name)
    for name, item in state.items():
        object.__setattr__(value, name, item)


def _attribute_children(value: Any) -> Members:
    for name, item in _attributes(value).items():
        yield f".{name}", item
    yield type(value).__name__, type(value)


ATTRIBUTES = Kind(_read_attributes, same_names, _write_attributes, _attribute_children)
# Members of an Enum: names with an underscore are Enum's own, and some are created on demand.
MEMBER = ATTRIBUTES._replace(
    read=lambda v: {name: x for name, x in _read_attributes(v).items() if name[0] != "_"}
)
OPAQUE = Kind(lambda value: None, is_data=False)


# -- iterators -------------------------------------------------------------------------------------


def _flat(value: Any, own: bool) -> Iterator[Any]:
    """Flattens the result of `__reduce__`. An iterator of a list holds the list (a new one when it
    is exhausted); others hold lists (`own`) that they create from the remaining items."""
    if type(value) is tuple:
        yield len(value)
        for item in value:
            yield from _flat(item, own)
    elif type(value) is list and (own or not value):
        yield len(value)
        for item in value:
            if type(item) is tuple:  # a pair of a dictionary's, which is made each time
                yield from item
            else:
                yield item
    else:
        yield value


def _read_iterator(value: Any) -> list[Any]:
    own = type(value) not in (_LIST_ITERATOR, _REVERSE_ITERATOR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # itertools', since Python 3.12
        try:
            return list(_flat(value.__reduce__(), own))
        except (TypeError, AttributeError, RecursionError):
            return []


def _read_position(value: Any) -> list[Any]:
    """What an iterator's `next` changes. One of a dictionary has its items only when it comes to
    them, so that another item under the same key is no change of the iterator."""
    if type(value) in _DICT_ITERATORS:
        return [operator.length_hint(value)]
    return _read_iterator(value)


_DICT_ITERATORS = tuple(type(iter(view)) for view in ({}, {}.values(), {}.items()))
_LIST_ITERATOR, _REVERSE_ITERATOR = type(iter([])), type(reversed([]))


def _read_generator(value: Any) -> list[Any]:
    frame = value.gi_frame
    return [] if frame is None else [frame.f_lasti, *frame.f_locals.values()]


def _members(read: Callable[[Any], list[Any]]) -> Callable[[Any], Members]:
    return lambda value: (("(…)", item) for item in read(value))


ITERATOR = Kind(_read_position, _alike, None, _members(_read_iterator))
GENERATOR = Kind(_read_generator, _alike, None, _members(_read_generator))
