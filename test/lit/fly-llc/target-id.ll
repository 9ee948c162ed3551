; The settings of the target ID go from the functions into the header too.
; RUN: fly-llc %s | %llvm-readelf -h - | %filecheck %s

; CHECK: Flags: 0xb4c, gfx942, xnack+, sramecc-

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k() #0 {
  ret void
}

attributes #0 = { "target-cpu"="gfx942" "target-features"="+xnack,-sramecc" }
