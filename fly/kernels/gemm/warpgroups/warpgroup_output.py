"""How warp groups store tiles of C: the epilogue, shared memory, TMA."""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly.expr as fx
from fly.kernels.gemm.warpgroups.warpgroup_operands import element
from fly.kernels.gemm.warpgroups.warpgroup_plans import ALIGNMENT, ROW, ROWS, THREADS


def chunks(plan):
    """The layout of what of C is stored together."""
    return fx.nvvm.tile_layout(EVERY[plan.out], (ROWS, plan.chunk), 1, ROW)


def products(plan, columns, above=1, beside=1):
    """The multiplication of warp groups above one another, or beside one another."""
    atom = fx.make_mma_atom(fx.nvvm.WGMMA(columns, EVERY[plan.element]))
    steps = (int(above > 1), int(beside > 1), 0)
    return fx.make_tiled_mma(atom, fx.make_layout((above, beside, 1), steps))


class Output:
    """A warp group's part in storing a tile of C."""

    def __init__(self, C, rows, bias, addend, factors, extents, plan, epilogue):
        """C: what TMA stores to. rows: C as a tensor. extents: the end of C's rows and columns."""
        self.C, self.rows, self.bias, self.addend = C, rows, bias, addend
        self.factors, self.extents = factors, extents
        self.plan, self.epilogue = plan, epilogue

    def store(self, sums, buffers, consumer, place):
        """Applies the epilogue to what a warp group has of a tile, and stores it through shared
        memory, 64 rows and a few columns at a time, in two buffers in turn."""
        plan, thread = self.plan, fx.thread_idx.x % THREADS
        row, column = place.row, place.column
        out = EVERY[plan.out]
        product = products(plan, plan.chunk)
        form = fx.nvvm.accumulators(product)
        atom = fx.make_copy_atom(
            fx.nvvm.StoreMatrix(4) if out.bits == 16 else fx.UniversalCopy64b(), out
        )
        write = fx.make_tiled_copy_C(atom, product).get_slice(thread)
        if plan.beside > 1:
            column += consumer * plan.width
        else:
            row += consumer * ROWS
        # TMA stores rows up to the end of C, which may be behind that of a group.
        by_tma = plan.tma_store and (not plan.grouped or row + ROWS <= place.end)
        for piece in fx.range_constexpr(plan.pieces):
            buffer, first = buffers[consumer * 2 + piece % 2], column + piece * plan.chunk
            some = fx.make_view(fx.get_iter(sums) + piece * int(fx.size(form)), form)
            held = fx.make_fragment_like(some, out)
            held.store(self.results(some, product, place.of_a, row, first))
            if plan.tma_store and thread == 0:
                # The other buffer may still be read. If a tile has an odd number of pieces, the
                # last one of the tile before was stored from this buffer.
                fx.nvvm.tma_wait(0 if piece == 0 and plan.pieces % 2 else 1)
            fx.nvvm.barrier_sync(consumer + 1, THREADS)
            fx.copy(atom, write.retile(held), write.partition_D(buffer))
            if plan.tma_store:
                fx.nvvm.fence_async()
            fx.nvvm.barrier_sync(consumer + 1, THREADS)
            if by_tma:
                if thread == 0:
                    fx.nvvm.tma_store(buffer, self.C, (place.part, row, first))
            else:
                self.store_vectors(buffer, place.part, row, first)
            if plan.tma_store and thread == 0:
                fx.nvvm.tma_commit()

    def results(self, sums, product, batch, row, column):
        """The results of a thread's sums."""
        epilogue = self.epilogue
        places = fx.make_view((row, column), fx.make_identity_layout((ROWS, self.plan.chunk)))
        places = product.get_slice(fx.thread_idx.x % THREADS).partition_C(places)
        added = [None, None]
        for kind, is_used in enumerate((epilogue.bias, epilogue.addend)):
            if is_used:
                source = (self.bias, self.addend)[kind]
                loaded = fx.make_fragment_like(sums, source.dtype)
                for i in fx.range_constexpr(fx.size(loaded)):
                    place = places[i].unpack()
                    y, x = [
                        fx.min(at, most - 1) for at, most in zip(place, self.extents, strict=True)
                    ]
                    loaded[i] = source[batch, y, x] if kind else source[x]
                added[kind] = loaded.load()
        return epilogue.apply(sums.load(), *added, *self.factors)

    def store_vectors(self, buffer, part, row, column):
        """Stores what is in a buffer as far as it is in C: by vectors, or if rows of C are not
        aligned, by elements."""
        plan, dtype = self.plan, EVERY[self.plan.out]
        unit = ALIGNMENT // dtype.bytes if plan.tma_store else 1
        atom = fx.make_copy_atom(fx.UniversalCopy(unit * dtype.bits), dtype)
        across = plan.chunk // unit
        line, place = divmod(fx.thread_idx.x % THREADS, across)
        x = column + place * unit
        for y in fx.range_constexpr(0, ROWS, THREADS // across):
            source = fx.get_iter(buffer) + ((y + line) * plan.chunk + place * unit)
            if row + y + line < self.extents[0] and x < self.extents[1]:
                target = element(self.rows, part, row + y + line, x)
                form = fx.make_layout(unit, 1)
                fx.copy(atom, fx.make_view(source, form), fx.make_view(target, form))
