"""The rows of caches of keys and values, and what a lane has of them."""

from __future__ import annotations

from typing import Any

import fly.expr as fx
from fly.kernels.attention.vectors import WIDTH, load_stored


class Stored:
    """The keys, or values, of a head in a cache."""

    def __init__(self, cache: Any, head: Any, d: int):
        self.cache, self.d = cache, d
        self.first = fx.get_iter(cache) + fx.Int64(head) * cache.stride[2]

    def place(self, page: Any, offset: Any) -> Any:
        """Where a row of a page begins, counted in elements."""
        return fx.Int64(page) * self.cache.stride[0] + self.place_in_order(offset)

    def place_in_order(self, index: Any) -> Any:
        """As `place`, of a row counted from the cache's first, where the rows of all pages are at
        equal distances."""
        return fx.Int64(index) * self.cache.stride[1]

    def row(self, place: Any) -> Any:
        """A row: a vector."""
        return fx.make_view(self.first + place, fx.make_layout(self.d, 1))


def elements(vectors: list[Any]) -> list[Any]:
    """The elements of vectors, one after the other."""
    return [vector[i] for vector in vectors for i in range(vector.numel)]


def load_run(row: Any, first: Any, count: int) -> list[Any]:
    """So many adjacent elements of a row: 2 to 16."""
    access = min(count, WIDTH)
    held = fx.make_rmem_tensor((access, count // access), row.dtype)
    part = fx.make_view(
        fx.get_iter(row) + first, fx.make_layout((access, count // access), (1, access))
    )
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(access * row.dtype.bits), row.dtype), part, held)
    return elements([held.load()])


def chunks(row: Any, group: Any, groups: int, d: int) -> list[Any]:
    """A lane's elements of a key or a query: every vector of eight that is its group's."""
    parts = range(0, d // WIDTH, groups)
    return elements([load_stored(row, (part + group) * WIDTH) for part in parts])


def fragment_of(part: Any, values: list[Any]) -> Any:
    """An operand of a matrix instruction, of a lane's values; `part` is a view of its extents."""
    fragment = fx.make_fragment_like(part, values[0].dtype)
    for i, value in enumerate(values):
        fragment[i] = value
    return fragment
