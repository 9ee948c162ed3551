; A symbol of PTX that nothing defines: its name, who uses it, and who would define it.
; RUN: fly-llc %s | not fly-link 2>&1 | %filecheck %s
; RUN: sed s/__nv_tanhf/scale/ %s | fly-llc | not fly-link 2>&1 | %filecheck %s --check-prefix=OTHER

; CHECK: fly-link: error: <stdin>: undefined symbol __nv_tanhf, used in k
; CHECK-NEXT: libdevice defines it: fly-opt-py links it into the IR (pip install nvidia-nvvm)
; CHECK-NEXT: reproduce: fly-link {{.*}}.ptx

; OTHER: undefined symbol scale, used in k
; OTHER-NEXT: link the LLVM IR that defines it before code generation, with llvm-link

target triple = "nvptx64-nvidia-cuda"

declare float @__nv_tanhf(float)

define ptx_kernel void @k(ptr addrspace(1) %p, float %x) #0 {
  %y = call float @__nv_tanhf(float %x)
  store float %y, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="sm_90a" }
