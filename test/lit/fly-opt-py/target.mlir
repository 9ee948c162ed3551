// What a target puts on the module and on the kernels, so that a bare opt and a bare llc do right.
// RUN: fly-opt-py --target gfx90a %s | %filecheck %s --check-prefixes=CHECK,GFX90A
// RUN: fly-opt-py --target gfx942 %s | %filecheck %s --check-prefixes=CHECK,GFX942
// RUN: fly-opt-py --target gfx950 %s | %filecheck %s --check-prefixes=CHECK,GFX950
// RUN: fly-opt-py --target gfx1100 %s | %filecheck %s --check-prefixes=CHECK,GFX1100
// RUN: fly-opt-py --target gfx1201 %s | %filecheck %s --check-prefixes=CHECK,GFX1201
// RUN: fly-opt-py --target gfx942 %s | %llc -filetype=null -mcpu=gfx942
// RUN: fly-opt-py --target gfx1201 %s | %llc -filetype=null
// RUN: fly-opt-py --target gfx942 %s | %opt -S -O3 | %llc -filetype=null -mcpu=gfx942

// CHECK: target datalayout = "e-m:e-p:64:64-
// CHECK-NEXT: target triple = "amdgcn-amd-amdhsa"
// CHECK: define amdgpu_kernel void @fixed({{.*}}) #[[FIXED:[0-9]+]] !reqd_work_group_size
// CHECK: atomicrmw fadd ptr addrspace(1) {{.*}} !amdgpu.no.fine.grained.memory {{.*}} !amdgpu.no.remote.memory
// CHECK: define amdgpu_kernel void @free({{.*}}) #[[FREE:[0-9]+]] {
// CHECK: attributes #[[FIXED]] = { "amdgpu-flat-work-group-size"="256,256" "denormal-fp-math"="ieee,ieee"
// GFX90A-SAME: "target-cpu"="gfx90a"
// GFX942-SAME: "target-cpu"="gfx942"
// GFX950-SAME: "target-cpu"="gfx950"
// GFX1100-SAME: "target-cpu"="gfx1100"
// GFX1201-SAME: "target-cpu"="gfx1201"
// CHECK-SAME: "uniform-work-group-size"="true"
// CHECK: attributes #[[FREE]] = { "amdgpu-flat-work-group-size"="1,1024"
// CHECK: !"amdhsa_code_object_version", i32 600
module {
  gpu.module @kernels {
    gpu.func @fixed(%p: !llvm.ptr<1>, %x: f32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %old = llvm.atomicrmw fadd %p, %x syncscope("agent") monotonic : !llvm.ptr<1>, f32
      gpu.return
    }
    gpu.func @free(%p: !llvm.ptr<1>) kernel {
      gpu.return
    }
  }
}
