"""Tensors of a program, as the host function's values: parameters, what it makes, and variables."""

from __future__ import annotations

from typing import Any

from fly_common.record import record
from fly_dialect.layouts.layout import Int
from fly_dialect.types import MemRefSpec, plain_layout
from fly_host.graph import Graph


@record
class TensorValue:
    """A tensor by its name, and its type. `shape` and `strides` are expressions where they are
    known by them; a tensor's own extents and strides are read else."""

    name: str
    spec: MemRefSpec
    rank: int
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    @property
    def leaves(self) -> tuple[tuple[Int, ...], tuple[Int, ...]]:
        """What the type says of extents and strides; a tensor of rank 0 has the layout 1:0."""
        layout = plain_layout(self.spec)
        return modes(layout.shape), modes(layout.stride)

    def expression(self, graph: Graph, what: str, dimension: int) -> int:
        """The expression of an "extent" or "stride"."""
        leaf = self.leaves[what == "stride"][dimension]
        if leaf.value is not None:
            return graph.const(leaf.value)
        known = self.shape if what == "extent" else self.strides
        return graph.make(what, self.name, dimension) if known is None else known[dimension]

    def tree(self, graph: Graph, what: str) -> Any:
        """All of them, in the form of the type: one of rank 1 is itself."""
        count = len(self.leaves[0])
        made = tuple(self.expression(graph, what, dimension) for dimension in range(count))
        return made if isinstance(plain_layout(self.spec).shape, tuple) else made[0]


@record
class Layout:
    """The layout of a tensor."""

    of: TensorValue


def modes(tree: Any) -> tuple[Int, ...]:
    """The leaves of a flat integer tuple; of rank 1 it is a leaf itself."""
    return tree if isinstance(tree, tuple) else (tree,)
