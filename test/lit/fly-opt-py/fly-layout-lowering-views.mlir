// RUN: fly-opt-py --fly-layout-lowering %s | FileCheck %s

// A swizzle permutes the offset; the layout that takes the coordinate comes first.
// CHECK-LABEL: func.func @swizzled(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f16, shared, align<16>>, %[[R:.*]]: i32, %[[C:.*]]: i32)
// CHECK:       %[[M:.*]] = arith.muli %[[R]], %c64_i32 : i32
// CHECK-NEXT:  %[[O:.*]] = arith.addi %[[M]], %[[C]] : i32
// CHECK:       %[[A:.*]] = arith.andi %[[O]], %c448_i32 : i32
// CHECK-NEXT:  %[[B:.*]] = arith.shrui %[[A]], %c3_i32 : i32
// CHECK-NEXT:  %[[X:.*]] = arith.xori %[[O]], %[[B]] : i32
// CHECK-NEXT:  %[[T:.*]] = fly.make_int_tuple(%[[X]])
// CHECK-NEXT:  %[[Q:.*]] = fly.add_offset(%[[P]], %[[T]])
// CHECK-NEXT:  fly.ptr.load(%[[Q]])
func.func @swizzled(%p: !fly.ptr<f16, shared, align<16>>, %row: i32, %col: i32) -> f16 {
  %s = fly.static : !fly.swizzle<S<3,3,3>>
  %z = fly.static : !fly.int_tuple<0>
  %l = fly.static : !fly.layout<(8,64):(64,1)>
  %c = fly.make_composed_layout(%s, %z, %l) : (!fly.swizzle<S<3,3,3>>, !fly.int_tuple<0>, !fly.layout<(8,64):(64,1)>) -> !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>
  %v = fly.make_view(%p, %c) : (!fly.ptr<f16, shared, align<16>>, !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>) -> !fly.memref<f16, shared, S<3,3,3> o 0 o (8,64):(64,1), align<16>>
  %x = fly.make_int_tuple(%row, %col) : (i32, i32) -> !fly.int_tuple<(?,?)>
  %e = fly.memref.load(%v, %x) : (!fly.memref<f16, shared, S<3,3,3> o 0 o (8,64):(64,1), align<16>>, !fly.int_tuple<(?,?)>) -> f16
  return %e : f16
}

// A slice of a composed layout keeps where it begins before the swizzle: the pointer stays.
// CHECK-LABEL: func.func @row(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f16, shared, align<16>>, %[[R:.*]]: i32)
// CHECK:       %[[M:.*]] = arith.muli %[[R]], %c64_i32 : i32
// CHECK:       %[[O:.*]] = fly.make_int_tuple(%[[M]]) : (i32) -> !fly.int_tuple<?{div=64}>
// CHECK:       %[[L:.*]] = fly.make_composed_layout(%{{.*}}, %[[O]], %{{.*}})
// CHECK-NEXT:  %[[V:.*]] = fly.make_view(%[[P]], %[[L]])
// CHECK-NEXT:  return %[[V]]
func.func @row(%p: !fly.ptr<f16, shared, align<16>>, %row: i32) -> !fly.memref<f16, shared, S<3,3,3> o ?{div=64} o 64:1, align<16>> {
  %c = fly.static : !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>
  %v = fly.make_view(%p, %c) : (!fly.ptr<f16, shared, align<16>>, !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>) -> !fly.memref<f16, shared, S<3,3,3> o 0 o (8,64):(64,1), align<16>>
  %x = fly.make_int_tuple(%row) : (i32) -> !fly.int_tuple<(?,*)>
  %e = fly.slice(%v, %x) : (!fly.memref<f16, shared, S<3,3,3> o 0 o (8,64):(64,1), align<16>>, !fly.int_tuple<(?,*)>) -> !fly.memref<f16, shared, S<3,3,3> o ?{div=64} o 64:1, align<16>>
  return %e : !fly.memref<f16, shared, S<3,3,3> o ?{div=64} o 64:1, align<16>>
}

// A decomposition applies the swizzle to where the view begins: S<3,3,3> leaves 8 as it is.
// CHECK-LABEL: func.func @chunk(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f16, shared, align<16>>, %{{.*}}: i32)
// CHECK:       %[[Q:.*]] = fly.add_offset(%[[P]], %{{.*}}) : (!fly.ptr<f16, shared, align<16>>, !fly.int_tuple<8>)
// CHECK:       %[[V:.*]] = fly.make_view(%[[Q]], %{{.*}}) : (!fly.ptr<f16, shared, align<16>>, !fly.layout<8:1>)
// CHECK-NEXT:  return %[[V]]
func.func @chunk(%p: !fly.ptr<f16, shared, align<16>>, %row: i32) -> !fly.memref<f16, shared, 8:1, align<16>> {
  %c = fly.static : !fly.composed_layout<S<3,3,3> o 8 o 8:1>
  %v = fly.make_view(%p, %c) : (!fly.ptr<f16, shared, align<16>>, !fly.composed_layout<S<3,3,3> o 8 o 8:1>) -> !fly.memref<f16, shared, S<3,3,3> o 8 o 8:1, align<16>>
  %e = fly.decomposition(%v) : (!fly.memref<f16, shared, S<3,3,3> o 8 o 8:1, align<16>>) -> !fly.memref<f16, shared, 8:1, align<16>>
  return %e : !fly.memref<f16, shared, 8:1, align<16>>
}

// An element of a view of coordinates is a coordinate: the base and what the bases count.
// CHECK-LABEL: func.func @coords(
// CHECK-SAME:  %[[I:.*]]: i32, %[[N:.*]]: i32)
// CHECK:       %[[A:.*]] = arith.remsi %[[I]], %[[N]] : i32
// CHECK-NEXT:  %[[B:.*]] = arith.divsi %[[I]], %[[N]] : i32
// CHECK:       %[[S:.*]] = arith.addi %[[A]], %c16_i32 : i32
// CHECK-NEXT:  return %[[S]], %[[B]]
func.func @coords(%i: i32, %n: i32) -> (i32, i32) {
  %sh = fly.make_int_tuple(%n) : (i32) -> !fly.int_tuple<(?,8)>
  %l = fly.make_identity_layout(%sh) : (!fly.int_tuple<(?,8)>) -> !fly.layout<(?,8):(1E0,1E1)>
  %b = fly.static : !fly.int_tuple<(16,0)>
  %v = fly.make_view(%b, %l) : (!fly.int_tuple<(16,0)>, !fly.layout<(?,8):(1E0,1E1)>) -> !fly.coord_tensor<(16,0), (?,8):(1E0,1E1)>
  %x = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
  %e = fly.memref.load(%v, %x) : (!fly.coord_tensor<(16,0), (?,8):(1E0,1E1)>, !fly.int_tuple<?>) -> !fly.int_tuple<(?,?)>
  %r, %s = fly.get_leaves(%e) : (!fly.int_tuple<(?,?)>) -> (i32, i32)
  return %r, %s : i32, i32
}

// A coord swizzle: two bits of the row, from bit 1 on, flip those of the column.
// CHECK-LABEL: func.func @permuted(
// CHECK-SAME:  %[[I:.*]]: i32, %[[J:.*]]: i32)
// CHECK:       %[[A:.*]] = arith.andi %[[I]], %c6_i32 : i32
// CHECK:       %[[B:.*]] = arith.shrui %[[A]], %c1_i32 : i32
// CHECK-NEXT:  %[[X:.*]] = arith.xori %[[J]], %[[B]] : i32
// CHECK-NEXT:  return %[[I]], %[[X]]
func.func @permuted(%i: i32, %j: i32) -> (i32, i32) {
  %s = fly.static : !fly.coord_swizzle<CS<2,1,[0],0,[1]>>
  %c = fly.make_int_tuple(%i, %j) : (i32, i32) -> !fly.int_tuple<(?,?)>
  %x = fly.crd2idx(%c, %s) : (!fly.int_tuple<(?,?)>, !fly.coord_swizzle<CS<2,1,[0],0,[1]>>) -> !fly.int_tuple<(?,?)>
  %a, %b = fly.get_leaves(%x) : (!fly.int_tuple<(?,?)>) -> (i32, i32)
  return %a, %b : i32, i32
}

// 3 and 5 added to a pointer are 8, of which more is known than of 3: an op that passes the pointer
// on to where only its old type fits gets that type.
// CHECK-LABEL: func.func @passed_on(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f32, shared, align<32>>)
// CHECK:       %[[Q:.*]] = fly.add_offset(%[[P]], %{{.*}}) : (!fly.ptr<f32, shared, align<32>>, !fly.int_tuple<8>) -> !fly.ptr<f32, shared, align<32>>
// CHECK-NEXT:  %[[R:.*]] = fly.recast_iter(%[[Q]]) : (!fly.ptr<f32, shared, align<32>>) -> !fly.ptr<f32, shared>
// CHECK-NEXT:  %[[X:.*]] = fly.ptr.load(%[[Q]]) : (!fly.ptr<f32, shared, align<32>>) -> f32
// CHECK-NEXT:  return %[[R]], %[[X]]
func.func @passed_on(%p: !fly.ptr<f32, shared, align<32>>) -> (!fly.ptr<f32, shared>, f32) {
  %three = fly.static : !fly.int_tuple<3>
  %five = fly.static : !fly.int_tuple<5>
  %q = fly.add_offset(%p, %three) : (!fly.ptr<f32, shared, align<32>>, !fly.int_tuple<3>) -> !fly.ptr<f32, shared>
  %r = fly.add_offset(%q, %five) : (!fly.ptr<f32, shared>, !fly.int_tuple<5>) -> !fly.ptr<f32, shared>
  %x = fly.ptr.load(%r) : (!fly.ptr<f32, shared>) -> f32
  return %r, %x : !fly.ptr<f32, shared>, f32
}
