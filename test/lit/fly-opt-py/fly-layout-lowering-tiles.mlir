// RUN: fly-opt-py --fly-layout-lowering %s | FileCheck %s

// A thread's part of a view begins where its first value lies: four values of each tile of 256.
// CHECK-LABEL: func.func @tiled_copy(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f16, global>, %[[T:.*]]: i32)
// CHECK:       %[[M:.*]] = arith.muli %[[T]], %c4_i32 : i32
// CHECK:       %[[O:.*]] = fly.make_int_tuple(%[[M]]) : (i32) -> !fly.int_tuple<?{div=4}>
// CHECK:       %[[Q:.*]] = fly.add_offset(%[[P]], %[[O]])
// CHECK:       fly.add_offset(%[[Q]], %{{.*}}) : (!fly.ptr<f16, global>, !fly.int_tuple<256>)
// CHECK:       fly.ptr.load(%{{.*}}) : (!fly.ptr<f16, global>) -> vector<4xf16>
func.func @tiled_copy(%p: !fly.ptr<f16, global>, %t: i32) -> vector<8xf16> {
  %atom = fly.make_copy_atom {valBits = 16 : i32} : !fly.copy_atom<!fly.universal_copy<64>, 16>
  %l = fly.static : !fly.layout<(64,4):(4,1)>
  %s = fly.static : !fly.tile<[256]>
  %c = fly.make_tiled_copy(%atom, %l, %s) : (!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>) -> !fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>>
  %g = fly.static : !fly.layout<512:1>
  %v = fly.make_view(%p, %g) : (!fly.ptr<f16, global>, !fly.layout<512:1>) -> !fly.memref<f16, global, 512:1>
  %i = fly.make_int_tuple(%t) : (i32) -> !fly.int_tuple<?>
  %q = fly.tiled_copy.partition_src(%c, %v, %i) : (!fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>>, !fly.memref<f16, global, 512:1>, !fly.int_tuple<?>) -> !fly.memref<f16, global, ((4,1),2):((1,0),256)>
  %x = fly.memref.load_vec(%q) : (!fly.memref<f16, global, ((4,1),2):((1,0),256)>) -> vector<8xf16>
  return %x : vector<8xf16>
}

// Of A of a 16x16x16 matrix instruction thread t holds row t mod 16, from column 4·(t / 16) on.
// CHECK-LABEL: func.func @partition(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f16, shared>, %[[T:.*]]: i32)
// CHECK:       %[[L:.*]] = arith.remsi %[[T]], %c64_i32 : i32
// CHECK:       %[[M:.*]] = arith.remsi %[[L]], %c16_i32 : i32
// CHECK-NEXT:  %[[K:.*]] = arith.divsi %[[L]], %c16_i32 : i32
// CHECK-NEXT:  %[[A:.*]] = arith.muli %[[M]], %c16_i32 : i32
// CHECK:       %[[B:.*]] = arith.muli %[[K]], %c4_i32 : i32
// CHECK-NEXT:  %[[S:.*]] = arith.addi %[[A]], %[[B]] : i32
// CHECK-NEXT:  %[[O:.*]] = fly.make_int_tuple(%[[S]]) : (i32) -> !fly.int_tuple<?{div=4}>
// CHECK-NEXT:  %[[Q:.*]] = fly.add_offset(%[[P]], %[[O]])
// CHECK:       %[[V:.*]] = fly.make_view(%[[Q]], %{{.*}})
// CHECK-NEXT:  return %[[V]]
func.func @partition(%p: !fly.ptr<f16, shared>, %t: i32) -> !fly.memref<f16, shared, (4,1,1):(1,0,0)> {
  %m = fly.static : !fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, <(1,1,1):(0,0,0)>>
  %g = fly.static : !fly.layout<(16,16):(16,1)>
  %v = fly.make_view(%p, %g) : (!fly.ptr<f16, shared>, !fly.layout<(16,16):(16,1)>) -> !fly.memref<f16, shared, (16,16):(16,1)>
  %i = fly.make_int_tuple(%t) : (i32) -> !fly.int_tuple<?>
  %q = fly.tiled_mma.partition(a, %m, %v, %i) : (!fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, <(1,1,1):(0,0,0)>>, !fly.memref<f16, shared, (16,16):(16,1)>, !fly.int_tuple<?>) -> !fly.memref<f16, shared, (4,1,1):(1,0,0)>
  return %q : !fly.memref<f16, shared, (4,1,1):(1,0,0)>
}

// A composed view keeps where the part begins before its swizzle.
// CHECK-LABEL: func.func @swizzled(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f16, shared>, %[[T:.*]]: i32)
// CHECK:       %[[M:.*]] = arith.muli %[[T]], %c4_i32 : i32
// CHECK:       %[[O:.*]] = fly.make_int_tuple(%[[M]]) : (i32) -> !fly.int_tuple<?{div=4}>
// CHECK:       %[[L:.*]] = fly.make_composed_layout(%{{.*}}, %[[O]], %{{.*}})
// CHECK:       fly.make_view(%[[P]], %[[L]])
func.func @swizzled(%p: !fly.ptr<f16, shared>, %t: i32) -> !fly.memref<f16, shared, S<2,2,3> o ?{div=4} o ((4,1),1):((1,0),0)> {
  %c = fly.static : !fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>>
  %g = fly.static : !fly.composed_layout<S<2,2,3> o 0 o 256:1>
  %v = fly.make_view(%p, %g) : (!fly.ptr<f16, shared>, !fly.composed_layout<S<2,2,3> o 0 o 256:1>) -> !fly.memref<f16, shared, S<2,2,3> o 0 o 256:1>
  %i = fly.make_int_tuple(%t) : (i32) -> !fly.int_tuple<?>
  %q = fly.tiled_copy.partition_dst(%c, %v, %i) : (!fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>>, !fly.memref<f16, shared, S<2,2,3> o 0 o 256:1>, !fly.int_tuple<?>) -> !fly.memref<f16, shared, S<2,2,3> o ?{div=4} o ((4,1),1):((1,0),0)>
  return %q : !fly.memref<f16, shared, S<2,2,3> o ?{div=4} o ((4,1),1):((1,0),0)>
}

// A fragment is registers; the atom of a tiled multiplication is the one it was made of.
// CHECK-LABEL: func.func @fragment(
// CHECK:       %[[A:.*]] = fly.make_mma_atom
// CHECK:       %[[R:.*]] = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f32, register>
// CHECK:       %[[V:.*]] = fly.make_view(%[[R]],
// CHECK:       return %[[V]], %[[A]]
func.func @fragment(%p: !fly.ptr<f32, global>) -> (!fly.memref<f32, register, ((4,1),1,1):((1,0),0,0)>, !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>) {
  %atom = fly.make_mma_atom : !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>
  %l = fly.static : !fly.layout<(1,1,1):(0,0,0)>
  %m = fly.make_tiled_mma(%atom, %l) : (!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, !fly.layout<(1,1,1):(0,0,0)>) -> !fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, <(1,1,1):(0,0,0)>>
  %g = fly.static : !fly.layout<(16,16):(16,1)>
  %v = fly.make_view(%p, %g) : (!fly.ptr<f32, global>, !fly.layout<(16,16):(16,1)>) -> !fly.memref<f32, global, (16,16):(16,1)>
  %f = fly.mma.make_fragment(c, %m, %v) : (!fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, <(1,1,1):(0,0,0)>>, !fly.memref<f32, global, (16,16):(16,1)>) -> !fly.memref<f32, register, ((4,1),1,1):((1,0),0,0)>
  %a = fly.get_mma_atom(%m) : (!fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, <(1,1,1):(0,0,0)>>) -> !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>
  return %f, %a : !fly.memref<f32, register, ((4,1),1,1):((1,0),0,0)>, !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>
}

// A copy's retile is another layout of the same registers; the atom of a tiled copy without state is
// known from its type.
// CHECK-LABEL: func.func @retile(
// CHECK-SAME:  %[[R:.*]]: !fly.ptr<f16, register>)
// CHECK:       %[[L:.*]] = fly.make_layout({{.*}}) : (!fly.int_tuple<((4,1),2,1)>, !fly.int_tuple<((1,0),4,0)>)
// CHECK:       %[[V:.*]] = fly.make_view(%[[R]], %[[L]])
// CHECK:       %[[A:.*]] = fly.make_copy_atom {valBits = 16 : i32}
// CHECK:       return %[[V]], %[[A]]
func.func @retile(%r: !fly.ptr<f16, register>) -> (!fly.memref<f16, register, ((4,1),2,1):((1,0),4,0)>, !fly.copy_atom<!fly.universal_copy<64>, 16>) {
  %c = fly.static : !fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(4,4):(4,1)>, !fly.tile<[16|1]>>
  %l = fly.static : !fly.layout<(4,2,1):(1,4,0)>
  %v = fly.make_view(%r, %l) : (!fly.ptr<f16, register>, !fly.layout<(4,2,1):(1,4,0)>) -> !fly.memref<f16, register, (4,2,1):(1,4,0)>
  %t = fly.tiled_copy.retile(%c, %v) : (!fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(4,4):(4,1)>, !fly.tile<[16|1]>>, !fly.memref<f16, register, (4,2,1):(1,4,0)>) -> !fly.memref<f16, register, ((4,1),2,1):((1,0),4,0)>
  %a = fly.get_copy_atom(%c) : (!fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(4,4):(4,1)>, !fly.tile<[16|1]>>) -> !fly.copy_atom<!fly.universal_copy<64>, 16>
  return %t, %a : !fly.memref<f16, register, ((4,1),2,1):((1,0),4,0)>, !fly.copy_atom<!fly.universal_copy<64>, 16>
}

// How many atoms of C a shape has, where its rows are known when the kernel runs: the tile's 16 rows
// are those of one atom.
// CHECK-LABEL: func.func @shape(
// CHECK-SAME:  %[[M:.*]]: i32)
// CHECK:       %[[TILES:.*]] = arith.ceildivsi %[[M]], %c16_i32 : i32
// CHECK:       %[[ROWS:.*]] = arith.muli %[[TILES]], %c16_i32 : i32
// CHECK:       %[[N:.*]] = arith.ceildivsi %[[ROWS]], %c16_i32 : i32
// CHECK:       %[[S:.*]] = fly.make_int_tuple(%[[N]]) : (i32) -> !fly.int_tuple<((4,1),?,2)>
// CHECK:       return %[[S]]
func.func @shape(%m: i32) -> !fly.int_tuple<((4,1),?,2)> {
  %t = fly.static : !fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, <(1,1,1):(0,0,0)>>
  %s = fly.make_int_tuple(%m) : (i32) -> !fly.int_tuple<(?,32)>
  %r = "fly.tiled_mma.partition_shape"(%t, %s) {operand_id = #fly<mma_operand c>} : (!fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, <(1,1,1):(0,0,0)>>, !fly.int_tuple<(?,32)>) -> !fly.int_tuple<((4,1),?,2)>
  return %r : !fly.int_tuple<((4,1),?,2)>
}
