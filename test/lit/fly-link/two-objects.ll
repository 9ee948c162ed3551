; Several objects: a plan in one, a function of the other called from the first.
; RUN: fly-llc %s -o %t.o
; RUN: fly-llc %S/Inputs/other.ll | fly-link %t.o - -o %t.hsaco
; RUN: %llvm-nm %t.hsaco | %filecheck %s

; CHECK: R k.kd
; CHECK: R other.kd

target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection .fly.manifest,\22\22,@progbits"
module asm ".ascii \22{\5C\22entry\5C\22:\5C\22k\5C\22,\5C\22expressions\5C\22:[[\5C\22const\5C\22,1]],\5C\22launches\5C\22:[{\5C\22arguments\5C\22:[],\5C\22block\5C\22:[0,0,0],\5C\22grid\5C\22:[0,0,0],\5C\22kernel\5C\22:\5C\22k\5C\22,\5C\22lds\5C\22:0}],\5C\22parameters\5C\22:[],\5C\22target\5C\22:\5C\22gfx942\5C\22,\5C\22version\5C\22:2}\22"
module asm ".popsection"

define amdgpu_kernel void @k() #0 {
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
