// Which way mathematics goes: LLVM's intrinsics, formulas, a wider type, the device library.
// RUN: fly-opt-py --fly-select-math --convert-math-to-rocdl=chipset=gfx942 %s | %filecheck %s

// CHECK: gpu.func @k
// CHECK: llvm.call_intrinsic "llvm.exp2.f32"
// The sine of large numbers is a branch of its own.
// CHECK: scf.if
// CHECK-NOT: math.sin
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: llvm.call_intrinsic "llvm.exp.f32"
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: call @__ocml_sin_f64(
// CHECK: llvm.call_intrinsic "llvm.sqrt.f64"
// CHECK-NEXT: arith.constant 1.0
// CHECK-NEXT: arith.divf
module {
  gpu.module @kernels {
    gpu.func @k(%x: f32, %b: bf16, %d: f64, %p: !llvm.ptr<1>) kernel {
      %0 = math.exp2 %x : f32
      %1 = math.sin %0 : f32
      llvm.store %1, %p : f32, !llvm.ptr<1>
      %2 = math.tanh %b : bf16
      llvm.store %2, %p : bf16, !llvm.ptr<1>
      %s = math.sin %d : f64
      llvm.store %s, %p : f64, !llvm.ptr<1>
      %3 = math.rsqrt %d : f64
      llvm.store %3, %p : f64, !llvm.ptr<1>
      gpu.return
    }
  }
}
