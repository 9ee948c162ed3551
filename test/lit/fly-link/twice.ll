; A kernel that two objects define.
; RUN: fly-llc %s -o %t.o
; RUN: not fly-link %t.o %t.o 2>&1 | %filecheck %s

; CHECK: error: k is defined twice: in {{.*}}.o and in {{.*}}.o

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k() #0 {
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
