"""Views of matrices."""

from __future__ import annotations

from typing import Any

import fly.expr as fx


def transposed(matrix: Any) -> Any:
    """A matrix with rows and columns exchanged."""
    return fx.make_view(fx.get_iter(matrix), fx.select(fx.get_layout(matrix), [1, 0]))


def coordinates(shape: Any) -> Any:
    """The coordinates of a matrix's elements, in its place."""
    return fx.make_view((0, 0), fx.make_identity_layout(shape))
