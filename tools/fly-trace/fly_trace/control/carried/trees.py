"""Python trees of numbers and vectors: their leaves, and a tree with the same structure of others.

The primitives take trees: numbers, vectors, tuples, lists, dictionaries, structs and the user's
objects. Unlike `carried_values`, this neither merges values nor keeps containers from changing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fly_trace.control.carried import object_fields
from fly_trace.control.carried.carried_values import fields_of
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.conversion import convert, scalar
from fly_trace.values.functions.math_functions import where
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_values import Vector


def leaves(value: Any, what: str) -> list[Scalar | Vector]:
    """The numbers and vectors of a tree, in order. Python numbers get their default type."""
    if isinstance(value, Vector):
        return [value]
    if isinstance(value, (Scalar, bool, int, float)):
        return [scalar(value, what)]
    parts = _parts(value)
    if parts is None:
        tracing.refuse(
            f"{what} has to consist of numbers and vectors, not {describe(value)}",
            "pass a number, a vector, or a tuple, list, dictionary or object of them",
        )
    return [leaf for part in parts for leaf in leaves(part, what)]


def joined(like: Any, made: list[Any]) -> Any:
    """A tree with the structure of `like` and these leaves."""
    given = iter(made)
    return _joined(like, given)


def scalars(value: Any, what: str) -> list[Scalar]:
    """The numbers of a tree, with the elements of vectors one by one."""
    return [
        one
        for leaf in leaves(value, what)
        for one in (list(leaf) if isinstance(leaf, Vector) else [leaf])
    ]


def of_scalars(like: Any, made: list[Any]) -> Any:
    """A tree with the structure of `like` and these numbers, as `scalars` orders them."""
    given = iter(made)
    found: list[Any] = []
    for leaf in leaves(like, "the value"):
        if isinstance(leaf, Vector):
            elements = [next(given) for _ in range(leaf.numel)]
            found.append(Vector.from_elements(elements, leaf.dtype).reshape(leaf.shape))
        else:
            found.append(next(given))
    return joined(like, found)


def select(condition: Any, a: Any, b: Any) -> Any:
    """`a` if the condition is true, else `b`, leaf by leaf. Both have one structure."""
    if isinstance(condition, bool):
        return a if condition else b
    pairs = zip(scalars(a, "the value"), scalars(b, "the value"), strict=True)
    return of_scalars(a, [where(condition, x, y) for x, y in pairs])


def _parts(value: Any) -> list[Any] | None:
    if isinstance(value, (tuple, list)):
        return [*value]
    if isinstance(value, dict):
        return [*value.values()]
    if (fields := fields_of(value)) is not None:
        return [getattr(value, name) for name in fields]
    if object_fields.is_object(value):
        return [*object_fields.read(value).values()]
    return None


def _joined(like: Any, given: Iterator[Any]) -> Any:
    if isinstance(like, (Scalar, Vector, bool, int, float)):
        return next(given)
    if isinstance(like, (tuple, list)):
        items = [_joined(item, given) for item in like]
        if isinstance(like, list):
            return items
        return type(like)(*items) if hasattr(like, "_fields") else tuple(items)
    if isinstance(like, dict):
        return {key: _joined(item, given) for key, item in like.items()}
    if (fields := fields_of(like)) is not None:
        return like.with_fields({name: _joined(getattr(like, name), given) for name in fields})
    held = {name: _joined(one, given) for name, one in object_fields.read(like).items()}
    return object_fields.rebuilt(like, held)


def converted(value: Any, like: Any, what: str) -> Any:
    """A tree with the structure of `like`, whose numbers are converted to the types there. A single
    Python number stands for all of them."""
    wanted = scalars(like, what)
    given = [value] * len(wanted) if isinstance(value, (bool, int, float)) else scalars(value, what)
    if len(given) != len(wanted):
        tracing.refuse(f"{what} has {len(given)} numbers, not {len(wanted)}")
    return of_scalars(
        like, [convert(one, other.dtype) for one, other in zip(given, wanted, strict=True)]
    )
