; A library of device functions links, with a warning. test/lit/host/launch_free.py has programs without kernels, which get none.
; RUN: fly-llc %s | fly-link -o %t.hsaco 2>&1 | %filecheck %s
; RUN: %llvm-nm %t.hsaco | %filecheck %s --check-prefix=SYMBOL

; CHECK: fly-link: warning: the HSACO defines no kernel: nothing can be launched
; SYMBOL: T helper

target triple = "amdgcn-amd-amdhsa"

define i32 @helper(i32 %x) #0 {
  ret i32 %x
}

attributes #0 = { "target-cpu"="gfx942" }
