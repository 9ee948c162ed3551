# Dynamic if, for and while carry values; what is known while tracing is run by Python.
# RUN: fly-trace %s --no-loc | %filecheck %s
import fly
import fly.expr as fx


def clamp(value, low, high):
    if value < low:
        value = low
    elif value > high:
        value = high
    return value


# CHECK-LABEL: gpu.func @branches
# CHECK: %[[C:.*]] = arith.cmpf olt, %x, %{{.*}} : f32
# CHECK: %[[R:.*]] = scf.if %[[C]] -> (f32) {
# CHECK: scf.yield %{{.*}} : f32
# CHECK: } else {
# CHECK: scf.if %{{.*}} -> (f32) {
# CHECK: scf.yield %x : f32
# CHECK: fly.memref.store(%[[R]], %A,
# CHECK: scf.if %{{.*}} {
# CHECK-NOT: else
# CHECK: gpu.return
@fly.kernel
def branches(A: fx.Tensor, x: fx.Float32, n: fx.Int32):
    A[0] = clamp(x, -1.0, 1.0)
    if n > 0:
        unused = x
        A[1] = unused
    if 2 > 1:
        A[2] = x


# CHECK-LABEL: gpu.func @loops
# CHECK: %[[SUM:.*]]:2 = scf.for %[[I:.*]] = %{{.*}} to %n step %{{.*}} iter_args(%[[T:.*]] = %{{.*}}, %[[M:.*]] = %x) -> (f32, f32) : i32 {
# CHECK: arith.addf %[[T]],
# CHECK: scf.yield %{{.*}}, %{{.*}} : f32, f32
# CHECK: scf.for unsigned
# CHECK: scf.while (%[[K:.*]] = %n) : (i32) -> i32 {
# CHECK: scf.condition(%{{.*}}) %[[K]] : i32
# CHECK: arith.shrsi
# CHECK: fly.make_int_tuple() : () -> !fly.int_tuple<0>
# CHECK-NEXT: fly.memref.store
# CHECK-NEXT: fly.make_int_tuple() : () -> !fly.int_tuple<1>
# CHECK-NEXT: fly.memref.store
# CHECK-NEXT: gpu.return
@fly.kernel
def loops(A: fx.Tensor, x: fx.Float32, n: fx.Int32):
    total, most = 0.0, x
    for i in range(n):
        total += A[i]
        most = fx.maximum(most, A[i])
    for i in range(n, 0, -2):
        A[i] = total
    while n > most:
        n = n // 2
    A[n] = most
    for k in (0, 1, 2, 3):
        if k == 2:
            break
        A[k] = x


# CHECK-LABEL: gpu.func @short_circuit
# CHECK: %[[FIRST:.*]] = arith.cmpi slt
# CHECK-NEXT: %[[BOTH:.*]] = scf.if %[[FIRST]] -> (i1) {
# CHECK: fly.memref.load
# CHECK: } else {
# CHECK-NEXT: arith.constant false
# CHECK: scf.if %[[BOTH]] {
@fly.kernel
def short_circuit(A: fx.Tensor, x: fx.Float32, n: fx.Int32):
    i = fx.thread_idx.x
    if i < n and A[i] > x:
        A[i] = x


@fly.jit
def entry(A: fx.Tensor[fx.Float32, "n"], x: fx.Float32, n: fx.Int32):
    for kernel in (branches, loops, short_circuit):
        kernel(A, x, n).launch(grid=1, block=64)
