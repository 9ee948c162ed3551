; One object is for one processor, and for one setting of xnack.
; RUN: not fly-llc %s 2>&1 | %filecheck %s
; RUN: sed s/gfx90a/gfx942/ %s | not fly-llc 2>&1 | %filecheck %s --check-prefix=XNACK

; CHECK: two-processors.ll:13: the functions disagree on their target-cpu: @k has gfx942, @j has gfx90a
; XNACK: <stdin>:13: the functions disagree on their setting of xnack: @k has +xnack, @j has -xnack

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k() #0 {
  ret void
}
define amdgpu_kernel void @j() "target-cpu"="gfx90a" "target-features"="-xnack" {
  ret void
}

attributes #0 = { "target-cpu"="gfx942" "target-features"="+xnack" }
