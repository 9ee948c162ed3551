; A library of device functions links; that nothing in it can be launched is said.
; RUN: fly-llc %s | fly-link -o %t.hsaco 2>&1 | %filecheck %s
; RUN: %llvm-nm %t.hsaco | %filecheck %s --check-prefix=SYMBOL

; CHECK: fly-link: warning: the HSACO defines no kernel: nothing can be launched
; SYMBOL: T helper

target triple = "amdgcn-amd-amdhsa"

define i32 @helper(i32 %x) #0 {
  ret i32 %x
}

attributes #0 = { "target-cpu"="gfx942" }
