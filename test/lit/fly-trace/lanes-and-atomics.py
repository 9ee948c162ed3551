# Lane shuffles of 16, 32 and 64 bits; atomics on global memory and LDS.
# RUN: fly-trace %s --no-loc | %filecheck %s
import fly
import fly.expr as fx


# CHECK-LABEL: gpu.func @shuffles
# CHECK: gpu.shuffle xor %x, %{{.*}}, %{{.*}} : f32
# CHECK: %[[SOURCE:.*]] = arith.select
# CHECK: gpu.shuffle idx %n, %[[SOURCE]], %{{.*}} : i32
# CHECK: gpu.shuffle down %{{.*}} : i32
# CHECK: gpu.shuffle down %{{.*}} : i32
# CHECK: arith.bitcast %{{.*}} : i64 to f64
# CHECK: arith.bitcast %{{.*}} : f16 to i16
# CHECK: gpu.shuffle idx
@fly.kernel
def shuffles(A: fx.Tensor, I: fx.Tensor, x: fx.Float32, n: fx.Int32):
    A[0] = fx.shuffle_xor(x, 1)
    I[0] = fx.shuffle_up(n, 1, 16)
    A[1] = fx.shuffle_down(fx.Float64(x), 2).to(fx.Float32)
    A[2] = fx.shuffle_idx(fx.Float16(x), 5)


# CHECK-LABEL: gpu.func @atomics
# CHECK: fly.crd2idx
# CHECK: %[[P:.*]] = fly.to_llvm_ptr(%{{.*}}) {llvm_address_space = 1 : i32}
# CHECK-NEXT: llvm.atomicrmw fadd %[[P]], %x syncscope("agent") monotonic : !llvm.ptr<1>, f32
# CHECK: llvm.atomicrmw max %{{.*}} syncscope("agent") monotonic
# CHECK: llvm.atomicrmw umin %{{.*}} syncscope("workgroup") monotonic : !llvm.ptr<3>, i32
# CHECK: llvm.atomicrmw _and
# CHECK: llvm.atomicrmw _or
# CHECK: llvm.atomicrmw xchg
# CHECK: %[[PAIR:.*]] = llvm.cmpxchg %{{.*}} syncscope("agent") monotonic monotonic : !llvm.ptr<1>, i32
# CHECK-NEXT: llvm.extractvalue %[[PAIR]][0]
@fly.kernel
def atomics(A: fx.Tensor, I: fx.Tensor, x: fx.Float32, n: fx.Int32):
    fx.atomic_add(A, n, x)
    fx.atomic_max(I, n, 3)
    local = fx.shared_array(fx.Uint32, 4)
    fx.atomic_min(local, n, 7)
    fx.atomic_and(I, n, 3)
    fx.atomic_or(I, n, 3)
    fx.atomic_xchg(I, n, 3)
    I[0] = fx.atomic_cas(I, n, 3, n)


# CHECK: func.func @entry(%A: {{.*}} {fly.access = "rw"
@fly.jit
def entry(A: fx.Tensor[fx.Float32, "n"], I: fx.Tensor[fx.Int32, "n"], x: fx.Float32, n: fx.Int32):
    shuffles(A, I, x, n).launch(grid=1, block=64)
    atomics(A, I, x, n).launch(grid=1, block=64)
