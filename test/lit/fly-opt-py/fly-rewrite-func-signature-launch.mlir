// RUN: fly-opt-py --fly-rewrite-func-signature %s | FileCheck %s

// A launch takes apart what the kernel's signature has taken apart, and nothing else: grid, block
// and dynamic LDS stay where they are.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a: !fly.memref<f32, global, ?{i64}:1>, %t: !fly.int_tuple<(4,8)>, %x: f32) kernel {
      gpu.return
    }
  }
  // CHECK-LABEL: func.func @host(
  // CHECK-SAME: %[[P:.*]]: !fly.ptr<f32, global> {fly.name = "A"},
  // CHECK-SAME: %[[S:.*]]: !llvm.struct<packed (struct<packed (i64)>)>,
  // CHECK-SAME: %[[X:.*]]: f32,
  // CHECK: gpu.launch_func @kernels::@k blocks in (%[[C:.*]], %[[C]], %[[C]]) threads in (%[[C]], %[[C]], %[[C]]) dynamic_shared_memory_size %[[LDS:.*]] args(%[[P]] : !fly.ptr<f32, global>, %[[S]] : !llvm.struct<packed (struct<packed (i64)>)>, %[[X]] : f32)
  func.func @host(%a: !fly.memref<f32, global, ?{i64}:1> {fly.name = "A"},
                  %t: !fly.int_tuple<(4,8)>, %x: f32, %c: index, %lds: i32) {
    gpu.launch_func @kernels::@k blocks in (%c, %c, %c) threads in (%c, %c, %c)
      dynamic_shared_memory_size %lds
      args(%a : !fly.memref<f32, global, ?{i64}:1>, %t : !fly.int_tuple<(4,8)>, %x : f32)
    return
  }

  // A view made here is taken apart where it is made.
  // CHECK-LABEL: func.func @made_here(
  // CHECK: %[[V:.*]] = fly.make_view
  // CHECK: %[[I:.*]] = fly.get_iter(%[[V]])
  // CHECK: %[[L:.*]] = fly.get_layout(%[[V]])
  // CHECK: %[[U:.*]] = llvm.mlir.undef : !llvm.struct<packed (struct<packed (i64)>)>
  // CHECK: %[[G:.*]] = fly.get_shape(%[[L]])
  // CHECK: %[[E:.*]] = fly.get_scalar(%[[G]])
  // CHECK: %[[W:.*]] = llvm.insertvalue %[[E]], %{{.*}}[0]
  // CHECK: %[[Z:.*]] = llvm.insertvalue %[[W]], %{{.*}}[0]
  // CHECK: gpu.launch_func {{.*}} args(%[[I]] : !fly.ptr<f32, global>, %[[Z]] : {{.*}}, %{{.*}} : f32)
  func.func @made_here(%p: !fly.ptr<f32, global>, %n: i64, %x: f32, %c: index) {
    %e = fly.make_int_tuple(%n) : (i64) -> !fly.int_tuple<?{i64}>
    %d = fly.static : !fly.int_tuple<1>
    %l = fly.make_layout(%e, %d)
      : (!fly.int_tuple<?{i64}>, !fly.int_tuple<1>) -> !fly.layout<?{i64}:1>
    %v = fly.make_view(%p, %l)
      : (!fly.ptr<f32, global>, !fly.layout<?{i64}:1>) -> !fly.memref<f32, global, ?{i64}:1>
    %t = fly.static : !fly.int_tuple<(4,8)>
    gpu.launch_func @kernels::@k blocks in (%c, %c, %c) threads in (%c, %c, %c)
      args(%v : !fly.memref<f32, global, ?{i64}:1>, %t : !fly.int_tuple<(4,8)>, %x : f32)
    return
  }
}
