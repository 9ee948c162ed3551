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

// A while loop carries the struct through both of its blocks, a call takes and gives it, and so does
// what returns it; in none of them is the layout put together.
// CHECK-LABEL: func.func @around(
// CHECK-SAME: -> !llvm.struct<packed (struct<packed (i32)>, struct<packed (i32)>)>
// CHECK: %[[L:.*]] = fly.make_layout
// CHECK: %[[S:.*]] = llvm.insertvalue %{{.*}}, %{{.*}}[1] : !llvm.struct<packed (struct<packed (i32)>, struct<packed (i32)>)>
// CHECK-NOT: fly.make_layout
// CHECK: %[[W:.*]] = scf.while (%[[A:.*]] = %[[S]])
// CHECK: scf.condition(%{{.*}}) %[[A]]
// CHECK: ^bb0(%[[B:.*]]: !llvm.struct<
// CHECK: scf.yield %[[B]]
// CHECK: %[[C:.*]] = call @callee(%[[W]])
// CHECK: return %[[C]]
func.func @around(%i: i32, %p: i1) -> !fly.layout<(4,?):(?,1)> {
  %s = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<(4,?)>
  %d = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<(?,1)>
  %l = fly.make_layout(%s, %d) : (!fly.int_tuple<(4,?)>, !fly.int_tuple<(?,1)>) -> !fly.layout<(4,?):(?,1)>
  %w = scf.while (%x = %l) : (!fly.layout<(4,?):(?,1)>) -> !fly.layout<(4,?):(?,1)> {
    scf.condition(%p) %x : !fly.layout<(4,?):(?,1)>
  } do {
  ^bb0(%y: !fly.layout<(4,?):(?,1)>):
    scf.yield %y : !fly.layout<(4,?):(?,1)>
  }
  %r = call @callee(%w) : (!fly.layout<(4,?):(?,1)>) -> !fly.layout<(4,?):(?,1)>
  return %r : !fly.layout<(4,?):(?,1)>
}
func.func private @callee(!fly.layout<(4,?):(?,1)>) -> !fly.layout<(4,?):(?,1)>

// A tensor of coordinates is its base and its layout; an atom with state goes as it is.
// CHECK-LABEL: func.func @coordinates(
// CHECK-SAME: %[[V:.*]]: !llvm.struct<packed (struct<packed (i32)>, struct<packed (struct<packed (i32)>)>)>,
// CHECK-SAME: %[[ATOM:.*]]: !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>, 16>)
// CHECK: %[[B:.*]] = fly.make_int_tuple(%{{.*}}) : (i32) -> !fly.int_tuple<(16,?)>
// CHECK: %[[N:.*]] = fly.make_layout({{.*}}) : (!fly.int_tuple<(8,?)>, !fly.int_tuple<(1E0,1E1)>)
// CHECK: %[[M:.*]] = fly.make_view(%[[B]], %[[N]])
// CHECK: fly.get_iter(%[[M]])
// CHECK: return %{{.*}}, %[[ATOM]]
func.func @coordinates(%v: !fly.coord_tensor<(16,?), (8,?):(1E0,1E1)>, %a: !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>, 16>) -> (!fly.int_tuple<(16,?)>, !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>, 16>) {
  %b = fly.get_iter(%v) : (!fly.coord_tensor<(16,?), (8,?):(1E0,1E1)>) -> !fly.int_tuple<(16,?)>
  return %b, %a : !fly.int_tuple<(16,?)>, !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>, 16>
}
