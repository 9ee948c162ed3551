// Functions of ROCm's device libraries are linked in, internal, with the options they ask for; opt leaves nothing of them.
// RUN: fly-opt-py --target gfx942 %s -o %t.ll
// RUN: %filecheck %s --input-file=%t.ll
// RUN: %opt -S -O3 %t.ll | %filecheck %s --check-prefix=INLINED
// RUN: %llc -mcpu=gfx942 -filetype=null %t.ll

// CHECK: @__oclc_finite_only_opt = internal {{.*}} constant i8 0
// CHECK: define amdgpu_kernel void @k(
// CHECK: call double @__ocml_exp_f64(
// CHECK: define internal double @__ocml_exp_f64(
// CHECK-NOT: @__ocml_sin_f64
// INLINED: define amdgpu_kernel void @k(
// INLINED-NOT: @__oc
module {
  gpu.module @kernels {
    gpu.func @k(%p: !llvm.ptr<1>) kernel {
      %x = llvm.load %p : !llvm.ptr<1> -> f64
      %y = math.exp %x : f64
      llvm.store %y, %p : f64, !llvm.ptr<1>
      gpu.return
    }
  }
}
