target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @ranks(ptr addrspace(1) %out) #0 {
  %x = call i32 @llvm.amdgcn.workgroup.id.x()
  %rank = call i32 @llvm.amdgcn.cluster.workgroup.flat.id()
  %last = call i32 @llvm.amdgcn.cluster.workgroup.max.flat.id()
  %tens = mul i32 %last, 10
  %value = add i32 %tens, %rank
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %x
  store i32 %value, ptr addrspace(1) %to
  ret void
}

declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.cluster.workgroup.flat.id()
declare i32 @llvm.amdgcn.cluster.workgroup.max.flat.id()

attributes #0 = { "target-cpu"="gfx1250" "amdgpu-flat-work-group-size"="1,64" }
