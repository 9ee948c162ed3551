; For NVIDIA's processors the result is PTX, with the module's LLVM IR in a section at the end.
; RUN: fly-llc %s -o %t.ptx
; RUN: %filecheck %s < %t.ptx
; RUN: fly-llc --emit ptx %s | cmp - %t.ptx
; RUN: fly-llc --emit asm %s | %filecheck %s --check-prefix=ASM
; RUN: fly-llc --emit asm %s -o %t.s
; RUN: fly-llc --stop-after machine-scheduler %s | fly-llc --emit asm | cmp - %t.s
; RUN: fly-llc --emit mir %s | %filecheck %s --check-prefix=MIR
; RUN: fly-llc --stop-before post-frame -O0 %s | fly-llc --emit asm | %filecheck %s --check-prefix=ASM
; RUN: fly-llc --insert post-isel=cat %s | cmp - %t.ptx
; RUN: fly-llc --list-points %s | %filecheck %s --check-prefix=POINTS
; RUN: not fly-llc --insert post-isel=cat --diff %s 2>%t.err
; RUN: %filecheck %s --input-file=%t.err --check-prefix=DIFF
; RUN: sed s/ptx88/ptx86/ %s | fly-llc | %filecheck %s --check-prefix=OLDER

; CHECK: .version 8.8
; CHECK-NEXT: .target sm_90a
; CHECK: //.fly.section .fly.manifest text
; CHECK-NEXT: //.fly| {}
; CHECK-NEXT: //.fly.end
; CHECK: .visible .entry k(
; CHECK: ld.global.v4.b32
; CHECK: st.global.v4.b32
; CHECK: //.fly.section .fly.llvm text
; CHECK: //.fly| define ptx_kernel void @k(
; CHECK: //.fly.end

; ASM: .visible .entry k(
; ASM-NOT: .fly.llvm

; MIR: # fly-llc: stopped before fentry-insert at -O2
; MIR: STV_i32_v4

; POINTS: sm_90a -O2:
; POINTS: finalize-isel {{.*}}(post-isel: after)
; POINTS: machine-scheduler {{.*}}(pre-sched: before)
; POINTS: nvptx-prolog-epilog {{.*}}(post-frame: after)

; DIFF: fly-llc: error: --diff compares objects, but the result for sm_90a is text

; OLDER: .version 8.6

target triple = "nvptx64-nvidia-cuda"
module asm "//.fly.section .fly.manifest text"
module asm "//.fly| {}"
module asm "//.fly.end"

define ptx_kernel void @k(ptr addrspace(1) %p) #0 {
  %v = load <4 x float>, ptr addrspace(1) %p, align 16
  %w = fadd <4 x float> %v, splat (float 1.0)
  store <4 x float> %w, ptr addrspace(1) %p, align 16
  ret void
}

attributes #0 = { "target-cpu"="sm_90a" "target-features"="+ptx88" }
