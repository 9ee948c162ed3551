"""What becomes of the sums of a matrix product: scaled, added to, activated, converted, stored."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fly_trace.values.dtypes import EVERY

import fly.expr as fx
from fly.kernels.gemm.plans import WIDEST, Access

ACTIVATIONS = ("relu", "gelu", "silu")


class Epilogue(NamedTuple):
    """activation(alpha · sum + beta · addend + bias), converted to the type `out`: "f32", as in
    signatures. What is not used is left out of the code.

    vector: the elements of rows of C, of the addend and of the bias that can be accessed at a time.
    """

    out: str
    vector: int
    bias: bool = False
    addend: bool = False
    scaled: bool = False
    activation: str = ""

    def limited(self, access: Access) -> Epilogue:
        """This epilogue, with an array that is accessed so."""
        return self._replace(vector=math.gcd(self.vector, access.vector))

    def apply(self, sums: Any, bias: Any, addend: Any, alpha: Any, beta: Any) -> Any:
        """The results of a vector of sums."""
        out = EVERY[self.out]
        if self.bias or self.addend or self.scaled or self.activation:
            wide = fx.Float64 if sums.dtype is fx.Float64 else fx.Float32
            sums = sums.to(wide)
            if self.scaled:
                sums = sums * alpha.to(wide)
            if self.addend:
                sums = sums + addend.to(wide) * beta.to(wide)
            if self.bias:
                sums = sums + bias.to(wide)
            sums = activated(sums, self.activation)
        return sums.to(out)


def activated(x: Any, activation: str) -> Any:
    """relu, gelu (x · Φ(x), by erf) or silu (x / (1 + exp(-x))) of a vector."""
    if activation == "relu":
        return fx.maximum(x, 0.0)
    if activation == "gelu":
        return x * (fx.erf(x * math.sqrt(0.5)) + 1.0) * 0.5
    if activation == "silu":
        return x / (fx.exp(-x) + 1.0)
    return x


class Rows(NamedTuple):
    """Rows of a matrix: the address of the first one's element, and the distance of rows, whose
    elements are adjacent."""

    start: Any
    step: Any

    @classmethod
    def of(cls, X: Any, batch: Any, row: Any, column: Any) -> Rows:
        """The part of matrix `batch` of X from an element on."""
        first = fx.Int64(batch) * X.stride[0] + fx.Int64(row) * X.stride[1] + fx.Int64(column)
        return cls(fx.get_iter(X) + first, X.stride[1])


class Output:
    """A thread's part in storing a tile of C: vectors of elements of a row."""

    def __init__(self, epilogue: Epilogue, product: Any, tile: tuple[int, int], extents: Any):
        """`tile` is the rows and columns of a tile, `extents` how many of both there are in C from
        the tile's first element on."""
        self.epilogue = epilogue
        self.extents = [
            fx.Int32(fx.min(extent, most)) for extent, most in zip(extents, tile, strict=True)
        ]
        vector = math.gcd(epilogue.vector, _run(product.mma_atom))
        self.vector = min(vector, WIDEST * 8 // EVERY[epilogue.out].bits)
        rows, columns = tile
        self.copy = fx.make_tiled_copy_C(self._atom(epilogue.out), product)
        self.copy = self.copy.get_slice(fx.thread_idx.x)
        places = fx.make_view((0, 0), fx.make_identity_layout((columns, rows)))
        self.places = self.copy.partition_D(places)[(0, None), None, None]

    def _atom(self, dtype: Any) -> Any:
        dtype = EVERY[dtype]
        return fx.make_copy_atom(fx.UniversalCopy(self.vector * dtype.bits), dtype)

    def store(
        self, c: Any, out: Rows, bias: Any, addend: Rows | None, alpha: Any, beta: Any
    ) -> None:
        """Stores the thread's part `c` of a tile of Cᵀ. `bias` is the address of the first column's
        element."""
        epilogue, sums = self.epilogue, self.copy.retile(c)
        for j in fx.range_constexpr(fx.size(self.places.shape[2])):
            places, held = self.places[None, None, j], sums[None, None, j]
            inside = fx.make_fragment_like(places, fx.Boolean)
            for i in fx.range_constexpr(fx.size(inside)):
                column, row = places[i].unpack()
                inside[i] = (row < self.extents[0]) & (column < self.extents[1])
            own_bias = own_addend = None
            if epilogue.bias:
                own_bias = self._load(bias, 0, places, held, inside)
            if epilogue.addend:
                own_addend = self._load(*addend, places, held, inside)
            values = epilogue.apply(held.load(), own_bias, own_addend, alpha, beta)
            made = fx.make_fragment_like(held, out.start.dtype)
            made.store(values)
            start, offsets = _offsets(out.start, places, out.step)
            fx.scatter(self._atom(epilogue.out), made, start, offsets, pred=inside)

    def _load(self, start: Any, step: Any, places: Any, like: Any, inside: Any) -> Any:
        loaded = fx.make_fragment_like(like, start.dtype)
        loaded.fill(0)
        start, offsets = _offsets(start, places, step)
        fx.gather(self._atom(start.dtype.name), start, offsets, loaded, pred=inside)
        return loaded.load()


def _offsets(start: Any, places: Any, step: Any) -> tuple[Any, Any]:
    """The address of the first access, and the distances of all from it, which LLVM finds to be
    constants for one row."""
    offsets = fx.make_fragment_like(places, fx.Int64)
    first_column, first_row = places[0].unpack()
    for i in fx.range_constexpr(fx.size(offsets)):
        column, row = places[i].unpack()
        offsets[i] = fx.Int64(row - first_row) * step + fx.Int64(column - first_column)
    return start + (fx.Int64(first_row) * step + fx.Int64(first_column)), offsets


def _run(atom: Any) -> int:
    """How many adjacent elements of a column of C a thread of an instruction holds."""
    layout, run = atom.layout_C_tv, 1
    while run < fx.size(layout[1]) and layout(0, run) == run:
        run += 1
    return run
