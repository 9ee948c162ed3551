# Tensors of any rank, 64-bit addressing, static and dynamic LDS, bool in memory.
# RUN: fly-trace %s --no-loc | %filecheck %s
import fly
import fly.expr as fx


# An index times a static stride that could leave 32 bits is widened first.
# CHECK-LABEL: gpu.func @tensors
# CHECK: %[[WIDE:.*]] = arith.extsi %n : i32 to i64
# CHECK-NEXT: %[[C:.*]] = fly.make_int_tuple(%[[WIDE]], %n) : (i64, i32) -> !fly.int_tuple<(?{i64},0,?)>
# CHECK-NEXT: fly.memref.load(%A, %[[C]]) : (!fly.memref<f32, global, (?{i64},2,4):(8,4,1)>,
# CHECK: %[[BYTE:.*]] = fly.memref.load(%mask,
# CHECK: arith.cmpi ne, %[[BYTE]], %{{.*}} : i8
# CHECK: %[[NEW:.*]] = arith.extui %{{.*}} : i1 to i8
# CHECK: fly.memref.store(%[[NEW]], %mask,
@fly.kernel
def tensors(A: fx.Tensor, mask: fx.Tensor, n: fx.Int32):
    value = A[n, 0, n]
    if mask[n]:
        A[0, 1, 2] = value
    mask[0] = n > 2


# CHECK-LABEL: gpu.func @lds
# CHECK: %[[P:.*]] = fly.make_ptr() {dictAttrs = {allocSize = 1088 : i64}} : () -> !fly.ptr<f32, shared, align<16>>
# CHECK: fly.make_view(%[[P]], %{{.*}}) : (!fly.ptr<f32, shared, align<16>>, !fly.layout<(16,17):(17,1)>) -> !fly.memref<f32, shared, (16,17):(17,1), align<16>>
# CHECK: gpu.barrier
# CHECK: %[[D:.*]] = fly.get_dyn_shared() : !fly.ptr<i8, shared, align<1024>>
# CHECK: fly.recast_iter(%[[D]])
# CHECK: fly.make_layout
@fly.kernel
def lds(A: fx.Tensor, mask: fx.Tensor, n: fx.Int32):
    tile = fx.shared_array(fx.Float32, (16, 17))
    tile[fx.thread_idx.y, fx.thread_idx.x] = 1.0
    fx.barrier()
    rest = fx.dynamic_shared(fx.Float32, (n, 4))
    rest[0, 3] = tile[0, 0]


# CHECK: gpu.launch_func @kernels::@lds {{.*}} dynamic_shared_memory_size %{{.*}} args(
@fly.jit
def entry(A: fx.Tensor[fx.Float32, None, 2, 4], mask: fx.Tensor[fx.Boolean, "n"], n: fx.Int32):
    tensors(A, mask, n).launch(grid=1, block=64)
    lds(A, mask, n).launch(grid=1, block=(16, 16), smem=n * 16)
