# A loop with init= carries its state; unroll= reaches LLVM's optimizer.
# RUN: fly-trace %s --no-loc | %filecheck %s --check-prefix=TRACE
# RUN: fly-trace %s | fly-opt-py --target gfx942 | %filecheck %s --check-prefix=LLVM
# RUN: fly-trace %s | fly-opt-py --target sm_90a | %filecheck %s --check-prefix=LLVM
import fly
import fly.expr as fx


# TRACE: scf.for %{{.*}} = %c0{{.*}} to %n step %c1_i32 iter_args({{.*}}) -> (f32, i32)
# TRACE: } {llvm.loop_annotation = #
# TRACE: scf.for
# TRACE: } {llvm.loop_annotation = #
# LLVM-DAG: !{!"llvm.loop.unroll.count", i32 4}
# LLVM-DAG: !{!"llvm.loop.unroll.disable"}
@fly.kernel
def kernel(A: fx.Tensor, n: fx.Int32):
    for i, (total, count) in range(0, n, 1, init=[fx.Float32(0), 0], unroll=4):
        results = yield [total + A[i], count + 2]
    A[results[1]] = results[0]
    for i in range(n, unroll=1):
        A[i] = 1.0


@fly.jit
def entry(A: fx.Tensor[fx.Float32, "n"], n: fx.Int32):
    kernel(A, n).launch(grid=1, block=64)
