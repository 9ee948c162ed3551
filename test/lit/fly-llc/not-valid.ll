; The verifier doesn't say where; the line is found again.
; RUN: not fly-llc %s 2>&1 | %filecheck %s

; CHECK: error: {{.*}}not-valid.ll:14:3: the module is not valid LLVM IR: Instruction does not dominate all uses
; CHECK-NEXT: {{^}}    %p = add i32 %x, 1

target triple = "amdgcn-amd-amdhsa"

define i32 @f(i32 %x, i1 %c) #0 {
entry:
  br i1 %c, label %a, label %b

a:
  %p = add i32 %x, 1
  br label %b

b:
  ret i32 %p
}

attributes #0 = { "target-cpu"="gfx942" }
