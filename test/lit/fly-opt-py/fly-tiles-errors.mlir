// RUN: fly-opt-py --split-input-file --verify-diagnostics --fly-layout-lowering %s

// What a tiled op can't cut is said where it is cut, with both shapes.

!copy = !fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(4,4):(4,1)>, !fly.tile<[16|1]>>
func.func @modes(%c: !copy, %v: !fly.memref<f16, global, 64:1>, %t: !fly.int_tuple<?>) {
  // expected-error@below {{fly.tiled_copy.partition_src: 64:1 does not have the modes of the tile [16|1]}}
  %p = fly.tiled_copy.partition_src(%c, %v, %t) : (!copy, !fly.memref<f16, global, 64:1>, !fly.int_tuple<?>) -> !fly.memref<f16, global, 4:1>
  return
}

// -----

!mma = !fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, <(1,1,1):(0,0,0)>>
func.func @operand(%m: !mma, %v: !fly.memref<f16, shared, 256:1>, %t: !fly.int_tuple<?>) {
  // expected-error@below {{fly.tiled_mma.partition: operand a must have at least two modes, but is 256:1}}
  %p = fly.tiled_mma.partition(a, %m, %v, %t) : (!mma, !fly.memref<f16, shared, 256:1>, !fly.int_tuple<?>) -> !fly.memref<f16, shared, 4:1>
  return
}

// -----

!mma = !fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, <(1,1,1):(0,0,0)>>
func.func @wrong_op(%m: !mma) {
  // expected-error@below {{fly.get_copy_atom: operand #0 must be a tiled_copy, but is}}
  %a = fly.get_copy_atom(%m) : (!mma) -> !fly.copy_atom<!fly.universal_copy<64>, 16>
  return
}

// -----

func.func @too_many_registers() {
  %l = fly.static : !fly.layout<(4294967296,4294967296):(1,4294967296)>
  // expected-error@below {{fly.memref.alloca: an allocation of 18446744073709551616 elements does not fit in 64 bits}}
  %m = fly.memref.alloca(%l) : (!fly.layout<(4294967296,4294967296):(1,4294967296)>) -> !fly.memref<f32, register, (4294967296,4294967296):(1,4294967296)>
  return
}
