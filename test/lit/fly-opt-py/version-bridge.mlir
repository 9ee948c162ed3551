// Constants come out as every LLVM reads them.
// RUN: fly-opt-py --emit llvm %s -o %t.ll
// RUN: %filecheck %s --input-file=%t.ll
// RUN: %llvm-as %t.ll -o %t.bc

// CHECK: @singles = constant [6 x float] [float 0x3EE4F8B580000000, float 0xFFF0000000000000, float 0x7FF8000000000000, float 0x7FF0000020000000, float 0x3FB99999A0000000, float 5.000000e-01]
// CHECK: @halves = constant [3 x half] [half 0xH00A8, half 0xH7C00, half 1.500000e+00]
// CHECK: @brains = constant [2 x bfloat] [bfloat 0xR3DCD, bfloat 0xR7FC0]
// CHECK: @text = constant [11 x i8] c"float -inf\00"
// CHECK: fadd float %0, 0x3EE4F8B580000000
// CHECK: store <2 x float> <float 0x3FB99999A0000000, float 0x7FF0000000000000>
module {
  llvm.mlir.global constant @singles(dense<[0x3727C5AC, 0xFF800000, 0x7FC00000, 0x7F800001, 0x3DCCCCCD, 0.5]> : tensor<6xf32>) : !llvm.array<6 x f32>
  llvm.mlir.global constant @halves(dense<[0x00A8, 0x7C00, 1.5]> : tensor<3xf16>) : !llvm.array<3 x f16>
  llvm.mlir.global constant @brains(dense<[0x3DCD, 0x7FC0]> : tensor<2xbf16>) : !llvm.array<2 x bf16>
  llvm.mlir.global constant @text("float -inf\00") : !llvm.array<11 x i8>
  llvm.func @f(%x: f32, %p: !llvm.ptr) -> f32 {
    %c = llvm.mlir.constant(0x3727C5AC : f32) : f32
    %s = llvm.fadd %x, %c : f32
    %v = llvm.mlir.constant(dense<[0.1, 0x7F800000]> : vector<2xf32>) : vector<2xf32>
    llvm.store %v, %p : vector<2xf32>, !llvm.ptr
    llvm.return %s : f32
  }
}
