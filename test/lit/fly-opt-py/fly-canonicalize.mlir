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
