"""Rows by index: gather copies row index[r] of a table to row r, scatter row r to row index[r].

A tile is four rows of 64 elements. Each thread moves four contiguous elements of a row at a time;
their offset in the table is the row's index times the row's length plus the column.
"""

import fly
import fly.expr as fx

ROWS, COLUMNS = 4, 64
VALUES = 4  # elements that a thread moves at a time


def threads():
    return fx.make_tiled_copy_tv(
        fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32),
        fx.make_layout((ROWS, COLUMNS // VALUES), (COLUMNS // VALUES, 1)),
        fx.make_layout((1, VALUES), (1, 1)),
    )


def offsets(index, rows, columns, own):
    """Returns the table offset of each group of values of this thread: (groups, tiles, tiles)."""
    i, j = fx.block_idx.x, fx.block_idx.y
    # The row index and the column of each element, as tensors of the elements' shape.
    of_row = fx.make_view(fx.get_iter(index), fx.make_layout((rows, columns), (1, 0)))
    of_column = fx.make_view(0, fx.make_layout((rows, columns), (0, 1)))
    tiles = [fx.flat_divide(t, (ROWS, COLUMNS))[None, None, i, j] for t in (of_row, of_column)]
    # The first value of each group gives the group's offset.
    mine, column = [own.partition_S(tile)[(0, None), None, None] for tile in tiles]

    found = fx.make_fragment_like(mine)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Int32), mine, found)
    # Extents and coordinates are i64, the offsets i32.
    found.store(found.load() * fx.Int32(columns) + column.load().to(fx.Int32))
    return found


@fly.kernel
def gather_kernel(table: fx.Tensor, index: fx.Tensor, out: fx.Tensor, copy: fx.TiledCopy):
    rows, columns = out.shape.unpack()
    own = copy.get_slice(fx.thread_idx.x)
    tile = fx.flat_divide(out, (ROWS, COLUMNS))[None, None, fx.block_idx.x, fx.block_idx.y]
    target = own.partition_D(tile)
    held = fx.make_fragment_like(target)
    fx.gather(copy.copy_atom, fx.get_iter(table), offsets(index, rows, columns, own), held)
    fx.copy(copy.copy_atom, held, target)


@fly.kernel
def scatter_kernel(values: fx.Tensor, index: fx.Tensor, table: fx.Tensor, copy: fx.TiledCopy):
    rows, columns = values.shape.unpack()
    own = copy.get_slice(fx.thread_idx.x)
    tile = fx.flat_divide(values, (ROWS, COLUMNS))[None, None, fx.block_idx.x, fx.block_idx.y]
    source = own.partition_S(tile)
    held = fx.make_fragment_like(source)
    fx.copy(copy.copy_atom, source, held)
    fx.scatter(copy.copy_atom, held, fx.get_iter(table), offsets(index, rows, columns, own))


@fly.jit
def gather_rows(table: fx.Tensor[fx.Float32, "T", "N"], index: fx.Tensor[fx.Int32, "R"]):
    rows, columns = index.shape[0], table.shape[1]
    out = fx.empty((rows, columns), fx.Float32)
    grid = (rows // ROWS, columns // COLUMNS)
    gather_kernel(table, index, out, threads()).launch(grid=grid, block=64)
    return out


# The rows of `table` that no index names keep their content, so it is a parameter.
@fly.jit
def scatter_rows(
    values: fx.Tensor[fx.Float32, "R", "N"],
    index: fx.Tensor[fx.Int32, "R"],
    table: fx.Tensor[fx.Float32, "T", "N"],
):
    grid = (values.shape[0] // ROWS, values.shape[1] // COLUMNS)
    scatter_kernel(values, index, table, threads()).launch(grid=grid, block=64)


def main():
    import numpy as np

    random = np.random.default_rng(22)
    table = random.standard_normal((50, 128), dtype=np.float32)
    index = random.permutation(50)[:20].astype(np.int32)
    out = gather_rows(table, index)
    np.testing.assert_array_equal(out, table[index])
    back = np.zeros_like(table)
    scatter_rows(out, index, back)
    np.testing.assert_array_equal(back[index], table[index])
    print("gather_rows, scatter_rows: 20 of 50 rows, equal to NumPy's indexing")


if __name__ == "__main__":
    main()
