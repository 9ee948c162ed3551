; Filters within code generation: one of fly-llc's own, any command, a pass left out.
; RUN: fly-llc --insert 'pre-emit=nop-sled --count 2' --emit asm %s | %filecheck %s --check-prefix=SLED
; RUN: fly-llc --insert "after:finalize-isel=sed s/V_ADD_F32/V_SUB_F32/" --emit asm %s | %filecheck %s --check-prefix=SED
; RUN: fly-llc --insert pre-ra=cat --insert post-ra=cat --disable-pass postmisched --emit asm %s | %filecheck %s --check-prefix=SAME
; RUN: fly-llc --insert pre-emit=nop-sled --diff %s -o %t.o 2>&1 | %filecheck %s --check-prefix=DIFF
; RUN: fly-llc --dump-mir %t.mir %s -o %t.o
; RUN: ls %t.mir | %filecheck %s --check-prefix=DUMP
; RUN: not fly-llc --insert post-ra=false %s 2>&1 | %filecheck %s --check-prefix=FALSE
; RUN: not fly-llc --insert after:greedy=cat %s 2>&1 | %filecheck %s --check-prefix=PLACE

; SLED: k:
; SLED: s_nop 0
; SLED-NEXT: s_nop 0
; SLED-NEXT: s_load_dwordx2
; SED: v_sub_f32
; SAME: v_add_f32
; DIFF: diff: k
; DIFF: instructions
; DIFF: +4
; DIFF: unchanged: VALU
; DUMP: 01.after-finalize-isel.mir
; DUMP-NEXT: 02.before-greedy.mir
; DUMP-NEXT: 03.after-virtregrewriter.2.mir
; FALSE: fly-llc: error: the filter false (after virtregrewriter,2) failed (exit status 1)
; FALSE-NEXT: reproduce: fly-llc --insert post-ra=false
; PLACE: LLVM can't resume after greedy for this module
; PLACE-NEXT: it can resume before greedy and after virtregrewriter

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  %v = load float, ptr addrspace(1) %p
  %w = fadd float %v, 1.0
  store float %w, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="gfx942" }
