// RUN: fly-opt-py --split-input-file --verify-diagnostics --fly-layout-lowering %s

func.func @modes(%a: !fly.memref<f32, global, (4,2):(1,4)>, %b: !fly.memref<f32, register, 8:1>) {
  %atom = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
  // expected-error@below {{fly.copy: source and destination do not have the same modes: (4,2):(1,4) and 8:1}}
  fly.copy(%atom, %a, %b) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, (4,2):(1,4)>, !fly.memref<f32, register, 8:1>) -> ()
  return
}

// -----

func.func @parts(%a: !fly.memref<f32, global, (4,2):(1,4)>, %b: !fly.memref<f32, register, (4,3):(1,4)>) {
  %atom = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
  // expected-error@below {{(4,2):(1,4) and (4,3):(1,4) have 2 and 3 parts to copy}}
  fly.copy(%atom, %a, %b) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, (4,2):(1,4)>, !fly.memref<f32, register, (4,3):(1,4)>) -> ()
  return
}

// -----

func.func @too_many_copies(%a: !fly.memref<f32, global, (4,4294967296):(1,4)>, %b: !fly.memref<f32, global, (4,4294967296):(1,4)>) {
  %atom = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
  // expected-error@below {{this copy expands to 4294967296 calls of its atom; at most 65536 are unrolled: use a larger atom, or a loop over smaller tiles}}
  fly.copy(%atom, %a, %b) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, (4,4294967296):(1,4)>, !fly.memref<f32, global, (4,4294967296):(1,4)>) -> ()
  return
}

// -----

func.func @predicate(%a: !fly.memref<f32, global, (4,2,3):(1,4,8)>, %b: !fly.memref<f32, register, (4,2,3):(1,4,8)>, %p: !fly.memref<i1, register, 2:1>) {
  %atom = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
  // expected-error@below {{the predicate 2:1 does not have the modes of the source (4,2,3):(1,4,8)}}
  fly.copy(%atom, %a, %b, %p) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, (4,2,3):(1,4,8)>, !fly.memref<f32, register, (4,2,3):(1,4,8)>, !fly.memref<i1, register, 2:1>) -> ()
  return
}

// -----

func.func @how_often(%g: !fly.ptr<f32, global>, %n: i32, %b: !fly.memref<f32, register, (4,2):(1,4)>) {
  %atom = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
  %s = fly.make_int_tuple(%n) : (i32) -> !fly.int_tuple<(4,?)>
  %d = fly.static : !fly.int_tuple<(1,4)>
  %l = fly.make_layout(%s, %d) : (!fly.int_tuple<(4,?)>, !fly.int_tuple<(1,4)>) -> !fly.layout<(4,?):(1,4)>
  %a = fly.make_view(%g, %l) : (!fly.ptr<f32, global>, !fly.layout<(4,?):(1,4)>) -> !fly.memref<f32, global, (4,?):(1,4)>
  // expected-error@below {{the number of atom calls must be known, but (4,?):(1,4) is dynamic}}
  fly.copy(%atom, %a, %b) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, (4,?):(1,4)>, !fly.memref<f32, register, (4,2):(1,4)>) -> ()
  return
}

// -----

func.func @m_differs(%d: !fly.memref<f32, register, (1,2,2):(0,1,2)>, %a: !fly.memref<f32, register, (1,3):(0,1)>, %b: !fly.memref<f32, register, (1,2):(0,1)>) {
  %atom = fly.make_mma_atom : !fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>
  // expected-error@below {{the operands disagree on M: D is (1,2,2):(0,1,2), A (1,3):(0,1), B (1,2):(0,1), C (1,2,2):(0,1,2)}}
  fly.gemm(%atom, %d, %a, %b, %d) : (!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, !fly.memref<f32, register, (1,2,2):(0,1,2)>, !fly.memref<f32, register, (1,3):(0,1)>, !fly.memref<f32, register, (1,2):(0,1)>, !fly.memref<f32, register, (1,2,2):(0,1,2)>) -> ()
  return
}

// -----

func.func @too_many_products(%d: !fly.memref<f32, register, (1,4096,4096):(0,0,0)>, %a: !fly.memref<f32, register, (1,4096):(0,0)>) {
  %atom = fly.make_mma_atom : !fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>
  // expected-error@below {{this gemm expands to 16777216 calls of its atom; at most 65536 are unrolled}}
  fly.gemm(%atom, %d, %a, %a, %d) : (!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, !fly.memref<f32, register, (1,4096,4096):(0,0,0)>, !fly.memref<f32, register, (1,4096):(0,0)>, !fly.memref<f32, register, (1,4096):(0,0)>, !fly.memref<f32, register, (1,4096,4096):(0,0,0)>) -> ()
  return
}

// -----

func.func @no_n(%d: !fly.memref<f32, register, (1,2):(0,1)>, %a: !fly.memref<f32, register, (1,2):(0,1)>) {
  %atom = fly.make_mma_atom : !fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>
  // expected-error@below {{D and C must have the modes (V,M,N), A (V,M,K) or (V,M), B (V,N,K) or (V,N)}}
  fly.gemm(%atom, %d, %a, %a, %d) : (!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, !fly.memref<f32, register, (1,2):(0,1)>, !fly.memref<f32, register, (1,2):(0,1)>, !fly.memref<f32, register, (1,2):(0,1)>, !fly.memref<f32, register, (1,2):(0,1)>) -> ()
  return
}

// -----

func.func @twice(%d: !fly.memref<f32, register, (1,2,2):(0,1,2)>, %a: !fly.memref<f32, register, (1,2):(0,1)>) {
  %atom = fly.make_mma_atom : !fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>
  %t = fly.static : !fly.layout<(2,2):(1,1)>
  // expected-error@below {{traversalLayout (2,2):(1,1) does not visit each of 4 tiles once}}
  fly.gemm(%atom, %d, %a, %a, %d) traversalLayout = %t : (!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, !fly.memref<f32, register, (1,2,2):(0,1,2)>, !fly.memref<f32, register, (1,2):(0,1)>, !fly.memref<f32, register, (1,2):(0,1)>, !fly.memref<f32, register, (1,2,2):(0,1,2)>, !fly.layout<(2,2):(1,1)>) -> ()
  return
}

// -----

func.func @torn(%p: !fly.ptr<f16, shared>, %r: !fly.memref<f16, register, 8:1>) {
  %atom = fly.make_copy_atom {valBits = 16 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 16>
  %l = fly.static : !fly.composed_layout<S<2,2,3> o 0 o 8:1>
  %v = fly.make_view(%p, %l) : (!fly.ptr<f16, shared>, !fly.composed_layout<S<2,2,3> o 0 o 8:1>) -> !fly.memref<f16, shared, S<2,2,3> o 0 o 8:1>
  // expected-error@below {{fly.copy: one call takes 8:1, but S<2,2,3> keeps only 4 elements together}}
  fly.copy(%atom, %v, %r) : (!fly.copy_atom<!fly.universal_copy<128>, 16>, !fly.memref<f16, shared, S<2,2,3> o 0 o 8:1>, !fly.memref<f16, register, 8:1>) -> ()
  return
}
