// RUN: fly-opt-py --fly-rewrite-func-signature --fly-canonicalize --fly-layout-lowering --convert-fly-to-rocdl %s | FileCheck %s

// From a kernel on tensors to one on pointers: nothing of the dialect is left.
// CHECK-LABEL: gpu.func @scale(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %[[S:.*]]: !llvm.struct<packed (struct<packed (i64, i64)>, struct<packed (i64)>)>, %[[X:.*]]: f32) kernel
// CHECK-NOT: fly.
// CHECK: %[[I:.*]] = arith.index_cast
// CHECK: %[[OK:.*]] = arith.cmpi slt, %[[I]],
// CHECK: scf.if %[[OK]] {
// CHECK: %[[A:.*]] = llvm.getelementptr %[[P]][%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
// CHECK: %[[V:.*]] = llvm.load %[[A]] {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK: %[[W:.*]] = arith.mulf %[[V]], %[[X]] : f32
// CHECK: llvm.store %[[W]], %[[A]] {alignment = 4 : i64} : f32, !llvm.ptr<1>
// CHECK-NOT: fly.
gpu.module @kernels {
  gpu.func @scale(%m: !fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>, %x: f32) kernel {
    %tid = gpu.thread_id x
    %bid = gpu.block_id x
    %i = arith.index_cast %tid : index to i64
    %j = arith.index_cast %bid : index to i64
    %s = fly.get_shape(%m) : (!fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>)
      -> !fly.int_tuple<(?{i64},?{i64})>
    %e = fly.get(%s) {mode = array<i32: 0>}
      : (!fly.int_tuple<(?{i64},?{i64})>) -> !fly.int_tuple<?{i64}>
    %n = fly.get_scalar(%e) : (!fly.int_tuple<?{i64}>) -> i64
    %ok = arith.cmpi slt, %i, %n : i64
    scf.if %ok {
      %c = fly.make_int_tuple(%i, %j) : (i64, i64) -> !fly.int_tuple<(?{i64},?{i64})>
      %v = fly.memref.load(%m, %c)
        : (!fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>, !fly.int_tuple<(?{i64},?{i64})>) -> f32
      %w = arith.mulf %v, %x : f32
      fly.memref.store(%w, %m, %c)
        : (f32, !fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>, !fly.int_tuple<(?{i64},?{i64})>) -> ()
    }
    gpu.return
  }
}
