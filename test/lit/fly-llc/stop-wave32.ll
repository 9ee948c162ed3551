; Waves of 32: what MIR loses between two runs of llc is put back (halves of VCC, gfx11's reserved user
; SGPRs), and going on gives the bytes of an undisturbed run.
; RUN: fly-llc %s -o %t.o
; RUN: fly-llc --stop-after branch-folder %s | fly-llc | cmp - %t.o
; RUN: sed s/gfx1201/gfx1100/ %s > %t.ll
; RUN: fly-llc %t.ll -o %t.o
; RUN: fly-llc --stop-before pre-waits %t.ll -o %t.mir
; RUN: %filecheck %s < %t.mir
; RUN: fly-llc %t.mir | cmp - %t.o
; RUN: fly-llc --emit asm %t.mir | %filecheck %s --check-prefix=ASM

; CHECK: stopped before si-insert-waitcnts at -O2
; CHECK: V_CNDMASK_B32_e32 {{.*}}implicit {{.*}}$vcc
; ASM: .amdhsa_user_sgpr_count 13

target triple = "amdgcn-amd-amdhsa"

declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()

define amdgpu_kernel void @k(ptr addrspace(1) %p, float %a) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %item = call i32 @llvm.amdgcn.workitem.id.x()
  %id = add i32 %group, %item
  %at = getelementptr float, ptr addrspace(1) %p, i32 %id
  %v = load float, ptr addrspace(1) %at
  %less = fcmp olt float %v, %a
  %w = fadd float %v, 1.0
  %x = select i1 %less, float %v, float %w
  store float %x, ptr addrspace(1) %at
  ret void
}

attributes #0 = { "target-cpu"="gfx1201" }
