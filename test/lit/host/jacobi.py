# Two tensors that change places with each iteration, one of them the program's own.
# RUN: fly-trace %s | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines
import fly
import fly.expr as fx

BLOCK = 64


@fly.kernel
def step(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    n = A.shape[0]
    if i < n:
        inside = (i > 0) & (i < n - 1)
        B[i] = (A[i - 1] + A[i + 1]) * 0.5 if inside else A[i]


# CHECK: program jacobi for gfx942
# CHECK-NEXT: inputs
# CHECK-NEXT:   A           f32[n], read and written, contiguous
# CHECK-NEXT:   iterations  i32
# CHECK: steps
# CHECK-NEXT:   allocate B
# CHECK-NEXT:   loop v0 = 0, A_1 = A, B_1 = B while v0 < iterations
# CHECK-NEXT:     launch step(A_1, (A_1.shape[0]), B_1, (B_1.shape[0]))
# CHECK-NEXT:       grid {{.*}}, block 64
# CHECK-NEXT:     next v0 = v0 + 1, A_1 = B_1, B_1 = A_1
# CHECK-NEXT:     last v1 = v0, A_2 = A_1, B_2 = B_1
# CHECK-NEXT: returns A_2, B_2 as result0, B
@fly.jit
def jacobi(A: fx.Tensor[fx.Float32, "n"], iterations: fx.Int32):
    B = fx.empty_like(A)
    for _ in range(iterations):
        step(A, B).launch(grid=fx.ceildiv(A.shape[0], BLOCK), block=BLOCK)
        A, B = B, A
    return A, B
