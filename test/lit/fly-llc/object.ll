; The processor of the object is the one that the IR names.
; RUN: fly-llc %s | %llvm-readelf -h -S - | %filecheck %s

; CHECK: OS/ABI: AMDGPU - HSA
; CHECK: Type: REL (Relocatable file)
; CHECK: Flags: 0x53f, gfx90a
; CHECK: .fly.manifest

target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection .fly.manifest,\22\22,@progbits"
module asm ".ascii \22{}\22"
module asm ".popsection"

define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 7, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "target-cpu"="gfx90a" }
