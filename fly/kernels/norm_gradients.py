"""The kernels of the gradients of RMSNorm and layer normalization.

Where a chip has room for a row and for sums over rows, one kernel computes all gradients, and reads
each element once. Otherwise one computes those of x, and another one those of the parameters.
"""

from __future__ import annotations

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.approximations import rsqrt
from fly.kernels.columns import THREADS, add_many, add_up, parts_of
from fly.kernels.rowwise.row_moments import (
    moments,
    received_means,
    received_moments,
    send_moments,
    send_sums,
)
from fly.kernels.rowwise.row_plans import Plan, sums_in_registers
from fly.kernels.rowwise.row_streams import Sums, each_row, each_row_in_two, goes_in_two, grid_of
from fly.kernels.rowwise.row_tiles import Tile
from fly.kernels.rowwise.rows import Matrix, Row, wide_type
from fly.kernels.shapes import for_model


@fly.kernel
def norm_backward_kernel(
    dY: fx.Tensor,
    X: fx.Tensor,
    dX: fx.Tensor,
    means: fx.Tensor,
    factors: fx.Tensor,
    eps: fx.Float64,
    centred: fx.Constexpr[bool],
    plan: fx.Constexpr[Plan],
    weight=None,
):
    dependent.let_next_begin()

    def one_row(row, _):
        dx, _, _, mean, factor = derivatives(row, dY, X, eps, centred, weight)
        row.finish(dX, lambda dx: dx * factor, dx, last=True)
        if row.leads():
            factors[row.index] = factor
            if centred:
                means[row.index] = mean

    each_row(plan, X.shape, one_row, X, dY)


def send(row, dY, X, centred, weight):
    """Sends the sums that `sent_derivatives` needs of a row."""
    x, dy = row.read(X), row.read(dY)
    if weight is not None:
        dy = row.map(lambda dy, weight: dy * weight, dy, row.read(weight))
    if centred:
        send_moments(row, x, dy)
        return
    with fx.fastmath("contract"):
        send_sums(row, *[row.map(lambda x, y: x * y, x, other) for other in (x, dy)])


def sent_derivatives(row, dY, X, eps, centred, weight):
    """Returns the derivatives by a row's x, the row of dY, and the normalized row, of the sums that
    `send` has sent."""
    mean = shift = 0.0
    if centred:
        mean, variance, shift, along = received_moments(row, 1)
    else:
        variance, along = received_means(row, 2)
    factor = rsqrt(variance + eps.to(variance.dtype))
    x, given = row.read(X), row.read(dY)
    dy = given
    if weight is not None:
        dy = row.map(lambda dy, weight: dy * weight, dy, row.read(weight))
    with fx.fastmath("contract"):
        start, slope = mean * factor, along * factor * factor
        normal = row.map(lambda x: x * factor - start if centred else x * factor, x)
        if centred:
            less = shift * factor
            rest = row.map(lambda normal: normal * slope + less, normal)
        else:
            rest = row.map(lambda normal: normal * slope, normal)
        return row.map(lambda dy, rest: dy * factor - rest, dy, rest), given, normal


def derivatives(row, dY, X, eps, centred, weight):
    """Returns the derivatives by a row's x, but for the factor 1 / sqrt(variance + eps); the row of
    dY; x, less its mean if `centred`; the mean and the factor.

    The block exchanges sums once, and once more for the mean; the blocks of a cluster only once.
    """
    x, given, mean, shift = row.read(X), row.read(dY), None, 0.0
    row.release()
    dy = given
    if weight is not None:
        dy = row.map(lambda dy, weight: dy * weight, dy, row.read(weight))
        x = row.afresh(x, dy)
    at_once = centred and row.plan.cluster > 1
    if at_once:
        mean, variance, shift, along = moments(row, x, dy)
    elif centred:
        mean, shift = row.means(x, dy)
    if centred:
        x = row.map(lambda x: x - mean, x)
    with fx.fastmath("contract"):
        if not at_once:
            squares, along = [row.map(lambda x, y: x * y, x, other) for other in (x, dy)]
            variance, along = row.means(squares, along)
        factor = rsqrt(variance + eps.to(variance.dtype))
        slope = along * factor * factor
        dx = row.map(lambda dy, x: dy - shift - x * slope, dy, x)
    return dx, given, x, mean, factor


@fly.kernel
def all_backward_kernel(
    dY: fx.Tensor,
    X: fx.Tensor,
    weight: fx.Tensor,
    dX: fx.Tensor,
    parts: fx.Tensor,
    eps: fx.Float64,
    centred: fx.Constexpr[bool],
    plan: fx.Constexpr[Plan],
):
    """All derivatives at once. A block has sums of those of the parameters, over its rows, and
    stores them as its row of `parts`: those of the weight, and of the bias."""
    kinds = 1 + centred
    near, in_two = sums_in_registers(plan, kinds), goes_in_two(plan)
    kept = [Sums(plan, X.shape[1], parts.dtype, kind < near) for kind in range(kinds)]

    def one_row(row, sums):
        if in_two:
            dx, dy, normal = sent_derivatives(row, dY, X, eps, centred, weight)
        else:
            dx, dy, x, _, factor = derivatives(row, dY, X, eps, centred, weight)

        def add(first):
            given = dy.at(first)
            terms = [given * (normal.at(first) if in_two else x.at(first) * factor), given]
            for one, own, term in zip(kept, sums, terms[:kinds], strict=True):
                one.add(own, first, term)

        with fx.fastmath("contract"):
            last = (lambda dx: dx) if in_two else (lambda dx: dx * factor)
            row.finish(dX, last, dx, last=True, beside=add)
        return sums

    none = [one.none() for one in kept]
    if in_two:
        sums = each_row_in_two(
            plan, X.shape, lambda row: send(row, dY, X, centred, weight), one_row, X, dY, state=none
        )
    else:
        sums = each_row(plan, X.shape, one_row, X, dY, state=none)
    for kind in fx.range_constexpr(kinds):
        kept[kind].store(sums[kind], parts[kind, None, None])


@fly.kernel
def parameters_backward_kernel(
    dY: fx.Tensor,
    X: fx.Tensor,
    means: fx.Tensor,
    factors: fx.Tensor,
    dweight: fx.Tensor,
    rows: fx.Int32,
    plan: fx.Constexpr[Plan],
    dbias=None,
):
    """Sums over `rows` rows, of a vector of columns each thread. Without a dbias there is no
    mean."""
    dependent.wait_for_previous()
    dependent.let_next_begin()
    part, columns = fx.Uint32(fx.block_idx.y), X.shape[1]
    first = fx.block_idx.x * plan.tile
    # Of a part there are few rows, and none is before its start.
    start = fx.Uint64(part) * fx.Uint32(rows)
    count = fx.Int32(fx.min(X.shape[0] - start.to(fx.Int64), fx.Int64(rows)))
    weight = bias = fx.full((plan.vector, plan.vectors), 0.0, dweight.dtype)
    for i in range(count):
        row = start + fx.Uint64(fx.Uint32(i))
        tile = Tile(Row(plan, columns, row), first)
        dy, x = [tile.load(one, 0.0).to(dweight.dtype) for one in (dY, X)]
        with fx.fastmath("contract"):
            if dbias is not None:
                x = x - means[row]
                bias += dy
            weight += dy * (x * factors[row])
    made = Tile(Row(plan, columns, part), first)
    made.store(dweight, weight)
    if dbias is not None:
        made.store(dbias, bias)


@fly.jit(specialize=for_model("N"))
def norm_backward_rows(
    dY: Matrix,
    X: Matrix,
    eps: fx.Float64,
    centred: fx.Constexpr[bool],
    plan: fx.Constexpr[Plan],
    of_columns: fx.Constexpr[Plan],
    weight=None,
):
    rows, columns = X.shape
    wide = wide_type(X.dtype)
    dX = fx.empty(X.shape, X.dtype)
    means, factors = fx.empty(rows if centred else 0, wide), fx.empty(rows, wide)
    norm_backward_kernel(dY, X, dX, means, factors, eps, centred, plan, weight).launch(
        grid=grid_of(plan, rows),
        block=plan.threads,
        cluster=plan.cluster,
        attributes=plan.attributes,
    )
    if weight is None:
        return dX, fx.empty(0, X.dtype), fx.empty(0, X.dtype)
    parts, rows_of_part = parts_of(rows)
    dweight = fx.empty((parts, columns), wide)
    dbias = fx.empty((parts, columns), wide) if centred else None
    parameters_backward_kernel(
        dY, X, means, factors, dweight, rows_of_part, of_columns, dbias
    ).launch(grid=(fx.ceildiv(columns, of_columns.tile), parts), block=THREADS)
    sums = fx.empty(0, X.dtype) if dbias is None else add_up(dbias, weight.dtype)
    return dX, add_up(dweight, weight.dtype), sums


@fly.jit
def norm_backward_at_once(
    dY: Matrix,
    X: Matrix,
    weight: fx.Tensor,
    eps: fx.Float64,
    centred: fx.Constexpr[bool],
    plan: fx.Constexpr[Plan],
):
    """As norm_backward_rows, of rows that are on the chip together with sums over them."""
    rows, columns = X.shape
    wide, blocks = wide_type(X.dtype), grid_of(plan, rows)
    dX = fx.empty(X.shape, X.dtype)
    parts = fx.empty((2 if centred else 1, blocks // plan.cluster, columns), wide)
    all_backward_kernel(dY, X, weight, dX, parts, eps, centred, plan).launch(
        grid=blocks, block=plan.threads, cluster=plan.cluster, attributes=plan.attributes
    )
    return dX, *add_many(parts, weight.dtype)
