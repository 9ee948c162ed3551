# A blocked tensor: channels in blocks of 4, padded, each block's rows behind one another. The kernel and the caller see the axes of the memory.
# RUN: fly-trace %s:pack | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines
# RUN: fly-trace %s:rows | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines --check-prefix=ROWS
# RUN: fly-trace %s:rounded | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines --check-prefix=ROUNDED
# RUN: not fly-trace %s:blocked 2>&1 | %filecheck %s --check-prefix=BLOCKED
import fly
import fly.expr as fx

BLOCKED = fx.Allocation().split(1, 4, padded=True).reorder(1, 0, 2)


@fly.kernel
def to_blocks(A: fx.Tensor, B: fx.Tensor):
    i, block, lane = fx.block_idx.x, fx.block_idx.y, fx.thread_idx.x
    channel = block * 4 + lane
    value = fx.Float32(0)
    if channel < A.shape[1]:
        value = A[i, channel]
    B[block, i, lane] = value


@fly.kernel
def fill(C: fx.Tensor):
    C[fx.block_idx.x, fx.thread_idx.x] = fx.Float32(fx.block_idx.x * 100 + fx.thread_idx.x)


# CHECK: program pack for gfx942
# CHECK: tensors
# CHECK-NEXT:   B  f32[%0, A.shape[0], 4] strides [{{.*}}, 4, 1], {{.*}} elements
# CHECK-NEXT: steps
# CHECK-NEXT:   allocate B
# CHECK-NEXT:   launch to_blocks(A, (A.shape[0], A.shape[1], A.strides[0]), B, (%0, A.shape[0], {{.*}}))
# CHECK-NEXT:     grid (A.shape[0], %0), block 4
# CHECK-NEXT: returns B
@fly.jit
def pack(A: fx.Tensor[fx.Float32, "n", "c"]):
    n, c = A.shape[0], A.shape[1]
    B = fx.empty((n, c), fx.Float32, BLOCKED, view="allocation")
    to_blocks(A, B).launch(grid=(n, B.shape[0]), block=4)
    return B


# Parts that stay adjacent are one axis again: the logical tensor has strides, of rows with padding.
# ROWS: program rows for gfx942
# ROWS-NEXT: tensors
# ROWS-NEXT:   C  f32[3, 10] strides [16, 1], 48 elements
# ROWS-NEXT: steps
# ROWS-NEXT:   allocate C
# ROWS-NEXT:   launch fill(C)
# ROWS-NEXT:     grid 3, block 10
# ROWS-NEXT: returns C
@fly.jit
def rows():
    C = fx.empty((3, 10), fx.Float32, fx.Allocation().split(1, 16, padded=True))
    fill(C).launch(grid=3, block=10)
    return C


# An exact split is checked, and its factor may be computed.
# ROUNDED: program rounded for gfx942
# ROUNDED: steps
# ROUNDED-NEXT:   check {{.*}} else "C: split(1, {width}): the factor is less than 1"
# ROUNDED-NEXT:   check {{.*}} else "C: split(1, {width}): the extent 24 is not a multiple of {width}"
# ROUNDED-NEXT:   allocate C
@fly.jit
def rounded(width: fx.Int32):
    allocation = fx.Allocation().split(1, width).reorder(1, 0, 2)
    C = fx.empty((3, 24), fx.Float32, allocation, view="allocation")
    spread(C).launch(grid=(C.shape[0], 3), block=width)
    return C


@fly.kernel
def spread(C: fx.Tensor):
    block, row, lane = fx.block_idx.x, fx.block_idx.y, fx.thread_idx.x
    C[block, row, lane] = fx.Float32(row * 100 + block * fx.block_dim.x + lane)


# BLOCKED: padded_split.py:{{[0-9]+}}:9: fx.empty: there are no logical strides: the parts of split(1, 4, padded=True) are not adjacent in memory
@fly.jit
def blocked(A: fx.Tensor[fx.Float32, "n", "c"]):
    B = fx.empty((A.shape[0], A.shape[1]), fx.Float32, BLOCKED)
    to_blocks(A, B).launch(grid=1, block=4)
    return B
