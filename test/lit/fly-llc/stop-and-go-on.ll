; MIR says where it was stopped, and going on gives the bytes of an undisturbed run.
; RUN: fly-llc %s -o %t.o
; RUN: fly-llc --stop-after branch-folder -O3 %s -o %t.mir
; RUN: %filecheck %s < %t.mir
; RUN: fly-llc %t.mir | cmp - %t.o
; RUN: fly-llc --emit mir %s | %filecheck %s --check-prefix=LAST
; RUN: llc -mcpu=gfx942 -stop-after=finalize-isel < %s | fly-llc --start-after finalize-isel | cmp - %t.o

; CHECK: # fly-llc: stopped after branch-folder at -O3
; CHECK: name: {{ *}}k
; CHECK: GLOBAL_STORE_DWORD

; LAST: # fly-llc: stopped before branch-relaxation at -O2
; LAST: S_WAITCNT

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  %v = load float, ptr addrspace(1) %p
  %w = fadd float %v, 1.0
  store float %w, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
