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
