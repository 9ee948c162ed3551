// RUN: fly-opt-py --fly-rewrite-func-signature %s | FileCheck %s

// A static layout is passed by nothing; the memref is its pointer.
// CHECK-LABEL: gpu.func @static_memref(
// CHECK-SAME: %[[P:.*]]: !fly.ptr<f32, global>) kernel
// CHECK: %[[L:.*]] = fly.static : !fly.layout<32:1>
// CHECK: %[[M:.*]] = fly.make_view(%[[P]], %[[L]])
// CHECK: fly.get_iter(%[[M]])
gpu.module @kernels {
  gpu.func @static_memref(%m: !fly.memref<f32, global, 32:1>) kernel {
    %p = fly.get_iter(%m) : (!fly.memref<f32, global, 32:1>) -> !fly.ptr<f32, global>
    gpu.return
  }

  // Dynamic leaves travel in a packed struct, shape before stride; block size and argument
  // attributes stay. An argument that nobody uses is not put together again.
  // CHECK-LABEL: gpu.func @dynamic_memref(
  // CHECK-SAME: %[[P:.*]]: !fly.ptr<f32, global> {llvm.noalias},
  // CHECK-SAME: %[[S:.*]]: !llvm.struct<packed (struct<packed (i64, i64)>, struct<packed (i64)>)>,
  // CHECK-SAME: %{{.*}}: !fly.ptr<f32, global>, %{{.*}}: !llvm.struct<packed (struct<packed (i64)>)>,
  // CHECK-SAME: %[[N:.*]]: i32 {llvm.noundef})
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
  // CHECK: %[[SHAPE:.*]] = llvm.extractvalue %[[S]][0]
  // CHECK: %[[M0:.*]] = llvm.extractvalue %[[SHAPE]][0]
  // CHECK: %[[N0:.*]] = llvm.extractvalue %[[SHAPE]][1]
  // CHECK: %[[T:.*]] = fly.make_int_tuple(%[[M0]], %[[N0]]) : (i64, i64) -> !fly.int_tuple<(?{i64},?{i64})>
  // CHECK: %[[STRIDE:.*]] = llvm.extractvalue %[[S]][1]
  // CHECK: %[[D0:.*]] = llvm.extractvalue %[[STRIDE]][0]
  // CHECK: %[[D:.*]] = fly.make_int_tuple(%[[D0]]) : (i64) -> !fly.int_tuple<(?{i64},1)>
  // CHECK: %[[L:.*]] = fly.make_layout(%[[T]], %[[D]])
  // CHECK: %[[V:.*]] = fly.make_view(%[[P]], %[[L]])
  // CHECK-NOT: fly.make_view
  // CHECK: fly.get_shape(%[[V]])
  // CHECK: arith.addi %[[N]], %[[N]]
  gpu.func @dynamic_memref(
      %m: !fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)> {llvm.noalias},
      %unused: !fly.memref<f32, global, ?{i64}:1>,
      %n: i32 {llvm.noundef}) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %s = fly.get_shape(%m) : (!fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>)
      -> !fly.int_tuple<(?{i64},?{i64})>
    %k = arith.addi %n, %n : i32
    gpu.return
  }
}
