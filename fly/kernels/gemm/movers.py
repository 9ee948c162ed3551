"""How tiles of an operand are moved: from memory to registers, and to LDS."""

from __future__ import annotations

import math
from typing import Any

import fly.expr as fx
from fly.kernels.gemm.plans import NEAR, WIDEST, Access


class Mover:
    """A thread's part in moving tiles of an operand: from memory to registers, and to LDS.

    It moves blocks of `run` elements along the operand's access, and `deep` of them beside each
    other. Where these lie along K, it transposes the block in registers. `places` are the row and
    the column in a tile of the first element of each access.
    """

    def __init__(self, dtype: Any, access: Access, lds: Any):
        rows, columns = [fx.size(lds.shape[mode]) for mode in range(2)]
        threads = math.prod(fx.known_block_size())
        count = rows * columns // threads
        run = min(WIDEST * 8 // max(dtype.bits, lds.dtype.bits), count)
        deep = 1 if access.along_k else min(count // run, WIDEST * 8 // lds.dtype.bits)
        self.block, self.vector = (deep, run), min(access.vector, run)
        copy = fx.rocdl.BufferCopy if access.buffer else fx.UniversalCopy
        load = fx.make_copy_atom(copy(self.vector * dtype.bits), dtype)
        stored = run if access.along_k else deep
        store = fx.make_copy_atom(fx.UniversalCopy(stored * lds.dtype.bits), lds.dtype)
        if access.along_k:
            across = columns // run
            order = fx.make_ordered_layout((threads // across, across), (1, 0))
            blocks = [fx.make_layout((1, run), (1, 1))] * 2
        else:
            across = rows // run
            order = fx.make_ordered_layout((across, threads // across), (0, 1))
            blocks = [fx.make_ordered_layout((run, deep), modes) for modes in ((0, 1), (1, 0))]
        loads, stores = [
            fx.make_tiled_copy_tv(atom, order, block).get_slice(fx.thread_idx.x)
            for atom, block in zip((load, store), blocks, strict=True)
        ]
        own = loads.partition_S(fx.make_view((0, 0), fx.make_identity_layout((rows, columns))))
        self.places = own[(0, None), None, None]
        self.target = stores.partition_D(lds)
        self.loaded = fx.make_fragment_like(own, dtype)
        self.stored = fx.make_fragment_like(self.target[None, None, None, 0])
        self.load_atom, self.store_atom = load, store
        # Distances are added by the instruction: a tile's to the address, and an element's.
        self.buffer = access.buffer
        self.distance = fx.Int32 if access.buffer else fx.Int64

    def source(self, start: Any) -> Any:
        """The address of an element, from which `load` counts."""
        return fx.rocdl.make_buffer_ptr(start, NEAR) if self.buffer else start

    def load(self, source: Any, first: Any, offsets: Any, inside: Any) -> None:
        """Starts to load a tile, by the offset of each access from element `first` of the source.
        Those that are not `inside` give 0; None stands for all."""
        if not self.buffer:
            if inside is not None:
                self.loaded.fill(0)
            fx.gather(self.load_atom, source + first, offsets, self.loaded, pred=inside)
            return
        if inside is not None:
            # What is behind the buffer is 0. As an unsigned number, this is its end.
            beyond = -NEAR * 8 // self.loaded.dtype.bits
            places, offsets = offsets, fx.make_fragment_like(offsets)
            for i in fx.range_constexpr(fx.size(places)):
                offsets[i] = fx.where(inside[i], places[i], beyond)
        atom = self.load_atom.set_value("soffset", fx.Int32(first))
        fx.gather(atom, source, offsets, self.loaded)

    def store(self, stage: Any) -> None:
        """Stores the loaded tile."""
        values = self.loaded.load().to(self.stored.dtype)
        deep, run = self.block
        if deep > 1:
            blocks = range(0, values.numel, deep * run)
            order = [one + j * run + i for one in blocks for i in range(run) for j in range(deep)]
            values = values.shuffle(values, order)
        self.stored.store(values)
        fx.copy(self.store_atom, self.stored, self.target[None, None, None, stage])
