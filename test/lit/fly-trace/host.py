# The host function beside its launches: tensors, checks, loops, branches, library calls, streams, results.
# RUN: fly-trace %s --no-loc | %filecheck %s
import fly
import fly.expr as fx

ROWS = fx.Allocation().reorder(1, 0)


@fly.kernel
def k(A: fx.Tensor, B: fx.Tensor):
    B[0, 0] = A[0, 0]


# CHECK-LABEL: func.func @host(
# CHECK-SAME: %A: !fly.memref<f32, global, (?{i64},4):(4,1)> {fly.access = "rw", fly.contiguous, fly.dtype = "f32", fly.name = "A", fly.shape = ["n", 4]},
# CHECK-SAME: %B: !fly.memref<f32, global, (?{i64},4):(4,1)> {fly.access = "rw",
# CHECK-SAME: %s: !gpu.async.token {fly.name = "s"}
# CHECK-SAME: attributes {fly.results = [{name = "A"}, {{\[}}{name = "T"}, {}], {value = 3 : i64}, unit]}
@fly.jit
def host(
    A: fx.Tensor[fx.Float32, "n", 4],
    B: fx.Tensor[fx.Float32, "n", 4],
    count: fx.Int32,
    s: fx.Stream = None,
):
    n = A.shape[0]
    # CHECK: fly.check(%{{.*}}, %[[N:.*]]) {message = ["n is ", unit, ", of 4"]} : (i1, i64) -> ()
    assert n > 4, f"n is {n}, of {A.shape[1]}"
    # CHECK: %[[T:.*]] = fly.empty(%[[N]]) {allocation = "reorder(1, 0)", dtype = "f32", name = "T", shape = [unit, 4], view = "logical"} : (i64) -> !fly.memref<f32, global, (?{i64},4):(1,?{i64})>
    T = fx.empty((n, 4), fx.Float32, ROWS)
    # CHECK: gpu.launch_func <%s : !gpu.async.token> @kernels::@k
    k(A, T).launch(grid=1, block=64, stream=s)
    # The tensors change places: what a kernel does to one, it may do to the other.
    # CHECK: scf.for %{{.*}} iter_args(%[[X:.*]] = %A, %[[Y:.*]] = %B)
    # CHECK: gpu.launch_func @kernels::@k
    # CHECK: scf.yield %[[Y]], %[[X]]
    for _ in range(count):
        k(A, B).launch(grid=1, block=64)
        A, B = B, A
    # CHECK: scf.while
    # CHECK: scf.condition
    while n > 1:
        k(A, B).launch(grid=n, block=64)
        n = n // 2
    # CHECK: %[[LAST:.*]] = scf.if
    # CHECK: fly.call(%{{.*}}) {arguments = [unit, unit], function = "torch.matmul", keywords = {out}, results = []}
    if count > 0:
        square = fx.empty((4, 4), fx.Float32)
        fx.call("torch.matmul", square, square, out=square)
        n = count
    # CHECK: return
    return A, (T, n + 1), 3, None
