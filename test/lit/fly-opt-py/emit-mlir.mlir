// --emit mlir stops before LLVM IR, with the target on the module; --emit llvm goes on from there.
// RUN: fly-opt-py --target gfx942 --emit mlir %s -o %t.mlir
// RUN: %filecheck %s --input-file=%t.mlir
// RUN: fly-opt-py --emit llvm %t.mlir -o %t.ll
// RUN: fly-opt-py --target gfx942 %s | cmp - %t.ll

// CHECK: fly.target = "gfx942"
// CHECK: llvm.func @k(
// CHECK-SAME: rocdl.kernel
module {
  gpu.module @kernels {
    gpu.func @k(%p: !llvm.ptr<1>) kernel {
      gpu.return
    }
  }
}
