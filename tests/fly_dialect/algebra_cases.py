"""Layouts for tests of the algebra."""

from fly_dialect.layouts.integers import Int
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from .layouts_by_hand import (
    extents,
)

quick = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


pair_shapes = st.tuples(extents, extents)


def tried(function, *arguments):
    """The result, and the text of a ValueError."""
    try:
        return function(*arguments), ""
    except ValueError as error:
        return None, str(error)


def to_leaves(coord):
    if isinstance(coord, tuple):
        return tuple(map(to_leaves, coord))
    return None if coord is None else Int(coord)
