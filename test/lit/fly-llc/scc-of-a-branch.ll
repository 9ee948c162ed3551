; LLVM's si-pre-emit-peephole erases an S_AND whose SCC a select reads (issue 215745): it is left out
; for such a module, and only for such a module.
; RUN: fly-llc --emit asm %s | %filecheck %s
; RUN: fly-llc %s -o %t.o
; RUN: fly-llc --disable-pass si-pre-emit-peephole %s | cmp - %t.o
; RUN: fly-llc --stop-before si-pre-emit-peephole %s | fly-llc | cmp - %t.o
; RUN: fly-llc --insert pre-waits=cat %s | cmp - %t.o

; CHECK: v_cmp_gt_i64_e32 vcc
; CHECK: s_and_b64 vcc, exec, vcc
; CHECK-NEXT: s_cbranch_vccnz
; CHECK: s_cselect_b32

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k(i64 %n) #0 {
entry:
  br label %outer
outer:
  %k = phi i64 [ 1, %entry ], [ 0, %inner ], [ 0, %outer ]
  %c = icmp sgt i64 %k, %n
  %bound = select i1 %c, i64 7, i64 %n
  br i1 %c, label %outer, label %inner
inner:
  %done = icmp eq i64 5, %bound
  br i1 %done, label %outer, label %inner
}

attributes #0 = { "target-cpu"="gfx942" }
