target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @other() #0 {
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
