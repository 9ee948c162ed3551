# A sum in passes: each leaves one number a workgroup, until one is left. The loop carries a tensor that its body makes.
# RUN: fly-trace %s | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines
import fly
import fly.expr as fx

BLOCK = 64


@fly.kernel
def add(A: fx.Tensor, B: fx.Tensor):
    values = fx.shared_array(fx.Float32, BLOCK)
    i = fx.thread_idx.x
    at = fx.block_idx.x * BLOCK + i
    values[i] = A[at] if at < A.shape[0] else 0.0
    fx.barrier()
    if i == 0:
        total = fx.Float32(0)
        for k in fx.range_constexpr(BLOCK):
            total = total + values[k]
        B[fx.block_idx.x] = total


# CHECK: program total for gfx942
# CHECK-NEXT: inputs
# CHECK-NEXT:   A  f32[n], read and written, contiguous
# CHECK: steps
# CHECK-NEXT:   loop v0 = A.shape[0], v1 = 0, A_1 = A while 1 < v0
# CHECK-NEXT:     check 0 <= {{.*}} else "B: extent 0 is {{.*}}, less than 0"
# CHECK-NEXT:     allocate B
# CHECK-NEXT:     launch add(A_1, (A_1.shape[0]), B, ({{.*}}))
# CHECK-NEXT:       grid {{.*}}, block 64
# CHECK-NEXT:     next v0 = {{.*}}, v1 = v1 + 1, A_1 = B
# CHECK-NEXT:     last v2 = v0, v3 = v1, A_2 = A_1
# CHECK-NEXT: returns A_2, v3 as result0, passes
@fly.jit
def total(A: fx.Tensor[fx.Float32, "n"]):
    count, passes = A.shape[0], 0
    while count > 1:
        count = fx.ceildiv(count, BLOCK)
        B = fx.empty((count,), fx.Float32)
        add(A, B).launch(grid=count, block=BLOCK)
        A = B
        passes = passes + 1
    return A, passes
