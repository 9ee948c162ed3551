; Where code generation can be stopped, found by trying it on this module.
; RUN: fly-llc --list-points -O0 %s | %filecheck %s

; CHECK: gfx942 -O0: {{[0-9]+}} machine passes, tried on
; CHECK: pass{{ +}}before{{ +}}after{{ +}}then
; CHECK: finalize-isel{{ +}}exact{{ +}}exact{{ +}}{{.*}}virtual registers{{ +}}(post-isel: after)
; CHECK: regallocfast{{ +}}exact
; CHECK: prologepilog{{ +}}exact{{ +}}exact{{ +}}physical registers{{ +}}(post-frame: after)
; CHECK: exact: resuming gives the bytes of an uninterrupted run

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 1, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
