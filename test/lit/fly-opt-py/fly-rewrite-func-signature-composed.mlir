// RUN: fly-opt-py --fly-rewrite-func-signature %s | FileCheck %s

// What its type says wholly is carried by nothing: swizzles, tiles, atoms without state, composed
// layouts without dynamic integers.
// CHECK-LABEL: func.func @nothing()
// CHECK:       %[[C:.*]] = fly.static : !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>
// CHECK:       fly.composed_get_outer(%[[C]])
func.func @nothing(%s: !fly.swizzle<S<3,3,3>>, %t: !fly.tile<[4|8]>, %a: !fly.copy_atom<!fly.universal_copy<64>, 16>, %c: !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>) {
  %o = fly.composed_get_outer(%c) : (!fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>) -> !fly.layout<(8,64):(64,1)>
  return
}

// A composed layout's struct has the dynamic parts in the order outer, offset, inner.
// CHECK-LABEL: func.func @parts(
// CHECK-SAME:  %[[S:.*]]: !llvm.struct<packed (struct<packed (struct<packed (i64)>)>, struct<packed (i32)>)>)
// CHECK:       %[[F0:.*]] = llvm.extractvalue %[[S]][0]
// CHECK:       llvm.extractvalue %[[F0]][0]
// CHECK:       %[[OUTER:.*]] = fly.make_layout({{.*}}) : (!fly.int_tuple<(4,?{i64})>, !fly.int_tuple<(1,4)>)
// CHECK:       %[[F1:.*]] = llvm.extractvalue %[[S]][1]
// CHECK:       %[[I:.*]] = llvm.extractvalue %[[F1]][0]
// CHECK:       %[[OFFSET:.*]] = fly.make_int_tuple(%[[I]]) : (i32) -> !fly.int_tuple<?>
// CHECK:       %[[INNER:.*]] = fly.static : !fly.swizzle<S<2,3,3>>
// CHECK:       fly.make_composed_layout(%[[INNER]], %[[OFFSET]], %[[OUTER]])
func.func @parts(%c: !fly.composed_layout<S<2,3,3> o ? o (4,?{i64}):(1,4)>) {
  %o = fly.composed_get_offset(%c) : (!fly.composed_layout<S<2,3,3> o ? o (4,?{i64}):(1,4)>) -> !fly.int_tuple<?>
  return
}

// A call takes it apart: a memref with such a layout goes as pointer and struct.
// CHECK-LABEL: func.func @caller(
// CHECK:       %[[P:.*]] = fly.get_iter
// CHECK:       fly.composed_get_offset
// CHECK:       %[[S:.*]] = llvm.insertvalue
// CHECK:       call @callee(%[[P]], %{{.*}}) : (!fly.ptr<f16, shared>, !llvm.struct<packed (struct<packed (i32)>)>) -> ()
func.func @caller(%p: !fly.ptr<f16, shared>, %i: i32) {
  %s = fly.static : !fly.swizzle<S<2,3,3>>
  %o = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
  %l = fly.static : !fly.layout<64:1>
  %c = fly.make_composed_layout(%s, %o, %l) : (!fly.swizzle<S<2,3,3>>, !fly.int_tuple<?>, !fly.layout<64:1>) -> !fly.composed_layout<S<2,3,3> o ? o 64:1>
  %v = fly.make_view(%p, %c) : (!fly.ptr<f16, shared>, !fly.composed_layout<S<2,3,3> o ? o 64:1>) -> !fly.memref<f16, shared, S<2,3,3> o ? o 64:1>
  call @callee(%v) : (!fly.memref<f16, shared, S<2,3,3> o ? o 64:1>) -> ()
  return
}
func.func private @callee(!fly.memref<f16, shared, S<2,3,3> o ? o 64:1>)
