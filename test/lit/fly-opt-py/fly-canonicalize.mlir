// RUN: fly-opt-py --fly-canonicalize %s | FileCheck %s

// What the type says is written one way, whatever computed it.
// CHECK-LABEL: func.func @static_tuple(
// CHECK-NEXT: %[[T:.*]] = fly.make_int_tuple() : () -> !fly.int_tuple<(4,8)>
// CHECK-NEXT: return %[[T]]
func.func @static_tuple() -> !fly.int_tuple<(4,8)> {
  %t = fly.static : !fly.int_tuple<(4,8)>
  return %t : !fly.int_tuple<(4,8)>
}

// CHECK-LABEL: func.func @static_layout(
// CHECK-NEXT: %[[S:.*]] = fly.make_int_tuple() : () -> !fly.int_tuple<(4,8)>
// CHECK-NEXT: %[[D:.*]] = fly.make_int_tuple() : () -> !fly.int_tuple<(8,1)>
// CHECK-NEXT: %[[L:.*]] = fly.make_layout(%[[S]], %[[D]])
// CHECK-NEXT: return %[[L]]
func.func @static_layout() -> !fly.layout<(4,8):(8,1)> {
  %l = fly.static : !fly.layout<(4,8):(8,1)>
  return %l : !fly.layout<(4,8):(8,1)>
}

// A size that is known needs no layout; a dynamic argument does not hide it.
// CHECK-LABEL: func.func @known_size(
// CHECK-NEXT: %[[N:.*]] = fly.make_int_tuple() : () -> !fly.int_tuple<32>
// CHECK-NEXT: return %[[N]]
func.func @known_size(%l: !fly.layout<(4,8):(?,1)>) -> !fly.int_tuple<32> {
  %n = fly.size(%l) : (!fly.layout<(4,8):(?,1)>) -> !fly.int_tuple<32>
  return %n : !fly.int_tuple<32>
}

// CHECK-LABEL: func.func @one_maker(
// CHECK-SAME: %[[X:.*]]: i32, %[[Y:.*]]: i64)
// CHECK-NEXT: fly.make_int_tuple(%[[X]]) : (i32) -> !fly.int_tuple<(?,4)>
// CHECK-NEXT: fly.make_int_tuple(%[[Y]]) : (i64) -> !fly.int_tuple<?{i64}>
func.func @one_maker(%x: i32, %y: i64) -> (!fly.int_tuple<(?,4)>, !fly.int_tuple<?{i64}>) {
  %s = fly.make_shape(%x) : (i32) -> !fly.int_tuple<(?,4)>
  %c = fly.make_coord(%y) : (i64) -> !fly.int_tuple<?{i64}>
  return %s, %c : !fly.int_tuple<(?,4)>, !fly.int_tuple<?{i64}>
}

// A composed layout is made of its parts, a tiled copy of its atom, layout and tile; swizzles and
// tiles are only said.
// CHECK-LABEL: func.func @composed(
// CHECK-DAG:  %[[S:.*]] = fly.static : !fly.swizzle<S<3,3,3>>
// CHECK-DAG:  %[[O:.*]] = fly.make_int_tuple() : () -> !fly.int_tuple<0>
// CHECK-DAG:  %[[L:.*]] = fly.make_layout({{.*}}) : (!fly.int_tuple<(8,64)>, !fly.int_tuple<(64,1)>)
// CHECK:      %[[C:.*]] = fly.make_composed_layout(%[[S]], %[[O]], %[[L]])
// CHECK:      return %[[C]]
func.func @composed() -> !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)> {
  %c = fly.static : !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>
  return %c : !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>
}

// CHECK-LABEL: func.func @tiled(
// CHECK-DAG:  %[[A:.*]] = fly.make_copy_atom {valBits = 16 : i32}
// CHECK-DAG:  %[[L:.*]] = fly.make_layout({{.*}}) : (!fly.int_tuple<(64,4)>, !fly.int_tuple<(4,1)>)
// CHECK-DAG:  %[[T:.*]] = fly.static : !fly.tile<[256]>
// CHECK:      %[[C:.*]] = fly.make_tiled_copy(%[[A]], %[[L]], %[[T]])
// CHECK:      return %[[C]]
func.func @tiled() -> !fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>> {
  %c = fly.static : !fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>>
  return %c : !fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>>
}

// A tensor of coordinates is made of its base and its layout, a tiled multiplication of its atom,
// layout and tile; an atom that was only said is made.
// CHECK-LABEL: func.func @coordinates(
// CHECK-DAG:  %[[B:.*]] = fly.make_int_tuple() : () -> !fly.int_tuple<(16,3)>
// CHECK-DAG:  %[[L:.*]] = fly.make_layout({{.*}}) : (!fly.int_tuple<(8,4)>, !fly.int_tuple<(1E0,1E1)>)
// CHECK:      %[[V:.*]] = fly.make_view(%[[B]], %[[L]])
// CHECK:      return %[[V]]
func.func @coordinates() -> !fly.coord_tensor<(16,3), (8,4):(1E0,1E1)> {
  %v = fly.static : !fly.coord_tensor<(16,3), (8,4):(1E0,1E1)>
  return %v : !fly.coord_tensor<(16,3), (8,4):(1E0,1E1)>
}

// CHECK-LABEL: func.func @products(
// CHECK-DAG:  %[[A:.*]] = fly.make_mma_atom : !fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>
// CHECK-DAG:  %[[L:.*]] = fly.make_layout({{.*}}) : (!fly.int_tuple<(2,2,1)>, !fly.int_tuple<(1,2,0)>)
// CHECK:      %[[M:.*]] = fly.make_tiled_mma(%[[A]], %[[L]]
// CHECK:      return %[[M]]
func.func @products() -> !fly.tiled_mma<!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, <(2,2,1):(1,2,0)>> {
  %m = fly.static : !fly.tiled_mma<!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, <(2,2,1):(1,2,0)>>
  return %m : !fly.tiled_mma<!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, <(2,2,1):(1,2,0)>>
}

// What nothing uses goes, and what only that used; what does something stays.
// CHECK-LABEL: func.func @unused(
// CHECK-SAME: %[[P:.*]]: !fly.ptr<f32, global>, %[[X:.*]]: f32
// CHECK-NEXT: fly.ptr.store(%[[X]], %[[P]])
// CHECK-NEXT: return
func.func @unused(%p: !fly.ptr<f32, global>, %x: f32, %i: i32) {
  %t = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
  %q = fly.add_offset(%p, %t) : (!fly.ptr<f32, global>, !fly.int_tuple<?>) -> !fly.ptr<f32, global>
  %l = fly.static : !fly.layout<4:1>
  %v = fly.make_view(%q, %l) : (!fly.ptr<f32, global>, !fly.layout<4:1>) -> !fly.memref<f32, global, 4:1>
  fly.ptr.store(%x, %p) : (f32, !fly.ptr<f32, global>) -> ()
  return
}
