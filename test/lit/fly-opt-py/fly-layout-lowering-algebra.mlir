// RUN: fly-opt-py --fly-layout-lowering %s | FileCheck %s

// An extent is the value the shape was made of.
// CHECK-LABEL: func.func @extent(
// CHECK-SAME: %[[M:.*]]: i64, %[[N:.*]]: i64)
// CHECK-NEXT: return %[[N]]
func.func @extent(%m: i64, %n: i64) -> i64 {
  %s = fly.make_int_tuple(%m, %n) : (i64, i64) -> !fly.int_tuple<(?{i64},?{i64})>
  %e = fly.get(%s) {mode = array<i32: 1>} : (!fly.int_tuple<(?{i64},?{i64})>) -> !fly.int_tuple<?{i64}>
  %x = fly.get_scalar(%e) : (!fly.int_tuple<?{i64}>) -> i64
  return %x : i64
}

// (65536,65536) has 2^32 elements.
// CHECK-LABEL: func.func @size(
// CHECK-NEXT: %[[C:.*]] = arith.constant 4294967296 : i64
// CHECK-NEXT: return %[[C]]
func.func @size() -> i64 {
  %s = fly.static : !fly.int_tuple<(65536,65536)>
  %n = fly.size(%s) : (!fly.int_tuple<(65536,65536)>) -> !fly.int_tuple<4294967296>
  %x = fly.get_scalar(%n) : (!fly.int_tuple<4294967296>) -> i64
  return %x : i64
}

// A flat coordinate counts with the first mode fastest.
// CHECK-LABEL: func.func @flat(
// CHECK-SAME: %[[I:.*]]: i32)
// CHECK-NEXT: %[[C4:.*]] = arith.constant 4 : i32
// CHECK-NEXT: %[[R:.*]] = arith.remsi %[[I]], %[[C4]] : i32
// CHECK-NEXT: %[[Q:.*]] = arith.divsi %[[I]], %[[C4]] : i32
// CHECK-NEXT: %[[C8:.*]] = arith.constant 8 : i32
// CHECK-NEXT: %[[A:.*]] = arith.muli %[[R]], %[[C8]] : i32
// CHECK-NEXT: %[[O:.*]] = arith.addi %[[A]], %[[Q]] : i32
// CHECK-NEXT: return %[[O]]
func.func @flat(%i: i32) -> i32 {
  %l = fly.static : !fly.layout<(4,8):(8,1)>
  %c = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
  %o = fly.crd2idx(%c, %l) : (!fly.int_tuple<?>, !fly.layout<(4,8):(8,1)>) -> !fly.int_tuple<?>
  %x = fly.get_scalar(%o) : (!fly.int_tuple<?>) -> i32
  return %x : i32
}

// What another dialect's op takes is left in normal form.
// CHECK-LABEL: func.func @kept(
// CHECK-SAME: %[[X:.*]]: i32)
// CHECK-NEXT: %[[C:.*]] = arith.constant 4 : i32
// CHECK-NEXT: %[[M:.*]] = arith.muli %[[X]], %[[C]] : i32
// CHECK-NEXT: %[[T:.*]] = fly.make_int_tuple(%[[M]]) : (i32) -> !fly.int_tuple<(?{div=4},16)>
// CHECK-NEXT: return %[[T]]
func.func @kept(%x: i32) -> !fly.int_tuple<(?{div=4},16)> {
  %a = fly.make_int_tuple(%x) : (i32) -> !fly.int_tuple<(?,8)>
  %b = fly.static : !fly.int_tuple<(4,2)>
  %c = fly.int_tuple_mul(%a, %b)
    : (!fly.int_tuple<(?,8)>, !fly.int_tuple<(4,2)>) -> !fly.int_tuple<(?{div=4},16)>
  return %c : !fly.int_tuple<(?{div=4},16)>
}

// Two constant steps behind a dynamic one become one step.
// CHECK-LABEL: func.func @offsets(
// CHECK-SAME: %[[P:.*]]: !fly.ptr<f32, shared>, %[[X:.*]]: i32)
// CHECK-NEXT: %[[D:.*]] = fly.make_int_tuple(%[[X]])
// CHECK-NEXT: %[[B:.*]] = fly.add_offset(%[[P]], %[[D]])
// CHECK-NEXT: %[[S:.*]] = fly.make_int_tuple() : () -> !fly.int_tuple<96>
// CHECK-NEXT: %[[Q:.*]] = fly.add_offset(%[[B]], %[[S]])
// CHECK-NEXT: fly.ptr.load(%[[Q]])
func.func @offsets(%p: !fly.ptr<f32, shared>, %x: i32) -> f32 {
  %d = fly.make_int_tuple(%x) : (i32) -> !fly.int_tuple<?>
  %a = fly.static : !fly.int_tuple<64>
  %b = fly.static : !fly.int_tuple<32>
  %q = fly.add_offset(%p, %a)
    : (!fly.ptr<f32, shared>, !fly.int_tuple<64>) -> !fly.ptr<f32, shared>
  %r = fly.add_offset(%q, %d) : (!fly.ptr<f32, shared>, !fly.int_tuple<?>) -> !fly.ptr<f32, shared>
  %s = fly.add_offset(%r, %b)
    : (!fly.ptr<f32, shared>, !fly.int_tuple<32>) -> !fly.ptr<f32, shared>
  %v = fly.ptr.load(%s) : (!fly.ptr<f32, shared>) -> f32
  return %v : f32
}

// An integer of another width than its leaf is cut or sign-extended to it.
// CHECK-LABEL: func.func @other_width(
// CHECK-SAME: %[[A:.*]]: i64, %[[B:.*]]: i32)
// CHECK-DAG: %[[X:.*]] = arith.trunci %[[A]] : i64 to i32
// CHECK-DAG: %[[Y:.*]] = arith.extsi %[[B]] : i32 to i64
// CHECK: return %[[X]], %[[Y]]
func.func @other_width(%a: i64, %b: i32) -> (i32, i64) {
  %t = fly.make_int_tuple(%a, %b) : (i64, i32) -> !fly.int_tuple<(?,?{i64})>
  %x, %y = fly.get_leaves(%t) : (!fly.int_tuple<(?,?{i64})>) -> (i32, i64)
  return %x, %y : i32, i64
}
