# Operators, promotion, casts.
# RUN: fly-trace %s --no-loc | %filecheck %s
import fly
import fly.expr as fx


# CHECK-LABEL: gpu.func @promotion
# CHECK: arith.mulf %x, %{{.*}} : f32
# CHECK: arith.sitofp %n : i32 to f32
# CHECK: arith.extsi %n : i32 to i64
# CHECK: arith.addi %{{.*}}, %{{.*}} : i64
# CHECK: arith.extui %{{.*}} : i8 to i32
# CHECK: arith.extf %{{.*}} : f16 to f32
@fly.kernel
def promotion(F: fx.Tensor, I: fx.Tensor, x: fx.Float32, n: fx.Int32):
    F[0] = x * 2.0
    F[1] = x + n
    I[0] = n + fx.Int64(n)
    I[1] = fx.Uint8(n) + n
    F[2] = fx.Float16(x) + x


# CHECK-LABEL: gpu.func @integers
# CHECK: arith.shrsi %n, %{{.*}} : i32
# CHECK: arith.andi %n, %{{.*}} : i32
# CHECK: %[[REST:.*]] = arith.remsi %n, %{{.*}} : i32
# CHECK: arith.divsi %n, %{{.*}} : i32
# CHECK: arith.minui
# CHECK: arith.shli
# CHECK: arith.divf
# CHECK: arith.divui
# CHECK: arith.cmpi ult
@fly.kernel
def integers(F: fx.Tensor, I: fx.Tensor, x: fx.Float32, n: fx.Int32):
    I[0] = n // 64 + n % 64
    I[1] = n // 3
    I[2] = n << (n & 7)
    F[0] = n / 4
    I[3] = fx.Int64(fx.Uint32(n) // 3)
    I[4] = fx.where(fx.Uint32(n) < 7, 1, n)


# CHECK-LABEL: gpu.func @casts
# CHECK: arith.fptosi %x : f32 to i32
# CHECK: arith.cmpf une, %x,
# CHECK: arith.bitcast %x : f32 to i32
# CHECK: arith.truncf %x : f32 to bf16
@fly.kernel
def casts(F: fx.Tensor, I: fx.Tensor, x: fx.Float32, n: fx.Int32):
    I[0] = fx.Int32(x)
    I[1] = x.to(fx.Boolean)
    I[2] = x.bitcast(fx.Int32)
    F[0] = fx.BFloat16(x)


@fly.jit
def entry(F: fx.Tensor[fx.Float32, "n"], I: fx.Tensor[fx.Int64, 8], x: fx.Float32, n: fx.Int32):
    for kernel in (promotion, integers, casts):
        kernel(F, I, x, n).launch(grid=1, block=64)
