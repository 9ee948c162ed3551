; IR that no --target has gone through.
; RUN: not fly-llc %s 2>&1 | %filecheck %s
; RUN: sed /triple/d %s | not fly-llc 2>&1 | %filecheck %s --check-prefix=TRIPLE
; RUN: sed s/amdgcn-amd-amdhsa/x86_64-pc-linux-gnu/ %s | not fly-llc 2>&1 | %filecheck %s --check-prefix=OTHER

; CHECK: error: {{.*}}no-target.ll: no function has "target-cpu"
; CHECK-NEXT: fly-opt-py --target writes the target into the IR

; TRIPLE: error: <stdin>: the module has no target triple

; OTHER: error: <stdin>: the module is for x86_64-pc-linux-gnu; fly-llc generates code for amdgcn-amd-amdhsa

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k() {
  ret void
}
