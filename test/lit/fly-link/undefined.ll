; A symbol that nothing defines: its name, who uses it, and who would define it.
; RUN: fly-llc %s | not fly-link 2>&1 | %filecheck %s
; RUN: sed s/__ocml_tanh_f32/_Z5scalefPKf/ %s | fly-llc | not fly-link 2>&1 | %filecheck %s --check-prefix=CPP
; RUN: sed s/__ocml_tanh_f32/tanhf/ %s | fly-llc | not fly-link 2>&1 | %filecheck %s --check-prefix=LIBM

; CHECK: fly-link: error: <stdin>: undefined symbol __ocml_tanh_f32, used in k
; CHECK-NEXT: ROCm's device libraries define it: fly-opt-py --target links them into the IR
; CHECK-NEXT: reproduce: fly-link

; CPP: undefined symbol scale(float, float const*), used in k
; CPP-NEXT: name the object that defines it on fly-link's command line

; LIBM: undefined symbol tanhf, used in k
; LIBM-NEXT: no C math library exists on a GPU

target triple = "amdgcn-amd-amdhsa"

declare float @__ocml_tanh_f32(float)

define amdgpu_kernel void @k(ptr addrspace(1) %p, float %x) #0 {
  %y = call float @__ocml_tanh_f32(float %x)
  store float %y, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
