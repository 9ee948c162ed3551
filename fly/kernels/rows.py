"""Rows of a matrix, each taken by a block of threads.

A block takes a row in tiles. Of each tile, a thread holds `vectors` vectors of adjacent elements in
registers: the first one of thread t is vector t of the tile, so that neighbouring threads access
neighbouring memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from fly_common.errors import UsageError

import fly.expr as fx

WIDEST = 16  # bytes of an access
LANES = 64  # of the widest wave: blocks are whole waves on every target
ITEMS, MOST_ITEMS = 8, 32  # of a thread, usually and at most: they are in registers
MOST_THREADS = 1024

# The annotation of a matrix; columns are counted in 32 bits, which launches check.
Matrix = fx.Tensor[fx.Float, "M", fx.sym_int32("N")]


class Plan(NamedTuple):
    """How a block takes a row: tiles of `threads` · `vectors` vectors of `vector` elements.

    fits: the row is not longer than one tile. whole: it is as long as one tile.
    """

    threads: int
    vector: int
    vectors: int
    fits: bool
    whole: bool

    @property
    def tile(self) -> int:
        """The elements of a tile."""
        return self.threads * self.vector * self.vectors


def plan(*matrices: Any) -> Plan:
    """The plan for the rows of matrices with the same number of columns; among them may be vectors
    that are as long as a row.

    An access takes as many elements as each row of each array is aligned to. A thread gets about 8
    elements, more if rows are long, and the tile is as long as the row if that is possible.
    """
    return _plan(matrices[0].shape[-1], min(map(_aligned, matrices)))


@cache
def _plan(columns: int, aligned: int) -> Plan:
    """See `plan`; `aligned` is the number of elements that addresses admit. Equal plans are one
    object, which calls of `@fly.jit` functions find fastest."""
    vector = math.gcd(columns, aligned)
    count = max(1, -(-columns // vector))
    least = min(ITEMS // vector, _power(-(-count // LANES)))  # a short row needs fewer
    choices = [
        (threads, vectors)
        for vectors in _powers(max(1, least), MOST_ITEMS // vector)
        if (threads := _waves(-(-count // vectors))) <= MOST_THREADS
    ]
    if not choices:
        return Plan(MOST_THREADS, vector, MOST_ITEMS // vector, False, False)
    exact = [choice for choice in choices if math.prod(choice) == count]
    threads, vectors = (exact or choices)[0]
    return Plan(threads, vector, vectors, True, bool(exact))


def _power(number: int) -> int:
    """The least power of two that is not less than a number."""
    return 1 << (number - 1).bit_length()


def _powers(least: int, most: int) -> list[int]:
    """The powers of two from one to another."""
    return [1 << i for i in range(least.bit_length() - 1, most.bit_length())]


def _waves(threads: int) -> int:
    return -(-threads // LANES) * LANES


def _aligned(matrix: Any) -> int:
    """The elements that can be accessed at a time from the start of any row of a matrix."""
    is_torch = hasattr(matrix, "data_ptr")
    address = matrix.data_ptr() if is_torch else matrix.ctypes.data
    nbytes = matrix.element_size() if is_torch else matrix.itemsize
    rows = [step * nbytes for step in _steps(matrix)[:-1]]
    return max(1, math.gcd(WIDEST, address, *rows) // nbytes)


def along(dim: int, function: Callable[..., Any], *arrays: Any) -> Any:
    """Calls a function of matrices, whose rows are slices of `arrays` along a dimension, and gives
    the matrix that it returns the arrays' shape, contiguous. Copies what can't be seen as such a
    matrix.

    UsageError for arrays of no dimension or of different shapes, and for other dimensions.
    """
    shape = tuple(arrays[0].shape)
    if not -len(shape) <= dim < len(shape):
        raise UsageError(f"dim is {dim}, and the array has {len(shape)} dimensions")
    if any(tuple(array.shape) != shape for array in arrays):
        shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
        raise UsageError(f"the arrays have different shapes: {shapes}")
    turned = [array.swapaxes(dim, -1) for array in arrays]
    made = function(*map(as_matrix, turned))
    return contiguous(made.reshape(turned[0].shape).swapaxes(dim, -1))


def as_matrix(x: Any) -> Any:
    """An array of one or more dimensions as a matrix, whose rows are along the last dimension and
    have adjacent elements."""
    x = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    return x if x.shape[1] < 2 or _steps(x)[-1] == 1 else contiguous(x)


def contiguous(x: Any) -> Any:
    """An array with its elements in C order, copied if it isn't so."""
    if hasattr(x, "contiguous"):  # torch's
        return x.contiguous()
    return x if x.flags.c_contiguous else x.copy("C")


def _steps(x: Any) -> list[int]:
    """An array's strides in elements."""
    if hasattr(x, "stride"):  # torch's
        return list(x.stride())
    return [step // x.itemsize for step in x.strides]


class Row:
    """In a kernel, the block's tile of row `fx.block_idx.x`, from element `first` on."""

    def __init__(self, plan: Plan, columns: Any, first: Any = 0):
        self.plan, self.columns, self.first = plan, columns, first

    def at(self, first: Any) -> Row:
        """The tile from element `first` on."""
        return Row(self.plan, self.columns, first)

    def load(self, tensor: Any, default: Any = 0) -> Any:
        """Loads the thread's elements, from a matrix or from a vector that is as long as a row.
        Returns an fx.Vector of `wide_type`; elements beyond the row are `default`."""
        held = self._registers(tensor.dtype)
        if not self.plan.whole:
            held.fill(default)
        self._copy(self._part(tensor), held)
        return held.load().to(wide_type(tensor.dtype))

    def store(self, tensor: Any, values: Any) -> None:
        """Stores the thread's elements, to a matrix or to a vector that is as long as a row."""
        held = self._registers(tensor.dtype)
        held.store(values.to(tensor.dtype))
        self._copy(held, self._part(tensor))

    def _registers(self, dtype: Any) -> Any:
        return fx.make_rmem_tensor((self.plan.vector, self.plan.vectors), dtype)

    def _part(self, tensor: Any) -> Any:
        """The thread's elements in memory: as vectors, one after the other."""
        plan = self.plan
        line = tensor if fx.rank(tensor) == 1 else tensor[fx.block_idx.x, None]
        start = fx.get_iter(line) + (self.first + fx.thread_idx.x * plan.vector)
        steps = (1, plan.threads * plan.vector)
        return fx.make_view(start, fx.make_layout((plan.vector, plan.vectors), steps))

    def _copy(self, source: Any, target: Any) -> None:
        dtype = source.dtype
        atom = fx.make_copy_atom(fx.UniversalCopy(self.plan.vector * dtype.bits), dtype)
        fx.copy(atom, source, target, pred=None if self.plan.whole else self._inside())

    def _inside(self) -> Any:
        """Which of the thread's vectors lie in the row, whose length is a multiple of theirs."""
        plan = self.plan
        inside = fx.make_rmem_tensor(plan.vectors, fx.Boolean)
        for i in fx.range_constexpr(plan.vectors):
            place = self.first + (i * plan.threads + fx.thread_idx.x) * plan.vector
            inside[i] = place < self.columns
        return inside


def wide_type(dtype: Any) -> Any:
    """The type that elements are computed in."""
    return fx.Float64 if dtype is fx.Float64 else fx.Float32
