"""What a host function makes, besides tensors: tuples, layouts and views, whose integers are
expressions of its program."""

from __future__ import annotations

from typing import Any, TypeAlias

from fly_common.record import record

from fly_opt.passes.host.tensors import TensorValue

STATIC = object()  # a value that its type says wholly: an atom, a tiled copy, a swizzle
# An integer tuple of the program: the index of an expression, or a tuple of integer tuples.
Tree: TypeAlias = "int | tuple[Tree, ...]"


@record
class MadeLayout:
    """A layout that the host function builds."""

    shape: Tree
    stride: Tree

    @property
    def parts(self) -> tuple[Tree, Tree]:
        """Returns the parts in the order of `boundary.parts`."""
        return self.shape, self.stride


@record
class MadeComposed:
    """A composed layout that the host function builds; `inner` is STATIC for a swizzle."""

    inner: Any
    offset: Tree
    outer: Any

    @property
    def parts(self) -> tuple[Any, Tree, Any]:
        """Returns the parts in the order of `boundary.parts`."""
        return self.outer, self.offset, self.inner


@record
class View:
    """A tensor seen through a layout that the host function makes; without one, where the tensor
    begins."""

    of: TensorValue
    layout: MadeLayout | MadeComposed | None = None


@record
class MadeCoordinates:
    """A tensor of coordinates that the host function makes."""

    base: Tree
    layout: MadeLayout | MadeComposed

    @property
    def parts(self) -> tuple[Any, Any]:
        """Returns the parts in the order of `boundary.parts`."""
        return self.base, self.layout


def is_tree(held: Any) -> bool:
    """Returns whether a value is a Tree."""
    if isinstance(held, tuple):
        return all(map(is_tree, held))
    return isinstance(held, int)
