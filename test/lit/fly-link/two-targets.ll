; Objects for different processors.
; RUN: fly-llc %s -o %t.o
; RUN: fly-llc %S/Inputs/other.ll -o %t.other.o
; RUN: not fly-link %t.o %t.other.o 2>&1 | %filecheck %s

; CHECK: fly-link: error: {{.*}}.o is code for gfx90a, {{.*}}.other.o for gfx942
; CHECK-NEXT: a HSACO contains code for one GPU: compile everything with the same --target
; CHECK-NEXT: reproduce: fly-link {{.*}}.o {{.*}}.other.o

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k() #0 {
  ret void
}

attributes #0 = { "target-cpu"="gfx90a" }
