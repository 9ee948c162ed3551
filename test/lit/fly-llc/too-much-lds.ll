; More LDS than a workgroup can have.
; RUN: not fly-llc %s 2>&1 | %filecheck %s

; CHECK: error: {{.*}}too-much-lds.ll: local memory (400000) exceeds limit (65536) in function 'k'
; CHECK-NEXT: make the shared buffers smaller

target triple = "amdgcn-amd-amdhsa"

@lds = internal addrspace(3) global [100000 x i32] poison

define amdgpu_kernel void @k(i32 %i) #0 {
  %q = getelementptr i32, ptr addrspace(3) @lds, i32 %i
  store i32 %i, ptr addrspace(3) %q
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
