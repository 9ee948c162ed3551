; What the processor can't do. LLVM aborts here; a stack dump is nothing a user should see.
; RUN: not fly-llc %s 2>&1 | %filecheck %s

; CHECK: error: {{.*}}no-instruction.ll: in k: Cannot select: intrinsic %llvm.amdgcn.tanh
; CHECK-NEXT: gfx942 has no instruction for it
; CHECK-NOT: Stack dump

target triple = "amdgcn-amd-amdhsa"

declare float @llvm.amdgcn.tanh.f32(float)

define amdgpu_kernel void @k(ptr addrspace(1) %p, float %x) #0 {
  %y = call float @llvm.amdgcn.tanh.f32(float %x)
  store float %y, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
