// Functions of ROCm's device libraries are linked in, internal, for the target; opt leaves nothing of them.
// RUN: fly-opt-py --target gfx942 %s -o %t.ll
// RUN: %filecheck %s --input-file=%t.ll
// RUN: %opt -S -O3 %t.ll | %filecheck %s --check-prefix=INLINED
// RUN: %llc -mcpu=gfx942 -filetype=null %t.ll

// CHECK: @__oclc_ISA_version = internal {{.*}} constant i32 9402
// CHECK: define amdgpu_kernel void @k(
// CHECK: call float @__ocml_tanh_f32(
// CHECK: define internal float @__ocml_tanh_f32(
// CHECK-NOT: @__ocml_sin_f32
// INLINED: define amdgpu_kernel void @k(
// INLINED-NOT: @__oc
module {
  gpu.module @kernels {
    gpu.func @k(%p: !llvm.ptr<1>) kernel {
      %x = llvm.load %p : !llvm.ptr<1> -> f32
      %y = math.tanh %x : f32
      llvm.store %y, %p : f32, !llvm.ptr<1>
      gpu.return
    }
  }
}
