; The host program: two of them, one that doesn't fit the code, one that is damaged.
; RUN: fly-llc %s -o %t.o
; RUN: sed s/@k/@other/ %s | fly-llc | not fly-link %t.o - 2>&1 | %filecheck %s --check-prefix=TWO
; RUN: sed s/@k/@other/ %s | fly-llc | not fly-link 2>&1 | %filecheck %s --check-prefix=KERNEL
; RUN: sed s/cpu.*/cpu\"=\"gfx950\"}/ %s | fly-llc | not fly-link 2>&1 | %filecheck %s --check-prefix=TARGET
; RUN: sed s/entry.*version/version/ %s | fly-llc | not fly-link 2>&1 | %filecheck %s --check-prefix=DAMAGED

; TWO: .o and <stdin> each contain a host program, but a HSACO can only have one
; KERNEL: <stdin>: the host program launches the kernel k, which no object defines
; TARGET: <stdin>: the host program is for gfx942, but the code is for gfx950
; DAMAGED: <stdin>: the host program is damaged

target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection .fly.manifest,\22\22,@progbits"
module asm ".ascii \22{\5C\22entry\5C\22:\5C\22k\5C\22,\5C\22expressions\5C\22:[[\5C\22const\5C\22,1]],\5C\22launches\5C\22:[{\5C\22arguments\5C\22:[],\5C\22block\5C\22:[0,0,0],\5C\22grid\5C\22:[0,0,0],\5C\22kernel\5C\22:\5C\22k\5C\22,\5C\22lds\5C\22:0}],\5C\22parameters\5C\22:[],\5C\22target\5C\22:\5C\22gfx942\5C\22,\5C\22version\5C\22:2}\22"
module asm ".popsection"

define amdgpu_kernel void @k() #0 {
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
