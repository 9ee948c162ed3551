# One module: the kernels, the host function with what the host program needs, the launch.
# RUN: fly-trace %s:once --no-loc | %filecheck %s
# RUN: fly-trace %s:once --no-loc -o %t.mlir
# RUN: fly-opt-py %t.mlir -o %t.again
# RUN: fly-opt-py %t.again | cmp - %t.again
# RUN: fly-trace %s:twice --no-loc | %filecheck %s --check-prefix=TWICE
# RUN: fly-trace %s:once | %filecheck %s --check-prefix=LOC
import fly
import fly.expr as fx


@fly.kernel
def add(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        B[i] = A[i] + B[i]


# CHECK: module attributes {fly.entry = "once", gpu.container_module}
# CHECK-NEXT: gpu.module @kernels
# CHECK-NEXT: gpu.func @add(%A: !fly.memref<f32, global, ?{i64}:1>, %B: !fly.memref<f32, global, ?{i64}:1>, %n: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>}
# CHECK: %[[IN:.*]] = arith.cmpi slt, %[[I:.*]], %n : i32
# CHECK: scf.if %[[IN]] {
# CHECK: fly.memref.load(%A,
# CHECK: fly.memref.store(
# CHECK: gpu.return
# CHECK: func.func @once(%A: !fly.memref<f32, global, ?{i64}:1> {fly.access = "r", fly.contiguous, fly.dtype = "f32", fly.name = "A", fly.shape = ["n"]}
# CHECK-SAME: fly.access = "rw", fly.contiguous, fly.dtype = "f32", fly.name = "B", fly.shape = ["n"]
# CHECK-SAME: %scale: f64 {fly.default = 5.000000e-01 : f64, fly.dtype = "f64", fly.name = "scale"}
# CHECK: %[[S:.*]] = fly.get_shape(%A)
# CHECK: %[[N:.*]] = fly.get_scalar(%[[S]])
# CHECK: arith.trunci %[[N]] : i64 to i32
# CHECK: arith.ceildivsi %[[N]],
# CHECK: gpu.launch_func @kernels::@add blocks in (%{{.*}}) threads in (%{{.*}}) args(%A : !fly.memref<f32, global, ?{i64}:1>, %B
# CHECK-NEXT: return
# LOC: gpu.func @add(%A: !fly.memref<f32, global, ?{i64}:1> loc("A"("{{.*}}module.py":13:1))
# LOC: arith.cmpi slt, %{{.*}}, %n : i32 loc("{{.*}}module.py":15:8)
# LOC: fly.memref.load(%A, {{.*}} loc("{{.*}}module.py":16:16)
@fly.jit
def once(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"], scale: fx.Float64 = 0.5):
    n = A.shape[0]
    add(A, B, n).launch(grid=fx.ceildiv(n, 256), block=256)


# The same kernel for other types is another function; for the same types it is not.
# TWICE: gpu.func @add(%A: !fly.memref<f32, global,
# TWICE: gpu.func @add_1(%A: !fly.memref<f64, global,
# TWICE-NOT: gpu.func
# TWICE: gpu.launch_func @kernels::@add blocks
# TWICE: gpu.launch_func @kernels::@add_1 blocks
# TWICE: gpu.launch_func @kernels::@add blocks
@fly.jit
def twice(A: fx.Tensor[fx.Float32, "n"], D: fx.Tensor[fx.Float64, "n"], n: fx.Int32):
    add(A, A, n).launch(grid=(n, 2), block=(64, 2, 2))
    add(D, D, n).launch(grid=(n, 2), block=(64, 2, 2), smem=1024)
    add(A, A, n).launch(grid=1, block=(64, 2, 2))
