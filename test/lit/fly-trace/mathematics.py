# Mathematics. NaN goes through maximum and minimum, maxnumf and minnumf ignore it.
# RUN: fly-trace %s --no-loc | %filecheck %s
import fly
import fly.expr as fx


# CHECK: math.exp %x : f32
# CHECK: math.exp2
# CHECK: math.log %
# CHECK: math.log2
# CHECK: math.sqrt
# CHECK: math.rsqrt
# CHECK: math.sin
# CHECK: math.cos
# CHECK: math.tanh
# CHECK: math.erf
# CHECK: math.powf
# CHECK: math.fma
# CHECK: math.absf
# CHECK: math.floor
# CHECK: math.ceil
# CHECK: arith.maximumf
# CHECK: arith.minimumf
# CHECK: arith.maximumf
# CHECK: arith.maxnumf
# CHECK: arith.minnumf
# CHECK: arith.maxsi
# CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : f16 to f32
# CHECK-NEXT: %[[E:.*]] = math.exp %[[WIDE]] : f32
# CHECK-NEXT: arith.truncf %[[E]] : f32 to f16
# CHECK: math.exp2 %x fastmath<afn> : f32
# CHECK: arith.maximumf {{.*}} fastmath<nnan,nsz> : f32
# CHECK: arith.minimumf {{.*}} fastmath<fast> : f32
# CHECK: math.sqrt {{.*}} fastmath<nsz,arcp> : f32
# CHECK: math.erf {{.*}} fastmath<contract> : f32
@fly.kernel
def kernel(A: fx.Tensor, x: fx.Float32, n: fx.Int32):
    for k, function in enumerate((fx.exp, fx.exp2, fx.log, fx.log2, fx.sqrt, fx.rsqrt, fx.sin)):
        A[k] = function(x)
    for function in (fx.cos, fx.tanh, fx.erf):
        A[8] = function(x)
    A[9] = fx.pow(x, 1.5)
    A[10] = fx.fma(x, 2.0, x)
    for function in (fx.abs, fx.floor, fx.ceil):
        A[11] = function(x)
    A[12] = fx.maximum(x, 0.0)
    A[13] = fx.minimum(x, 0.0)
    A[14] = fx.max(x, 0)
    A[15] = fx.maxnumf(x, 1.0)
    A[16] = fx.minnumf(x, 1.0)
    A[17] = fx.Float32(fx.maximum(n, 3))
    A[18] = fx.exp(fx.Float16(x))
    A[19] = fx.exp2(x, fastmath="afn")
    A[20] = fx.max(x, 1.0, fastmath="nnan,nsz")
    A[22] = fx.minimumf(x, 1.0, fastmath=fx.FastMathFlags.fast)
    A[23] = fx.sqrt(x, fastmath=fx.FastMathFlags.arcp | fx.FastMathFlags.nsz)
    A[21] = fx.erf(fx.Float16(x), fastmath=["contract"])


@fly.jit
def entry(A: fx.Tensor[fx.Float32, "n"], x: fx.Float32, n: fx.Int32):
    kernel(A, x, n).launch(grid=1, block=64)
