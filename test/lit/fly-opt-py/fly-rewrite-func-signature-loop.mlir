// RUN: fly-opt-py --fly-rewrite-func-signature %s | FileCheck %s

// A loop that carries a view carries its pointer and its struct; the view is made again inside,
// where it is used, and after the loop.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME: %[[P:.*]]: !fly.ptr<f32, global>, %[[S:.*]]: !llvm.struct<
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[AP:.*]] = %[[P]], %[[AS:.*]] = %[[S]]) -> (!fly.ptr<f32, global>, !llvm.struct<
// CHECK: %[[E:.*]] = llvm.extractvalue %[[AS]][0]
// CHECK: %[[V:.*]] = fly.make_view(%[[AP]],
// CHECK: fly.memref.load(%[[V]],
// CHECK: scf.yield %[[AP]], %[[AS]]
// CHECK: llvm.extractvalue %[[R]]#1[0]
// CHECK: %[[A:.*]] = fly.make_view(%[[R]]#0,
// CHECK: fly.get_shape(%[[A]])
func.func @loop(%m: !fly.memref<f32, global, ?{i64}:1>, %a: index, %b: index, %c: index) {
  %i = fly.static : !fly.int_tuple<3>
  %r = scf.for %k = %a to %b step %c iter_args(%v = %m) -> (!fly.memref<f32, global, ?{i64}:1>) {
    %x = fly.memref.load(%v, %i)
      : (!fly.memref<f32, global, ?{i64}:1>, !fly.int_tuple<3>) -> f32
    scf.yield %v : !fly.memref<f32, global, ?{i64}:1>
  }
  %s = fly.get_shape(%r) : (!fly.memref<f32, global, ?{i64}:1>) -> !fly.int_tuple<?{i64}>
  return
}

// Nothing carries what is static.
// CHECK-LABEL: func.func @nothing(
// CHECK-SAME: %[[C:.*]]: i1) {
// CHECK: scf.if %[[C]] {
// CHECK: %[[T:.*]] = fly.static : !fly.int_tuple<(4,8)>
// CHECK: fly.size(%[[T]])
func.func @nothing(%c: i1, %t: !fly.int_tuple<(4,8)>) {
  %r = scf.if %c -> !fly.int_tuple<(4,8)> {
    scf.yield %t : !fly.int_tuple<(4,8)>
  } else {
    scf.yield %t : !fly.int_tuple<(4,8)>
  }
  %n = fly.size(%r) : (!fly.int_tuple<(4,8)>) -> !fly.int_tuple<32>
  return
}
