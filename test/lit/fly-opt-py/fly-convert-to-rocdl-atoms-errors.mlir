// RUN: fly-opt-py --split-input-file --verify-diagnostics --convert-fly-to-rocdl %s

func.func @no_target(%p: !fly.ptr<f32, global>, %s: i16, %n: i64) {
  // expected-error@+1 {{fly.make_ptr: a descriptor without flags needs a target: run fly-set-target first}}
  %d = fly.make_ptr(%p, %s, %n) : (!fly.ptr<f32, global>, i16, i64) -> !fly.ptr<f32, #fly_rocdl.buffer_desc>
  return
}
// -----
func.func @both_sides(%a: !fly.memref<f32, global, 1:1>, %b: !fly.memref<f32, global, 1:1>) {
  %c = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>
  // expected-error@+1 {{!fly_rocdl.cdna3.buffer_copy<32> copies between registers and memory with a buffer descriptor}}
  fly.copy_atom_call(%c, %a, %b) : (!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>, !fly.memref<f32, global, 1:1>, !fly.memref<f32, global, 1:1>) -> ()
  return
}
// -----
func.func @too_many(%a: !fly.memref<f32, global, 4:1>, %r: !fly.memref<f32, register, 4:1>) {
  %c = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<64>, 32>
  // expected-error@+1 {{!fly.universal_copy<64> moves 64 bits, but vector<4xf32> has 128}}
  fly.copy_atom_call(%c, %a, %r) : (!fly.copy_atom<!fly.universal_copy<64>, 32>, !fly.memref<f32, global, 4:1>, !fly.memref<f32, register, 4:1>) -> ()
  return
}
// -----
func.func @too_few(%r: !fly.memref<f16, register, 4:1>, %d: !fly.memref<f32, register, 4:1>) {
  %m = fly.make_mma_atom : !fly.mma_atom<!fly_rocdl.gfx11.wmma<16x16x16, (f16, f16) -> f32, signA = false, signB = false, clamp = false>>
  // expected-error@+1 {{the instruction takes vector<16xf16>, but !fly.memref<f16, register, 4:1> is vector<4xf16>}}
  fly.mma_atom_call(%m, %d, %r, %r, %d) : (!fly.mma_atom<!fly_rocdl.gfx11.wmma<16x16x16, (f16, f16) -> f32, signA = false, signB = false, clamp = false>>, !fly.memref<f32, register, 4:1>, !fly.memref<f16, register, 4:1>, !fly.memref<f16, register, 4:1>, !fly.memref<f32, register, 4:1>) -> ()
  return
}
// -----
func.func @no_such_update(%x: f32, %f: !fly.memref<f32, global, 1:1>) {
  %a = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_atomic<and, f32>, 32>
  // expected-error@+1 {{there is no atomic and of f32}}
  fly.copy_atom_call_ssa(%a, %x, %f) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly.universal_atomic<and, f32>, 32>, f32, !fly.memref<f32, global, 1:1>) -> ()
  return
}
// -----
func.func @from_global(%a: !fly.memref<f16, global, 4:1>, %r: !fly.memref<f16, register, 4:1>) {
  %c = fly.make_copy_atom {valBits = 16 : i32} : !fly.copy_atom<!fly_rocdl.cdna4.lds_read_trans<trans = 16b, 64>, 16>
  // expected-error@+1 {{copies shared memory to registers}}
  fly.copy_atom_call(%c, %a, %r) : (!fly.copy_atom<!fly_rocdl.cdna4.lds_read_trans<trans = 16b, 64>, 16>, !fly.memref<f16, global, 4:1>, !fly.memref<f16, register, 4:1>) -> ()
  return
}
// -----
func.func @parted(%p: !fly.ptr<f16, shared, S<3,3,3>>) -> vector<8xf16> {
  // expected-error@+1 {{fly.ptr.load: S<3,3,3> keeps 8 bytes together, but one access has 16}}
  %v = fly.ptr.load(%p) : (!fly.ptr<f16, shared, S<3,3,3>>) -> vector<8xf16>
  return %v : vector<8xf16>
}
// -----
func.func @two_predicates(%a: !fly.memref<f32, global, 1:1>, %r: !fly.memref<f32, register, 1:1>, %p: !fly.memref<i1, register, 2:1>) {
  %c = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<32>, 32>
  // expected-error@+1 {{the predicate of a copy must be one i1, not vector<2xi1>}}
  fly.copy_atom_call(%c, %a, %r, %p) : (!fly.copy_atom<!fly.universal_copy<32>, 32>, !fly.memref<f32, global, 1:1>, !fly.memref<f32, register, 1:1>, !fly.memref<i1, register, 2:1>) -> ()
  return
}
