; What fly-llc makes is what llc makes when it is told the processor by hand.
; RUN: llc -mcpu=gfx942 -filetype=obj < %s > %t.llc.o
; RUN: fly-llc %s -o %t.file.o
; RUN: cmp %t.llc.o %t.file.o
; RUN: %llvm-as < %s | fly-llc | cmp - %t.llc.o
; RUN: llc -mcpu=gfx942 -filetype=asm -O3 < %s > %t.llc.s
; RUN: fly-llc --emit asm -O3 < %s | cmp - %t.llc.s

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  %v = load float, ptr addrspace(1) %p
  %w = fadd float %v, 1.0
  store float %w, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
