// RUN: fly-opt-py --fly-layout-lowering %s | FileCheck %s

// The first mode is one call of the atom, the others are counted through. Source and destination
// may lie differently; a stride that is known only when the kernel runs is part of the address.
// CHECK-LABEL: func.func @rest_modes(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f16, global>, %[[Q:.*]]: !fly.ptr<f16, register>, %[[N:.*]]: i32)
// CHECK:       %[[ATOM:.*]] = fly.make_copy_atom
// CHECK-DAG:   %[[P0:.*]] = fly.make_view(%[[P]],
// CHECK-DAG:   %[[Q0:.*]] = fly.make_view(%[[Q]],
// CHECK:       fly.copy_atom_call(%[[ATOM]], %[[P0]], %[[Q0]]) : (!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.memref<f16, global, 4:1>, !fly.memref<f16, register, 4:1>) -> ()
// CHECK-DAG:   %[[O:.*]] = fly.make_int_tuple(%[[N]]) : (i32) -> !fly.int_tuple<?{div=8}>
// CHECK-DAG:   %[[PN:.*]] = fly.add_offset(%[[P]], %[[O]])
// CHECK-DAG:   %[[QN:.*]] = fly.add_offset(%[[Q]], %{{.*}}) : (!fly.ptr<f16, register>, !fly.int_tuple<4>)
// CHECK-DAG:   %[[P1:.*]] = fly.make_view(%[[PN]],
// CHECK-DAG:   %[[Q1:.*]] = fly.make_view(%[[QN]],
// CHECK:       fly.copy_atom_call(%[[ATOM]], %[[P1]], %[[Q1]])
// CHECK-NEXT:  return
func.func @rest_modes(%p: !fly.ptr<f16, global>, %q: !fly.ptr<f16, register>, %n: i32) {
  %atom = fly.make_copy_atom {valBits = 16 : i32} : !fly.copy_atom<!fly.universal_copy<64>, 16>
  %s = fly.make_int_tuple(%n) : (i32) -> !fly.int_tuple<(1,?{div=8})>
  %e = fly.static : !fly.int_tuple<(4,2)>
  %g = fly.make_layout(%e, %s) : (!fly.int_tuple<(4,2)>, !fly.int_tuple<(1,?{div=8})>) -> !fly.layout<(4,2):(1,?{div=8})>
  %r = fly.static : !fly.layout<(4,2):(1,4)>
  %a = fly.make_view(%p, %g) : (!fly.ptr<f16, global>, !fly.layout<(4,2):(1,?{div=8})>) -> !fly.memref<f16, global, (4,2):(1,?{div=8})>
  %b = fly.make_view(%q, %r) : (!fly.ptr<f16, register>, !fly.layout<(4,2):(1,4)>) -> !fly.memref<f16, register, (4,2):(1,4)>
  fly.copy(%atom, %a, %b) : (!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.memref<f16, global, (4,2):(1,?{div=8})>, !fly.memref<f16, register, (4,2):(1,4)>) -> ()
  return
}

// A first mode with modes of its own is counted through as well. The predicate has a boolean for
// each call: it has no mode for the atom's values, of which all share it (stride 0).
// CHECK-LABEL: func.func @nested_with_predicate(
// CHECK-SAME:  %[[A:.*]]: !fly.memref<f32, global, {{.*}}>, %[[B:.*]]: {{.*}}, %[[C:.*]]: !fly.memref<i1, register, 3:1>)
// CHECK:       %[[CP:.*]] = fly.get_iter(%[[C]])
// CHECK-COUNT-3: fly.copy_atom_call({{.*}}) : (!fly.copy_atom<!fly.universal_copy<64>, 32>, !fly.memref<f32, global, 2:1>, !fly.memref<f32, register, 2:1>, !fly.memref<i1, register, 1:0>) -> ()
// CHECK-NOT:   fly.copy_atom_call
// CHECK:       return
func.func @nested_with_predicate(%a: !fly.memref<f32, global, ((2,3),1):((1,10),0)>, %b: !fly.memref<f32, register, ((2,3),1):((1,2),0)>, %c: !fly.memref<i1, register, 3:1>) {
  %atom = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<64>, 32>
  %u = fly.static : !fly.layout<(3,1):(1,0)>
  %i = fly.get_iter(%c) : (!fly.memref<i1, register, 3:1>) -> !fly.ptr<i1, register>
  %p = fly.make_view(%i, %u) : (!fly.ptr<i1, register>, !fly.layout<(3,1):(1,0)>) -> !fly.memref<i1, register, (3,1):(1,0)>
  fly.copy(%atom, %a, %b, %p) : (!fly.copy_atom<!fly.universal_copy<64>, 32>, !fly.memref<f32, global, ((2,3),1):((1,10),0)>, !fly.memref<f32, register, ((2,3),1):((1,2),0)>, !fly.memref<i1, register, (3,1):(1,0)>) -> ()
  return
}

// Through a swizzle: one call's elements begin where it sends the first of them.
// CHECK-LABEL: func.func @swizzled(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f16, shared, align<16>>,
// CHECK:       fly.copy_atom_call({{.*}}) : (!fly.copy_atom<!fly.universal_copy<128>, 16>, !fly.memref<f16, shared, 8:1, align<16>>, !fly.memref<f16, register, 8:1>) -> ()
// CHECK:       %[[Q:.*]] = fly.add_offset(%[[P]], %{{.*}}) : (!fly.ptr<f16, shared, align<16>>, !fly.int_tuple<72>)
// CHECK:       %[[V:.*]] = fly.make_view(%[[Q]],
// CHECK:       fly.copy_atom_call(%{{.*}}, %[[V]], %{{.*}})
// CHECK-NEXT:  return
func.func @swizzled(%p: !fly.ptr<f16, shared, align<16>>, %r: !fly.memref<f16, register, (8,2):(1,8)>) {
  %atom = fly.make_copy_atom {valBits = 16 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 16>
  %l = fly.static : !fly.composed_layout<S<3,3,3> o 0 o (8,2):(1,64)>
  %v = fly.make_view(%p, %l) : (!fly.ptr<f16, shared, align<16>>, !fly.composed_layout<S<3,3,3> o 0 o (8,2):(1,64)>) -> !fly.memref<f16, shared, S<3,3,3> o 0 o (8,2):(1,64), align<16>>
  fly.copy(%atom, %v, %r) : (!fly.copy_atom<!fly.universal_copy<128>, 16>, !fly.memref<f16, shared, S<3,3,3> o 0 o (8,2):(1,64), align<16>>, !fly.memref<f16, register, (8,2):(1,8)>) -> ()
  return
}
