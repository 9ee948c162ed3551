// With no option the tool parses, verifies and prints, and what it prints it reads again.
// RUN: fly-opt-py %s | %filecheck %s
// RUN: fly-opt-py %s -o %t.once
// RUN: fly-opt-py %t.once -o %t.twice
// RUN: cmp %t.once %t.twice

// CHECK: module attributes {gpu.container_module}
// CHECK-NEXT: gpu.module @kernels
// CHECK: gpu.func @copy(%[[A:.*]]: !fly.memref<f32, global, (4,8):(8,1)>, %[[I:.*]]: i64) kernel
// CHECK: %[[C:.*]] = fly.make_int_tuple(%[[I]]) : (i64) -> !fly.int_tuple<(?{i64},0)>
// CHECK: fly.memref.load(%[[A]], %[[C]]) : (!fly.memref<f32, global, (4,8):(8,1)>, !fly.int_tuple<(?{i64},0)>) -> f32
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @copy(%A: !fly.memref<f32, global, (4, 8):(8, 1)>, %i: i64) kernel {
      %c = fly.make_int_tuple(%i) : (i64) -> !fly.int_tuple<(?{i64},0)>
      %v = fly.memref.load(%A, %c) : (!fly.memref<f32, global, (4,8):(8,1)>, !fly.int_tuple<(?{i64},0)>) -> f32
      gpu.return
    }
  }
}
