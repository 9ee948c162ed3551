// What a host program can't hold is refused at its place.
// RUN: not fly-opt-py --target gfx942 %s 2>&1 | %filecheck %s

// CHECK: fly-opt-py: error: {{.*}}host-program-refused.mlir:15:10: pass fly-extract-host-program: arith.mulf is not supported in the host function
// CHECK-NEXT: %y = arith.mulf %x, %x : f32
// CHECK-NEXT: ^
// CHECK-NEXT: a host program supports integer arithmetic
// CHECK-NEXT: reproduce: fly-opt-py --target=gfx942 {{.*}}host-program-refused.mlir
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
