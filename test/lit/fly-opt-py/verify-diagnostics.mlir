// Errors that are expected make the run succeed; those that are not, or do not come, end it.
// RUN: fly-opt-py --split-input-file --verify-diagnostics --convert-gpu-to-rocdl %s
// RUN: not fly-opt-py --split-input-file --verify-diagnostics %s 2>&1 | %filecheck %s

// CHECK: fly-opt-py: error: {{.*}}verify-diagnostics.mlir:10: expected error "gpu.printf" was not produced
module {
  gpu.module @kernels {
    gpu.func @k(%x: f32) kernel {
      // expected-error@below {{gpu.printf}}
      gpu.printf "%f", %x : f32
      gpu.return
    }
  }
}
// -----
module {
  // expected-error@+1 {{Dialect `foo' not found}}
  foo.bar
}
