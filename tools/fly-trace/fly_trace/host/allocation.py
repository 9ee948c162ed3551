"""Tensors that the host function allocates, and how they lie in memory.

    T = fx.empty((n, c), fx.Float32)                                        C-contiguous
    T = fx.empty((n, c), fx.Float32, fx.Allocation().reorder(1, 0))         column after column
    T = fx.empty((n, c), fx.Float32, BLOCKED, view="allocation")            the axes of the memory

The steps of an allocation are those of `fly_host.domains.domain`. What is known of the strides here
is part of the tensor's type; the rest is computed when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fly_common.errors import InputError
from fly_common.record import field, record
from fly_host.domains import domain
from fly_host.domains.dynamic_sizes import placed
from fly_host.domains.inference import Inferred, infer
from fly_host.graph import Graph

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.host import made_tensors
from fly_trace.host.made_tensors import Size
from fly_trace.memory.tensors import Tensor
from fly_trace.values.dtypes import DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector import vectors

__all__ = ["Allocation", "empty", "empty_like"]

VIEWS = ("logical", "allocation")


@record
class Allocation:
    """`fx.Allocation()`: a chain of steps from a tensor's shape to the axes of its memory. Factors
    and extents may be integers of the host function."""

    chain: domain.Allocation = field(default_factory=domain.Allocation)
    sizes: tuple[Scalar, ...] = ()  # what `Dynamic(0)`, `Dynamic(1)`, … of the chain stand for

    def split(self, axis: int, factor: Any, inner: bool = True, padded: bool = False) -> Allocation:
        """An axis as two: the outer part, and the inner one of `factor` elements (`inner=False`:
        the outer one of `factor`). `padded` allows factors that don't divide the extent."""
        given, sizes = self._size(factor, "a factor")
        return self._with(lambda chain: chain.split(axis, given, inner, padded), sizes)

    def merge(self, axis: int) -> Allocation:
        """An axis and the next one as one."""
        return self._with(lambda chain: chain.merge(axis), self.sizes)

    def reorder(self, *permutation: int) -> Allocation:
        """The axis at position i is the one that was at permutation[i]."""
        return self._with(lambda chain: chain.reorder(*permutation), self.sizes)

    def broadcast(self, axis: int) -> Allocation:
        """A new axis of extent 1 at this position."""
        return self._with(lambda chain: chain.broadcast(axis), self.sizes)

    def expand(self, axis: int, extent: Any) -> Allocation:
        """An axis of extent 1 shown with another extent: all share one element."""
        given, sizes = self._size(extent, "an extent")
        return self._with(lambda chain: chain.expand(axis, given), sizes)

    def _size(self, value: Any, what: str) -> tuple[domain.Size, tuple[Scalar, ...]]:
        found = made_tensors.size(value, what)
        if isinstance(found, Scalar):
            return domain.Dynamic(len(self.sizes)), (*self.sizes, found)
        return found, self.sizes

    def _with(self, step: Any, sizes: tuple[Scalar, ...]) -> Allocation:
        try:
            return Allocation(step(self.chain), sizes)
        except InputError as error:
            tracing.refuse(error.message, error.hint)

    def __str__(self) -> str:
        return str(self.chain)


def empty(
    shape: Any, dtype: DType, allocation: Allocation | None = None, view: str = "logical"
) -> Tensor:
    """A tensor that the program allocates, not initialised. `shape` is one integer or several;
    `allocation` says how it lies in memory, C-contiguous if left out. `view` is "logical", the
    tensor of that shape, or "allocation", the tensor of its memory's axes."""
    extents = made_tensors.sizes(shape, "an extent of fx.empty")
    return _allocated(extents, dtype, allocation, view, "fx.empty")


def empty_like(tensor: Any, dtype: DType | None = None) -> Any:
    """A C-contiguous tensor of another's shape and element type, which the program allocates. In a
    kernel, a vector like another one."""
    if not isinstance(tensor, Tensor):
        return vectors.empty_like(tensor, dtype)
    if not tensor.is_array:
        tracing.refuse(f"fx.empty_like takes a tensor, not {describe(tensor)}")
    extents = made_tensors.sizes(tensor.shape, "an extent")
    return _allocated(extents, dtype or tensor.dtype, None, "logical", "fx.empty_like")


def _allocated(
    extents: tuple[Size, ...], dtype: Any, allocation: Any, view: str, what: str
) -> Tensor:
    from fly_dialect import dialect

    builder = made_tensors.host_builder(
        what, "a kernel has fx.shared_array and fx.make_rmem_tensor"
    )
    if not isinstance(dtype, DType):
        tracing.refuse(f"{what} takes an element type, not {describe(dtype)}")
    if dtype.is_packed:
        tracing.refuse(f"{what}: elements of {dtype.name} are no whole bytes", "allocate fx.Uint8")
    if not dtype.has_arrays:
        tracing.refuse(f"{what}: there are no arrays of {dtype.name}", "allocate fx.Int64")
    allocation = Allocation() if allocation is None else allocation
    if not isinstance(allocation, Allocation):
        tracing.refuse(f"{what} takes an fx.Allocation, not {describe(allocation)}")
    if view not in VIEWS:
        tracing.refuse(f"{what}: view is {' or '.join(map(repr, VIEWS))}, not {view!r}")
    shown, steps = _known(extents, allocation, view, what)
    name = made_tensors.assigned_name("tensor")
    spec = made_tensors.spec_of(dtype, shown, steps)
    entries, operands = made_tensors.split(builder, extents)
    operands += [made_tensors.ssa(builder, size) for size in allocation.sizes]
    attributes = {
        "dtype": builder.string(dtype.name),
        "shape": builder.array(entries),
        "allocation": builder.string(str(allocation)),
        "view": builder.string(view),
        "name": builder.string(name),
    }
    made = builder.op("fly.empty", [dialect.type_of(spec)], operands, attributes)
    return made_tensors.tensor(
        spec, made.results[0], dtype, name, shown, is_contiguous=not allocation.chain.steps
    )


def _known(
    extents: Sequence[Size], allocation: Allocation, view: str, what: str
) -> tuple[list[Size | None], list[Size | None]]:
    """Extents and strides of the tensor as far as they are known here; None where they aren't. An
    extent that is one of the shape's is that one."""
    graph = Graph()
    leaves: dict[Any, int] = {}
    given: dict[int, Scalar] = {}

    def leaf(value: Size) -> int:
        if not isinstance(value, Scalar):
            return graph.const(value)
        key = value.value
        if key not in leaves:
            leaves[key] = graph.extent("shape", len(leaves))
            given[leaves[key]] = value
        return leaves[key]

    shape = [leaf(one) for one in extents]
    sizes = [leaf(one) for one in allocation.sizes]
    inferred = _inferred(graph, shape, allocation.chain, sizes, what)
    if view == "allocation":
        axes, steps = inferred.axes, inferred.axis_strides
    else:
        axes, steps = inferred.shape, inferred.strides
        if steps is None:
            tracing.refuse(
                f"{what}: {inferred.reason}", 'take the tensor of its memory: view="allocation"'
            )
    return [given.get(at, graph.constant(at)) for at in axes], [graph.constant(at) for at in steps]


def _inferred(
    graph: Graph, shape: list[int], chain: domain.Allocation, sizes: list[int], what: str
) -> Inferred:
    try:
        return infer(graph, shape, placed(chain, sizes))
    except InputError as error:
        tracing.refuse(f"{what}: {error.message}", error.hint)
