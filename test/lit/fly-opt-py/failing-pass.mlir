// A pass of MLIR that refuses: its name, the place, the source line.
// RUN: not fly-opt-py --convert-gpu-to-rocdl %s 2>&1 | %filecheck %s

// CHECK: fly-opt-py: error: {{.*}}failing-pass.mlir:11:7: pass convert-gpu-to-rocdl: failed to legalize operation 'gpu.printf'
// CHECK-NEXT: gpu.printf "%f", %x : f32
// CHECK-NEXT: ^
// CHECK-NEXT: reproduce: fly-opt-py '--passes=gpu.module(convert-gpu-to-rocdl)' {{.*}}failing-pass.mlir
module {
  gpu.module @kernels {
    gpu.func @k(%x: f32) kernel {
      gpu.printf "%f", %x : f32
      gpu.return
    }
  }
}
