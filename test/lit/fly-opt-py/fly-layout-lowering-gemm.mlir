// RUN: fly-opt-py --fly-layout-lowering %s | FileCheck %s

// One call for each m, n and k; k changes fastest if asked for. A tile's sum begins with C and goes
// on with D.
// CHECK-LABEL: func.func @k_fastest(
// CHECK-SAME:  %[[D:.*]]: !fly.ptr<f32, register>, %[[A:.*]]: !fly.ptr<f32, register>, %[[B:.*]]: !fly.ptr<f32, register>, %[[C:.*]]: !fly.ptr<f32, register>)
// CHECK:       %[[ATOM:.*]] = fly.make_mma_atom
// CHECK-DAG:   %[[D0:.*]] = fly.make_view(%[[D]],
// CHECK-DAG:   %[[A0:.*]] = fly.make_view(%[[A]],
// CHECK-DAG:   %[[B0:.*]] = fly.make_view(%[[B]],
// CHECK-DAG:   %[[C0:.*]] = fly.make_view(%[[C]],
// CHECK:       fly.mma_atom_call(%[[ATOM]], %[[D0]], %[[A0]], %[[B0]], %[[C0]])
// CHECK-DAG:   %[[PA:.*]] = fly.add_offset(%[[A]], %{{.*}}) : (!fly.ptr<f32, register>, !fly.int_tuple<2>)
// CHECK-DAG:   %[[PB:.*]] = fly.add_offset(%[[B]], %{{.*}}) : (!fly.ptr<f32, register>, !fly.int_tuple<1>)
// CHECK-DAG:   %[[A2:.*]] = fly.make_view(%[[PA]],
// CHECK-DAG:   %[[B1:.*]] = fly.make_view(%[[PB]],
// CHECK:       fly.mma_atom_call(%[[ATOM]], %[[D0]], %[[A2]], %[[B1]], %[[D0]])
// CHECK:       fly.mma_atom_call(%[[ATOM]], %[[D1:.*]], %{{.*}}, %[[B0]], %[[C1:.*]])
// CHECK:       fly.mma_atom_call(%[[ATOM]], %[[D1]], %{{.*}}, %[[B1]], %[[D1]])
// CHECK-NEXT:  return
func.func @k_fastest(%d: !fly.ptr<f32, register>, %a: !fly.ptr<f32, register>, %b: !fly.ptr<f32, register>, %c: !fly.ptr<f32, register>) {
  %atom = fly.make_mma_atom : !fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>
  %l = fly.static : !fly.layout<(1,2,1):(0,1,0)>
  %la = fly.static : !fly.layout<(1,2,2):(0,1,2)>
  %lb = fly.static : !fly.layout<(1,1,2):(0,0,1)>
  %vd = fly.make_view(%d, %l) : (!fly.ptr<f32, register>, !fly.layout<(1,2,1):(0,1,0)>) -> !fly.memref<f32, register, (1,2,1):(0,1,0)>
  %va = fly.make_view(%a, %la) : (!fly.ptr<f32, register>, !fly.layout<(1,2,2):(0,1,2)>) -> !fly.memref<f32, register, (1,2,2):(0,1,2)>
  %vb = fly.make_view(%b, %lb) : (!fly.ptr<f32, register>, !fly.layout<(1,1,2):(0,0,1)>) -> !fly.memref<f32, register, (1,1,2):(0,0,1)>
  %vc = fly.make_view(%c, %l) : (!fly.ptr<f32, register>, !fly.layout<(1,2,1):(0,1,0)>) -> !fly.memref<f32, register, (1,2,1):(0,1,0)>
  fly.gemm(%atom, %vd, %va, %vb, %vc) {traversalOrder = #fly<gemm_traversal_order kmn>} : (!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, !fly.memref<f32, register, (1,2,1):(0,1,0)>, !fly.memref<f32, register, (1,2,2):(0,1,2)>, !fly.memref<f32, register, (1,1,2):(0,0,1)>, !fly.memref<f32, register, (1,2,1):(0,1,0)>) -> ()
  return
}

// Without K; and in the order of a layout: its offsets number the tiles, m fastest, so this one
// takes n before m.
// CHECK-LABEL: func.func @by_layout(
// CHECK-SAME:  %[[D:.*]]: !fly.ptr<f32, register>,
// CHECK-DAG:   %[[D0:.*]] = fly.make_view(%[[D]],
// CHECK:       fly.mma_atom_call(%{{.*}}, %[[D0]],
// CHECK:       %[[P2:.*]] = fly.add_offset(%[[D]], %{{.*}}) : (!fly.ptr<f32, register>, !fly.int_tuple<20>)
// CHECK:       %[[D2:.*]] = fly.make_view(%[[P2]],
// CHECK:       fly.mma_atom_call(%{{.*}}, %[[D2]],
// CHECK:       %[[P1:.*]] = fly.add_offset(%[[D]], %{{.*}}) : (!fly.ptr<f32, register>, !fly.int_tuple<10>)
// CHECK:       %[[D1:.*]] = fly.make_view(%[[P1]],
// CHECK:       fly.mma_atom_call(%{{.*}}, %[[D1]],
// CHECK:       fly.add_offset(%[[D]], %{{.*}}) : (!fly.ptr<f32, register>, !fly.int_tuple<30>)
// CHECK:       fly.mma_atom_call
// CHECK-NEXT:  return
func.func @by_layout(%d: !fly.ptr<f32, register>, %a: !fly.memref<f32, register, (1,2):(0,1)>, %b: !fly.memref<f32, register, (1,2):(0,1)>) {
  %atom = fly.make_mma_atom : !fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>
  %l = fly.static : !fly.layout<(1,2,2):(0,10,20)>
  %vd = fly.make_view(%d, %l) : (!fly.ptr<f32, register>, !fly.layout<(1,2,2):(0,10,20)>) -> !fly.memref<f32, register, (1,2,2):(0,10,20)>
  %t = fly.static : !fly.layout<(2,2):(2,1)>
  fly.gemm(%atom, %vd, %a, %b, %vd) traversalLayout = %t : (!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, !fly.memref<f32, register, (1,2,2):(0,10,20)>, !fly.memref<f32, register, (1,2):(0,1)>, !fly.memref<f32, register, (1,2):(0,1)>, !fly.memref<f32, register, (1,2,2):(0,10,20)>, !fly.layout<(2,2):(2,1)>) -> ()
  return
}

// The tiled multiplication's atom is called: the one it was made of.
// CHECK-LABEL: func.func @tiled(
// CHECK:       %[[ATOM:.*]] = fly.make_mma_atom : !fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>
// CHECK:       fly.mma_atom_call(%[[ATOM]],
func.func @tiled(%t: !fly.tiled_mma<!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, <(1,1,1):(0,0,0)>>, %r: !fly.memref<f32, register, 1:1>) {
  fly.gemm(%t, %r, %r, %r, %r) : (!fly.tiled_mma<!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>, <(1,1,1):(0,0,0)>>, !fly.memref<f32, register, 1:1>, !fly.memref<f32, register, 1:1>, !fly.memref<f32, register, 1:1>, !fly.memref<f32, register, 1:1>) -> ()
  return
}
