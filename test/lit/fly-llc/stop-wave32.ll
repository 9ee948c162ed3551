; Waves of 32: gfx1201's kernels without branches stop and go on; gfx1100's MIR lacks what the kernel's
; descriptor needs, and the stop is refused rather than giving other code.
; RUN: fly-llc %s -o %t.o
; RUN: fly-llc --stop-after branch-folder %s -o %t.mir
; RUN: fly-llc %t.mir | cmp - %t.o
; RUN: sed s/gfx1201/gfx1100/ %s | not fly-llc --stop-after branch-folder 2>&1 | %filecheck %s

; CHECK: fly-llc: error: <stdin>: going on after branch-folder would give other code than an undisturbed run
; CHECK-NEXT: it is exact at no point for this module; llc -stop-after=branch-folder shows the MIR there

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  %v = load float, ptr addrspace(1) %p
  %w = fadd float %v, 1.0
  store float %w, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="gfx1201" }
