; PTX becomes a cubin with the registers that ptxas counted; without ptxas it stays PTX.
; RUN: fly-llc %s | fly-link | fly-run --inspect | %filecheck %s
; RUN: fly-llc %s | env FLY_PTXAS=none fly-link 2>%t.err | fly-run --inspect | %filecheck %s --check-prefix=PTX
; RUN: %filecheck %s --check-prefix=TOLD --input-file=%t.err
; RUN: fly-llc %s | fly-link --emit ptx | fly-link --emit sass | %filecheck %s --check-prefix=SASS
; RUN: fly-llc %s | env FLY_PTXAS=none not fly-link --emit sass 2>&1 | %filecheck %s --check-prefix=NONE

; CHECK: <stdin>: sm_90a, {{[0-9]+}} bytes, 1 kernel
; CHECK: kernel scale
; CHECK-NEXT: block      at most 128 threads in warps of 32
; CHECK-NEXT: registers  {{[0-9]+}} a thread, 0 spilled
; CHECK-NEXT: memory     0 bytes shared, 0 of stack a thread, 12 of arguments
; CHECK-NEXT: offset  size  argument
; CHECK-NEXT: 0     8  a pointer (global)
; CHECK-NEXT: 8     4  4 bytes by value (f32)

; PTX: <stdin>: PTX for sm_90a, {{[0-9]+}} bytes, 1 kernel
; TOLD: fly-link: warning: ptxas was not found; the result is PTX, which the driver compiles

; SASS: .text.scale:
; SASS: LDG.E.128
; SASS-NOT: LDL
; SASS: STG.E.128

; NONE: fly-link: error: ptxas was not found
; NONE-NEXT: pip install 'fly-filters[cuda]'

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @scale(ptr addrspace(1) align 16 %p, float %s) #0 {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr <4 x float>, ptr addrspace(1) %p, i32 %tid
  %x = load <4 x float>, ptr addrspace(1) %at, align 16
  %one = insertelement <4 x float> poison, float %s, i32 0
  %all = shufflevector <4 x float> %one, <4 x float> poison, <4 x i32> zeroinitializer
  %y = fmul <4 x float> %x, %all
  store <4 x float> %y, ptr addrspace(1) %at, align 16
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

attributes #0 = { "target-cpu"="sm_90a" "nvvm.maxntid"="128,1,1" }
