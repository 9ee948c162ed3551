# A library function between two kernels: one makes its result, another writes to a tensor of the program's. torch is imported by the program that runs, not by its file.
# RUN: fly-trace %s:mlp | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines
# RUN: fly-trace %s:own | fly-opt-py --target gfx942 --emit host | %filecheck %s --match-full-lines --check-prefix=OWN
# RUN: not fly-trace %s:unknown 2>&1 | %filecheck %s --check-prefix=UNKNOWN
# RUN: not fly-trace %s:unfit 2>&1 | %filecheck %s --check-prefix=UNFIT
import fly
import fly.expr as fx


@fly.kernel
def relu(A: fx.Tensor, B: fx.Tensor):
    for j in range(fx.thread_idx.x, A.shape[1], 64):
        B[fx.block_idx.x, j] = fx.maximum(A[fx.block_idx.x, j], 0.0)


# CHECK: program mlp for gfx942
# CHECK: steps
# CHECK-NEXT:   check W.shape[0] == X.shape[1] else "torch.matmul: the inner extents are {X.shape[1]} and {W.shape[0]}, and have to be equal"
# CHECK-NEXT:   call H = torch.matmul(X, W)
# CHECK-NEXT:   allocate R
# CHECK-NEXT:   launch relu(H, {{.*}}
# CHECK-NEXT:     grid X.shape[0], block 64
# CHECK-NEXT:   free H
# CHECK-NEXT:   check V.shape[0] == W.shape[1] else "torch.matmul: the inner extents are {{.*}}, and have to be equal"
# CHECK-NEXT:   allocate Y
# CHECK-NEXT:   call torch.matmul(R, V, out=Y)
# CHECK-NEXT:   free R
# CHECK-NEXT:   allocate Z
# CHECK-NEXT:   launch relu{{.*}}(Y, {{.*}}
# CHECK-NEXT:     grid X.shape[0], block 64
# CHECK-NEXT:   free Y
# CHECK-NEXT: returns Z
@fly.jit
def mlp(
    X: fx.Tensor[fx.Float32, "b", "i"],
    W: fx.Tensor[fx.Float32, "i", "h"],
    V: fx.Tensor[fx.Float32, "h", 7],
):
    rows = X.shape[0]
    H = fx.call("torch.matmul", X, W)
    R = fx.empty_like(H)
    relu(H, R).launch(grid=rows, block=64)
    Y = fx.empty((rows, 7), fx.Float32)
    fx.call("torch.matmul", R, V, out=Y)
    Z = fx.empty_like(Y)
    relu(Y, Z).launch(grid=rows, block=64)
    return Z


def rolled(A, shift, axis=0):
    import numpy as np

    return np.ascontiguousarray(np.roll(A, shift, axis))


fly.register_call("tests.rolled", shape=lambda A, shift, axis=0: A, function=rolled)


# OWN: program own for gfx942
# OWN: steps
# OWN-NEXT:   call B = tests.rolled(X, shift, axis=1)
# OWN-NEXT:   allocate C
# OWN-NEXT:   launch relu{{.*}}
# OWN-NEXT:     grid X.shape[0], block 64
# OWN-NEXT:   free B
# OWN-NEXT: returns C
@fly.jit
def own(X: fx.Tensor[fx.Float32, "b", "i"], shift: fx.Int32):
    B = fx.call(rolled, X, shift, axis=1)
    C = fx.empty_like(B)
    relu(B, C).launch(grid=X.shape[0], block=64)
    return C


# UNKNOWN: library_call.py:{{[0-9]+}}:5: fx.call: a Python function len_of is not registered
@fly.jit
def unknown(X: fx.Tensor[fx.Float32, "b", "i"]):
    fx.call(len_of, X)
    relu(X, X).launch(grid=1, block=64)


def len_of(A):
    return len(A)


# UNFIT: library_call.py:{{[0-9]+}}:5: torch.matmul: the inner extents are 4 and 5, and have to be equal
@fly.jit
def unfit(X: fx.Tensor[fx.Float32, 3, 4], W: fx.Tensor[fx.Float32, 5, 6]):
    fx.call("torch.matmul", X, W)
    relu(X, X).launch(grid=1, block=64)
