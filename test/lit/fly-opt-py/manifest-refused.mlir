// What a launch plan can't hold is refused at its place.
// RUN: not fly-opt-py --target gfx942 %s 2>&1 | %filecheck %s

// CHECK: fly-opt-py: error: {{.*}}manifest-refused.mlir:15:10: pass fly-extract-plan: arith.mulf is not supported in the host function
// CHECK-NEXT: %y = arith.mulf %x, %x : f32
// CHECK-NEXT: ^
// CHECK-NEXT: a launch plan supports integer arithmetic
// CHECK-NEXT: reproduce: fly-opt-py --target=gfx942 {{.*}}manifest-refused.mlir
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: f32) kernel { gpu.return }
  }
  func.func @h(%x: f32 {fly.name = "x", fly.dtype = "f32"}) {
    %one = arith.constant 1 : index
    %y = arith.mulf %x, %x : f32
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%y : f32)
    return
  }
}
