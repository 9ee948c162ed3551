// RUN: fly-opt-py --fly-layout-lowering %s | FileCheck %s

// The offset is coordinate times stride, in the width of the stride.
// CHECK-LABEL: func.func @rank_2_dynamic(
// CHECK-SAME: %[[P:.*]]: !fly.ptr<f32, global>, %[[M:.*]]: i64, %[[N:.*]]: i64, %[[I:.*]]: i32, %[[J:.*]]: i32)
// CHECK-NEXT: %[[I64:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[I64]], %[[N]] : i64
// CHECK-NEXT: %[[J64:.*]] = arith.extsi %[[J]] : i32 to i64
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[ROW]], %[[J64]] : i64
// CHECK-NEXT: %[[T:.*]] = fly.make_int_tuple(%[[SUM]]) : (i64) -> !fly.int_tuple<?{i64}>
// CHECK-NEXT: %[[A:.*]] = fly.add_offset(%[[P]], %[[T]])
// CHECK-NEXT: %[[V:.*]] = fly.ptr.load(%[[A]])
// CHECK-NEXT: fly.ptr.store(%[[V]], %[[A]])
// CHECK-NEXT: return
func.func @rank_2_dynamic(%p: !fly.ptr<f32, global>, %m: i64, %n: i64, %i: i32, %j: i32) {
  %s = fly.make_int_tuple(%m, %n) : (i64, i64) -> !fly.int_tuple<(?{i64},?{i64})>
  %d = fly.make_int_tuple(%n) : (i64) -> !fly.int_tuple<(?{i64},1)>
  %l = fly.make_layout(%s, %d) : (!fly.int_tuple<(?{i64},?{i64})>, !fly.int_tuple<(?{i64},1)>)
    -> !fly.layout<(?{i64},?{i64}):(?{i64},1)>
  %v = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<(?{i64},?{i64}):(?{i64},1)>)
    -> !fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>
  %c = fly.make_int_tuple(%i, %j) : (i32, i32) -> !fly.int_tuple<(?,?)>
  %x = fly.memref.load(%v, %c)
    : (!fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>, !fly.int_tuple<(?,?)>) -> f32
  fly.memref.store(%x, %v, %c)
    : (f32, !fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>, !fly.int_tuple<(?,?)>) -> ()
  return
}

// A static layout that 32 bits span is counted in 32 bits, one that they don't span in 64.
// CHECK-LABEL: func.func @rank_3_static(
// CHECK-SAME: !fly.ptr<f32, global>, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[K:.*]]: i32)
// CHECK: %[[C512:.*]] = arith.constant 512 : i32
// CHECK: %[[A:.*]] = arith.muli %[[I]], %[[C512]] : i32
// CHECK: %[[C32:.*]] = arith.constant 32 : i32
// CHECK: %[[B:.*]] = arith.muli %[[J]], %[[C32]] : i32
// CHECK: %[[AB:.*]] = arith.addi %[[A]], %[[B]] : i32
// CHECK: %[[O:.*]] = arith.addi %[[AB]], %[[K]] : i32
// CHECK: fly.make_int_tuple(%[[O]]) : (i32) -> !fly.int_tuple<?>
func.func @rank_3_static(%p: !fly.ptr<f32, global>, %i: i32, %j: i32, %k: i32) -> f32 {
  %l = fly.static : !fly.layout<(8,16,32):(512,32,1)>
  %v = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<(8,16,32):(512,32,1)>)
    -> !fly.memref<f32, global, (8,16,32):(512,32,1)>
  %c = fly.make_int_tuple(%i, %j, %k) : (i32, i32, i32) -> !fly.int_tuple<(?,?,?)>
  %x = fly.memref.load(%v, %c)
    : (!fly.memref<f32, global, (8,16,32):(512,32,1)>, !fly.int_tuple<(?,?,?)>) -> f32
  return %x : f32
}

// CHECK-LABEL: func.func @beyond_32_bits(
// CHECK-SAME: !fly.ptr<f32, global>, %[[I:.*]]: i32, %[[J:.*]]: i32)
// CHECK: %[[I64:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK: %[[C:.*]] = arith.constant 65536 : i64
// CHECK: %[[A:.*]] = arith.muli %[[I64]], %[[C]] : i64
// CHECK: %[[J64:.*]] = arith.extsi %[[J]] : i32 to i64
// CHECK: arith.addi %[[A]], %[[J64]] : i64
func.func @beyond_32_bits(%p: !fly.ptr<f32, global>, %i: i32, %j: i32) -> f32 {
  %l = fly.static : !fly.layout<(65536,65536):(65536,1)>
  %v = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<(65536,65536):(65536,1)>)
    -> !fly.memref<f32, global, (65536,65536):(65536,1)>
  %c = fly.make_int_tuple(%i, %j) : (i32, i32) -> !fly.int_tuple<(?,?)>
  %x = fly.memref.load(%v, %c)
    : (!fly.memref<f32, global, (65536,65536):(65536,1)>, !fly.int_tuple<(?,?)>) -> f32
  return %x : f32
}

// Rank 1 with stride 1: the coordinate is the offset, whatever the extent.
// CHECK-LABEL: func.func @rank_1(
// CHECK-SAME: !fly.ptr<f32, global>, %[[N:.*]]: i64, %[[I:.*]]: i32)
// CHECK-NEXT: %[[T:.*]] = fly.make_int_tuple(%[[I]]) : (i32) -> !fly.int_tuple<?>
// CHECK-NEXT: fly.add_offset(%{{.*}}, %[[T]])
func.func @rank_1(%p: !fly.ptr<f32, global>, %n: i64, %i: i32) -> f32 {
  %s = fly.make_int_tuple(%n) : (i64) -> !fly.int_tuple<?{i64}>
  %d = fly.static : !fly.int_tuple<1>
  %l = fly.make_layout(%s, %d) : (!fly.int_tuple<?{i64}>, !fly.int_tuple<1>) -> !fly.layout<?{i64}:1>
  %v = fly.make_view(%p, %l)
    : (!fly.ptr<f32, global>, !fly.layout<?{i64}:1>) -> !fly.memref<f32, global, ?{i64}:1>
  %c = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
  %x = fly.memref.load(%v, %c) : (!fly.memref<f32, global, ?{i64}:1>, !fly.int_tuple<?>) -> f32
  return %x : f32
}
