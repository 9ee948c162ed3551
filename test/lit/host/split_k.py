# A product whose inner extent is split over workgroups: parts in a temporary, added by a second kernel, and an epilogue of bias and relu. Temporaries live from their first use to their last.
# RUN: fly-trace %s | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines
# From the shell, what the program allocates needs no shape.
# RUN: %PYTHON -c "import numpy, sys; [numpy.save(name, numpy.ones(shape, 'f')) for name, shape in zip(sys.argv[1:], [[5, 17], [17, 9], [9]])]" %t.A.npy %t.B.npy %t.bias.npy
# RUN: fly-trace %s | fly-opt-py --target gfx942 | opt -S -O3 | fly-llc | fly-link | fly-run -q A=%t.A.npy B=%t.B.npy bias=%t.bias.npy splits=3 C=%t.C.npy
# RUN: %PYTHON -c "import numpy, sys; C = numpy.load(sys.argv[1]); assert list(C.shape) == [5, 9] and numpy.all(C == 18)" %t.C.npy
import fly
import fly.expr as fx

THREADS = 64


@fly.kernel
def part(A: fx.Tensor, B: fx.Tensor, P: fx.Tensor):
    i, s = fx.block_idx.x, fx.block_idx.y
    for j in range(fx.thread_idx.x, B.shape[1], THREADS):
        total = fx.Float32(0)
        for k in range(s, A.shape[1], P.shape[0]):
            total = total + A[i, k] * B[k, j]
        P[s, i, j] = total


@fly.kernel
def add(P: fx.Tensor, S: fx.Tensor):
    i = fx.block_idx.x
    for j in range(fx.thread_idx.x, S.shape[1], THREADS):
        total = fx.Float32(0)
        for s in range(P.shape[0]):
            total = total + P[s, i, j]
        S[i, j] = total


@fly.kernel
def epilogue(S: fx.Tensor, bias: fx.Tensor, C: fx.Tensor):
    i = fx.block_idx.x
    for j in range(fx.thread_idx.x, C.shape[1], THREADS):
        C[i, j] = fx.maximum(S[i, j] + bias[j], 0.0)


# CHECK: program split_k for gfx942
# CHECK-NEXT: inputs
# CHECK-NEXT:   A         f32[m, k], read, contiguous
# CHECK-NEXT:   B         f32[k, n], read, contiguous
# CHECK-NEXT:   bias      f32[n], read, contiguous
# CHECK-NEXT:   splits    i32, 4 by default
# CHECK: tensors
# CHECK-NEXT:   partial   f32[splits, A.shape[0], B.shape[1]] strides [{{.*}}, 1], {{.*}} elements
# CHECK-NEXT:   sums      f32[A.shape[0], B.shape[1]] strides [{{.*}}, 1], {{.*}} elements
# CHECK-NEXT:   C         f32[A.shape[0], B.shape[1]] strides [{{.*}}, 1], {{.*}} elements
# CHECK-NEXT: steps
# CHECK-NEXT:   check 0 < splits else "{splits} splits"
# CHECK:        allocate partial
# CHECK-NEXT:   launch part(A, {{.*}}
# CHECK-NEXT:     grid (A.shape[0], splits), block 64
# CHECK-NEXT:   allocate sums
# CHECK-NEXT:   launch add(partial, {{.*}}
# CHECK-NEXT:     grid A.shape[0], block 64
# CHECK-NEXT:   free partial
# CHECK-NEXT:   allocate C
# CHECK-NEXT:   launch epilogue(sums, {{.*}}
# CHECK-NEXT:     grid A.shape[0], block 64
# CHECK-NEXT:   free sums
# CHECK-NEXT: returns C
@fly.jit
def split_k(
    A: fx.Tensor[fx.Float32, "m", "k"],
    B: fx.Tensor[fx.Float32, "k", "n"],
    bias: fx.Tensor[fx.Float32, "n"],
    splits: fx.Int32 = 4,
):
    assert splits > 0, f"{splits} splits"
    m, n = A.shape[0], B.shape[1]
    partial = fx.empty((splits, m, n), fx.Float32)
    sums = fx.empty((m, n), fx.Float32)
    C = fx.empty_like(sums)
    part(A, B, partial).launch(grid=(m, splits), block=THREADS)
    add(partial, sums).launch(grid=m, block=THREADS)
    epilogue(sums, bias, C).launch(grid=m, block=THREADS)
    return C
