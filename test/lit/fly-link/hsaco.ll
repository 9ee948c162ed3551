; What fly-link makes is what ld.lld makes; the plan and the kernel are in it.
; RUN: llc -mcpu=gfx942 -filetype=obj < %s > %t.o
; RUN: ld.lld -shared --no-undefined %t.o -o %t.lld
; RUN: fly-link < %t.o > %t.hsaco
; RUN: cmp %t.lld %t.hsaco
; RUN: fly-link %t.o -o %t.again
; RUN: cmp %t.hsaco %t.again
; RUN: %llvm-readelf -h -s -p .fly.manifest %t.hsaco | %filecheck %s

; CHECK: Type: DYN (Shared object file)
; CHECK: Flags: 0x54c, gfx942
; CHECK: OBJECT GLOBAL {{.*}} k.kd
; CHECK: String dump of section '.fly.manifest'
; CHECK: {"entry":"k","expressions"

target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection .fly.manifest,\22\22,@progbits"
module asm ".ascii \22{\5C\22entry\5C\22:\5C\22k\5C\22,\5C\22expressions\5C\22:[[\5C\22const\5C\22,1]],\5C\22launches\5C\22:[{\5C\22arguments\5C\22:[],\5C\22block\5C\22:[0,0,0],\5C\22grid\5C\22:[0,0,0],\5C\22kernel\5C\22:\5C\22k\5C\22,\5C\22lds\5C\22:0}],\5C\22parameters\5C\22:[],\5C\22target\5C\22:\5C\22gfx942\5C\22,\5C\22version\5C\22:2}\22"
module asm ".popsection"

define amdgpu_kernel void @k() #0 {
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
