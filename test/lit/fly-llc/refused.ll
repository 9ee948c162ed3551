; llc's refusal, as ours: the place in the input, the line, a caret, and how to do it again.
; RUN: not fly-llc %s 2>&1 | %filecheck %s
; RUN: not fly-llc < %s 2>&1 | %filecheck %s --check-prefix=PIPE

; CHECK: fly-llc: error: {{.*}}refused.ll:16:13: expected type
; CHECK-NEXT: {{^}}    %w = fadd flot %v, 1.0
; CHECK-NEXT: {{^}}              ^
; CHECK-NEXT: {{^}}  reproduce: fly-llc {{.*}}refused.ll

; PIPE: fly-llc: error: <stdin>:16:13: expected type
; PIPE: reproduce: fly-llc {{.*}}failed/fly-llc-{{[0-9a-f]+}}.ll
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  %v = load float, ptr addrspace(1) %p
  %w = fadd flot %v, 1.0
  store float %w, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
