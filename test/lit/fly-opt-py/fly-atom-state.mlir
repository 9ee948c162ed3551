// RUN: fly-opt-py --fly-rewrite-func-signature --fly-layout-lowering %s | FileCheck %s
// RUN: fly-opt-py --fly-rewrite-func-signature --fly-layout-lowering --convert-fly-to-rocdl %s | FileCheck --check-prefix=ROCDL %s

// What a loop carries is not the atom that was made before it: each use asks the tiled copy for its
// atom, whose state is a struct in the end.

!load = !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>, 16>
!tiled = !fly.tiled_copy<!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>, 16>, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>>
!scaled = !fly.mma_atom<!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E5M2, f8E5M2) -> f32, opselA = 0, opselB = 0>>
!mma = !fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E5M2, f8E5M2) -> f32, opselA = 0, opselB = 0>>, <(1,1,1):(0,0,0)>>
!buffer = !fly.memref<f16, #fly_rocdl.buffer_desc, 4:1>
!held = !fly.memref<f16, register, 4:1>

// CHECK-LABEL: func.func @copies(
// CHECK: %[[ATOM:.*]] = fly.make_copy_atom
// CHECK: %[[TILED:.*]] = fly.make_tiled_copy(%[[ATOM]],
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[X:.*]] = %[[TILED]])
// CHECK: %[[INNER:.*]] = fly.get_copy_atom(%[[X]])
// CHECK: fly.copy_atom_call(%[[INNER]],
// CHECK: %[[Y:.*]] = fly.atom.set_value(%[[X]], "soffset", %{{.*}})
// CHECK: scf.yield %[[Y]]
// CHECK: %[[ONE:.*]] = fly.get_copy_atom(%[[LAST]])
// CHECK: %[[OTHER:.*]] = scf.if
// CHECK: scf.yield %[[ONE]]
// CHECK: scf.yield %[[ATOM]]
// CHECK: fly.copy_atom_call(%[[OTHER]],

// ROCDL-LABEL: func.func @copies(
// ROCDL: %[[NEW:.*]] = llvm.insertvalue %c0_i32, %{{.*}}[0] : !llvm.struct<(i32)>
// ROCDL: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[X:.*]] = %[[NEW]]) -> (!llvm.struct<(i32)>)
// ROCDL: %[[S:.*]] = llvm.extractvalue %[[X]][0]
// ROCDL: %[[BYTES:.*]] = arith.muli %[[S]], %c2_i32
// ROCDL: rocdl.raw.ptr.buffer.load %{{.*}}, %{{.*}}, %[[BYTES]], 0
// ROCDL: %[[Y:.*]] = llvm.insertvalue %{{.*}}, %[[X]][0]
// ROCDL: scf.yield %[[Y]]
// ROCDL: %[[OTHER:.*]] = scf.if %{{.*}} -> (!llvm.struct<(i32)>)
// ROCDL: scf.yield %[[LAST]]
// ROCDL: scf.yield %[[NEW]]
// ROCDL: llvm.extractvalue %[[OTHER]][0]
func.func @copies(%b: !buffer, %r: !held, %a: index, %z: index, %d: index, %step: i32, %p: i1) {
  %l = fly.static : !fly.layout<(64,4):(4,1)>
  %t = fly.static : !fly.tile<[256]>
  %atom = fly.make_copy_atom {valBits = 16 : i32} : !load
  %tiled = fly.make_tiled_copy(%atom, %l, %t) : (!load, !fly.layout<(64,4):(4,1)>, !fly.tile<[256]>) -> !tiled
  %last = scf.for %i = %a to %z step %d iter_args(%x = %tiled) -> (!tiled) {
    fly.copy(%x, %b, %r) : (!tiled, !buffer, !held) -> ()
    %y = fly.atom.set_value(%x, "soffset", %step) : (!tiled, i32) -> !tiled
    scf.yield %y : !tiled
  }
  %one = fly.get_copy_atom(%last) : (!tiled) -> !load
  %other = scf.if %p -> (!load) {
    scf.yield %one : !load
  } else {
    scf.yield %atom : !load
  }
  fly.copy_atom_call(%other, %b, %r) : (!load, !buffer, !held) -> ()
  return
}

// CHECK-LABEL: func.func @products(
// CHECK: %[[N:.*]] = scf.while
// CHECK: %[[ATOM:.*]] = fly.get_mma_atom(%[[N]])
// CHECK: fly.mma_atom_call_ssa(%[[ATOM]],

// ROCDL-LABEL: func.func @products(
// ROCDL-SAME: %[[M:.*]]: !llvm.struct<(i32, i32)>,
// ROCDL: %[[N:.*]] = scf.while (%[[X:.*]] = %[[M]]) : (!llvm.struct<(i32, i32)>) -> !llvm.struct<(i32, i32)>
// ROCDL: scf.condition(%{{.*}}) %[[X]]
// ROCDL: ^bb0(%[[Y:.*]]: !llvm.struct<(i32, i32)>):
// ROCDL: llvm.insertvalue %{{.*}}, %[[Y]][1]
// ROCDL: %[[A:.*]] = llvm.extractvalue %[[N]][0]
// ROCDL: %[[B:.*]] = llvm.extractvalue %[[N]][1]
// ROCDL: rocdl.mfma.scale.f32.16x16x128.f8f6f4 {{.*}}, 0, %[[A]], 0, %[[B]]
func.func @products(%m: !mma, %v: vector<8xi32>, %c: vector<4xf32>, %s: i32, %p: i1) -> vector<4xf32> {
  %n = scf.while (%x = %m) : (!mma) -> !mma {
    scf.condition(%p) %x : !mma
  } do {
  ^bb0(%x: !mma):
    %y = fly.atom.set_value(%x, "scale_b", %s) : (!mma, i32) -> !mma
    scf.yield %y : !mma
  }
  %atom = fly.get_mma_atom(%n) : (!mma) -> !scaled
  %d = fly.mma_atom_call_ssa(%atom, %v, %v, %c) : (!scaled, vector<8xi32>, vector<8xi32>, vector<4xf32>) -> vector<4xf32>
  return %d : vector<4xf32>
}
