# One kernel for short rows, two with a temporary for long ones; a grid chosen by the size.
# RUN: fly-trace %s | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines
import fly
import fly.expr as fx

BLOCK = 64
LONG = 100


@fly.kernel
def scale(A: fx.Tensor, B: fx.Tensor, factor: fx.Float32):
    for i in range(fx.block_idx.x * BLOCK + fx.thread_idx.x, A.shape[0], fx.grid_dim.x * BLOCK):
        B[i] = A[i] * factor


# CHECK: program chosen for gfx942
# CHECK-NEXT: inputs
# CHECK-NEXT:   A        f32[n], read, contiguous
# CHECK-NEXT:   doubled  bool, False by default
# CHECK: steps
# CHECK-NEXT:   allocate B
# CHECK-NEXT:   if 100 < A.shape[0]
# CHECK-NEXT:     allocate T
# CHECK-NEXT:     launch scale(A, (A.shape[0]), T, (A.shape[0]), {{.*}})
# CHECK-NEXT:       grid {{.*}}, block 64
# CHECK-NEXT:     launch scale(T, (A.shape[0]), B, (A.shape[0]), {{.*}})
# CHECK-NEXT:       grid {{.*}}, block 64
# CHECK-NEXT:     free T
# CHECK-NEXT:     gives v0 = 2
# CHECK-NEXT:   else
# CHECK-NEXT:     launch scale(A, (A.shape[0]), B, (A.shape[0]), {{.*}})
# CHECK-NEXT:       grid {{.*}}, block 64
# CHECK-NEXT:     gives v0 = 1
# CHECK-NEXT:   if doubled
# CHECK-NEXT:     allocate D
# CHECK-NEXT:     launch scale(B, (A.shape[0]), D, (A.shape[0]), {{.*}})
# CHECK-NEXT:       grid {{.*}}, block 64
# CHECK-NEXT:     gives D_1 = D
# CHECK-NEXT:   else
# CHECK-NEXT:     gives D_1 = B
# CHECK-NEXT: returns D_1, v0 as result, launches
@fly.jit
def chosen(A: fx.Tensor[fx.Float32, "n"], doubled: fx.Boolean = False):
    n = A.shape[0]
    grid = fx.ceildiv(n, BLOCK) if n < 1000 and n > 10 else 1
    B = fx.empty_like(A)
    if n > LONG:
        T = fx.empty_like(A)
        scale(A, T, 2.0).launch(grid=grid, block=BLOCK)
        scale(T, B, 3.0).launch(grid=grid, block=BLOCK)
        launches = 2
    else:
        scale(A, B, 6.0).launch(grid=grid, block=BLOCK)
        launches = 1
    result = B
    if doubled:
        D = fx.empty_like(A)
        scale(B, D, 2.0).launch(grid=grid, block=BLOCK)
        result = D
    return result, launches
