# --sig, --like and annotations: extents and strides, static and dynamic.
# RUN: fly-trace %s --no-loc --sig 'A: f32[M,N], B: i8[?,128], C: f16[8,4]' | %filecheck %s
# RUN: fly-trace %s --no-loc --sig 'A: bf16[M,N:?,1], B: u64[4,4:1,4], C: bool[?]' | %filecheck %s --check-prefix=STRIDE
# RUN: fly-trace %s --no-loc --sig 'A: f32[?{i32},?{div=8}], B: f32[N{i32 div=4},8:?{div=16},1], C: f16[1]{align=8}' | %filecheck %s --check-prefix=KNOWN
# RUN: not fly-trace %s --sig 'A: f32[?{i16}]' 2>&1 | %filecheck %s --check-prefix=UNKNOWN
# RUN: %PYTHON %S/Inputs/column_major.py %t.npy
# RUN: fly-trace %s --no-loc --like A=%t.npy --like B=%t.npy --static --sig 'C: f32[1]' | %filecheck %s --check-prefix=LIKE
# RUN: fly-trace %s --no-loc --like A=%t.npy --like B=%t.npy --sig 'C: f32[1], W = 7' | %filecheck %s --check-prefix=WIDE
# RUN: not fly-trace %s 2>&1 | %filecheck %s --check-prefix=MISSING
import fly
import fly.expr as fx


@fly.kernel
def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, W: fx.Constexpr[int]):
    for _ in fx.range_constexpr(W):
        fx.barrier()


# CHECK: gpu.func @kernel(%A: !fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>, %B: !fly.memref<i8, global, (?{i64},128):(128,1)>, %C: !fly.memref<f16, global, (8,4):(4,1)>)
# CHECK: gpu.barrier
# CHECK-NEXT: gpu.return
# CHECK: func.func @entry(%A: !fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)> {fly.access = "r", fly.contiguous, fly.dtype = "f32", fly.name = "A", fly.shape = ["M", "N"]}
# CHECK-SAME: fly.dtype = "i8", fly.name = "B", fly.shape = [unit, 128]
# CHECK-SAME: fly.dtype = "f16", fly.name = "C", fly.shape = [8, 4]
# STRIDE: func.func @entry(%A: !fly.memref<bf16, global, (?{i64},?{i64}):(?{i64},1)> {fly.access = "r", fly.dtype = "bf16"
# STRIDE-SAME: %B: !fly.memref<i64, global, (4,4):(1,4)> {fly.access = "r", fly.dtype = "u64"
# STRIDE-SAME: %C: !fly.memref<i8, global, ?{i64}:1> {fly.access = "r", fly.contiguous, fly.dtype = "bool"
# KNOWN: func.func @entry(%A: !fly.memref<f32, global, (?,?{i64 div=8}):(?{i64},1)> {fly.access = "r", fly.contiguous
# KNOWN-SAME: %B: !fly.memref<f32, global, (?{div=4},8):(?{i64 div=16},1)> {fly.access = "r", fly.dtype = "f32", fly.name = "B", fly.shape = ["N", 8]}
# KNOWN-SAME: %C: !fly.memref<f16, global, 1:1, align<8>> {fly.access = "r"
# UNKNOWN: fly-trace: error: --sig: `A: f32[?{i16}]`: `?{i16}` is not an extent
# LIKE: func.func @entry(%A: !fly.memref<f64, global, (3,5):(1,3)> {fly.access = "r", fly.dtype = "f64"
# WIDE: gpu.barrier
# WIDE-NEXT: gpu.barrier
# WIDE: func.func @entry(%A: !fly.memref<f64, global, (?{i64},?{i64}):(1,?{i64})> {fly.access = "r", fly.dtype = "f64"
# MISSING: fly-trace: error: the type of A is not known
# MISSING-NEXT: annotate it in the file, or give it with --sig 'A: f32[?]', or --like A=FILE.npy
@fly.jit
def entry(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, W: fx.Constexpr[int] = 1):
    kernel(A, B, C, W).launch(grid=1, block=64)
