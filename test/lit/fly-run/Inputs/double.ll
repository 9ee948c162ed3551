; C[i] = A[i] + A[i] for i < n, in blocks of 64; with its host program.
target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection .fly.manifest,\22\22,@progbits"
module asm ".ascii \22{\5C\22entry\5C\22:\5C\22double\5C\22,\5C\22expressions\5C\22:[[\5C\22extent\5C\22,\5C\22A\5C\22,0],[\5C\22const\5C\22,64],[\5C\22ceildiv\5C\22,0,1],[\5C\22const\5C\22,1],[\5C\22const\5C\22,0]],\5C\22launches\5C\22:[{\5C\22arguments\5C\22:[[{\5C\22expression\5C\22:null,\5C\22kind\5C\22:\5C\22pointer\5C\22,\5C\22name\5C\22:\5C\22A\5C\22,\5C\22size\5C\22:8}],[{\5C\22expression\5C\22:null,\5C\22kind\5C\22:\5C\22pointer\5C\22,\5C\22name\5C\22:\5C\22C\5C\22,\5C\22size\5C\22:8}],[{\5C\22expression\5C\22:0,\5C\22kind\5C\22:\5C\22integer\5C\22,\5C\22name\5C\22:null,\5C\22size\5C\22:8}]],\5C\22block\5C\22:[1,3,3],\5C\22grid\5C\22:[2,3,3],\5C\22kernel\5C\22:\5C\22double\5C\22,\5C\22lds\5C\22:4}],\5C\22parameters\5C\22:[{\5C\22access\5C\22:\5C\22r\5C\22,\5C\22contiguous\5C\22:true,\5C\22dtype\5C\22:\5C\22f32\5C\22,\5C\22kind\5C\22:\5C\22tensor\5C\22,\5C\22name\5C\22:\5C\22A\5C\22,\5C\22shape\5C\22:[\5C\22n\5C\22],\5C\22strides\5C\22:[1]},{\5C\22access\5C\22:\5C\22w\5C\22,\5C\22contiguous\5C\22:true,\5C\22dtype\5C\22:\5C\22f32\5C\22,\5C\22kind\5C\22:\5C\22tensor\5C\22,\5C\22name\5C\22:\5C\22C\5C\22,\5C\22shape\5C\22:[\5C\22n\5C\22],\5C\22strides\5C\22:[1]}],\5C\22target\5C\22:\5C\22gfx942\5C\22,\5C\22version\5C\22:2}\22"
module asm ".popsection"

declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()

define amdgpu_kernel void @double(ptr addrspace(1) %A, ptr addrspace(1) %C, i64 %n) #0 {
entry:
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %item = call i32 @llvm.amdgcn.workitem.id.x()
  %first = mul i32 %group, 64
  %i = add i32 %first, %item
  %index = zext i32 %i to i64
  %inside = icmp slt i64 %index, %n
  br i1 %inside, label %work, label %done
work:
  %from = getelementptr float, ptr addrspace(1) %A, i64 %index
  %to = getelementptr float, ptr addrspace(1) %C, i64 %index
  %a = load float, ptr addrspace(1) %from
  %sum = fadd float %a, %a
  store float %sum, ptr addrspace(1) %to
  br label %done
done:
  ret void
}

attributes #0 = { "target-cpu"="gfx942" "amdgpu-flat-work-group-size"="1,64" }
