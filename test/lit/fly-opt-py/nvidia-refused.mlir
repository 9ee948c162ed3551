// Instructions of AMD's GPUs are refused for NVIDIA's, with the place and what to use.
// RUN: not fly-opt-py --target sm_90a %s 2>%t.err
// RUN: %filecheck %s --input-file=%t.err

// CHECK: nvidia-refused.mlir:11:10: pass fly-check-dialects: !fly_rocdl.cdna3.mfma is an instruction of the backend rocm, which sm_90a lacks
// CHECK-NEXT: %a = fly.make_mma_atom
// CHECK-NEXT: ^
// CHECK-NEXT: use what every target has: fx.UniversalCopy128b and other universal copies, fx.UniversalFMA
module { gpu.module @kernels {
  gpu.func @k() kernel {
    %a = fly.make_mma_atom() : () -> !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>
    gpu.return
  }
} }
