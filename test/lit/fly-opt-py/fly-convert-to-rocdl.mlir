// RUN: fly-opt-py --convert-fly-to-rocdl %s | FileCheck %s

// Address spaces by AMDGPU's numbers; steps count in elements; loads carry the type's alignment.
// CHECK-LABEL: func.func @pointers(
// CHECK-SAME: %[[G:.*]]: !llvm.ptr<1>, %[[S:.*]]: !llvm.ptr<3>, %[[R:.*]]: !llvm.ptr<5>, %[[N:.*]]: i64)
// CHECK: %[[C:.*]] = arith.constant 5 : i32
// CHECK: %[[A:.*]] = llvm.getelementptr %[[G]][%[[C]]] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
// CHECK: %[[X:.*]] = llvm.load %[[A]] {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK: llvm.store %[[X]], %[[S]] {alignment = 16 : i64} : f32, !llvm.ptr<3>
// CHECK: %[[B:.*]] = llvm.getelementptr %[[R]][%[[N]]] : (!llvm.ptr<5>, i64) -> !llvm.ptr<5>, f16
// CHECK: llvm.load %[[B]] {alignment = 2 : i64} : !llvm.ptr<5> -> f16
func.func @pointers(%g: !fly.ptr<f32, global>, %s: !fly.ptr<f32, shared, align<16>>,
                    %r: !fly.ptr<f16, register>, %n: i64) {
  %c = fly.make_int_tuple() : () -> !fly.int_tuple<5>
  %a = fly.add_offset(%g, %c) : (!fly.ptr<f32, global>, !fly.int_tuple<5>) -> !fly.ptr<f32, global>
  %x = fly.ptr.load(%a) : (!fly.ptr<f32, global>) -> f32
  fly.ptr.store(%x, %s) : (f32, !fly.ptr<f32, shared, align<16>>) -> ()
  %d = fly.make_int_tuple(%n) : (i64) -> !fly.int_tuple<?{i64}>
  %b = fly.add_offset(%r, %d)
    : (!fly.ptr<f16, register>, !fly.int_tuple<?{i64}>) -> !fly.ptr<f16, register>
  %y = fly.ptr.load(%b) : (!fly.ptr<f16, register>) -> f16
  return
}

// A pointer that a loop or a branch carries, and one seen as another type.
// CHECK-LABEL: func.func @carried(
// CHECK: %[[R:.*]] = scf.if %{{.*}} -> (!llvm.ptr<3>) {
// CHECK: scf.yield %{{.*}} : !llvm.ptr<3>
// CHECK: llvm.load %[[R]] {alignment = 4 : i64} : !llvm.ptr<3> -> vector<2xf16>
// CHECK: llvm.ptrtoint %[[R]] : !llvm.ptr<3> to i32
func.func @carried(%c: i1, %p: !fly.ptr<f32, shared>, %q: !fly.ptr<f32, shared>) -> i32 {
  %r = scf.if %c -> !fly.ptr<f32, shared> {
    scf.yield %p : !fly.ptr<f32, shared>
  } else {
    scf.yield %q : !fly.ptr<f32, shared>
  }
  %h = fly.recast_iter(%r) : (!fly.ptr<f32, shared>) -> !fly.ptr<f16, shared, align<4>>
  %v = fly.ptr.load(%h) : (!fly.ptr<f16, shared, align<4>>) -> vector<2xf16>
  %i = fly.ptrtoint(%r) : (!fly.ptr<f32, shared>) -> i32
  return %i : i32
}

// For what has no fly op: the pointer itself.
// CHECK-LABEL: func.func @atomic(
// CHECK-SAME: %[[G:.*]]: !llvm.ptr<1>
// CHECK: llvm.atomicrmw add %[[G]], %{{.*}} monotonic : !llvm.ptr<1>, i32
func.func @atomic(%g: !fly.ptr<i32, global>, %x: i32) {
  %p = fly.to_llvm_ptr(%g) {llvm_address_space = 1 : i32} : (!fly.ptr<i32, global>) -> !llvm.ptr<1>
  %old = llvm.atomicrmw add %p, %x monotonic : !llvm.ptr<1>, i32
  return
}

// A swizzle exchanges bits of the address an access goes to; above its base nothing is aligned.
// CHECK-LABEL: func.func @swizzled(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<3>)
// CHECK: %[[I:.*]] = llvm.ptrtoint %[[P]] : !llvm.ptr<3> to i64
// CHECK: %[[M:.*]] = arith.constant 448 : i64
// CHECK: %[[B:.*]] = arith.andi %[[I]], %[[M]] : i64
// CHECK: %[[S:.*]] = arith.constant 3 : i64
// CHECK: %[[D:.*]] = arith.shrui %[[B]], %[[S]] : i64
// CHECK: %[[X:.*]] = arith.xori %[[I]], %[[D]] : i64
// CHECK: %[[A:.*]] = llvm.inttoptr %[[X]] : i64 to !llvm.ptr<3>
// CHECK: llvm.load %[[A]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<4xf16>
func.func @swizzled(%p: !fly.ptr<f16, shared, align<16>, S<3,3,3>>) -> vector<4xf16> {
  %v = fly.ptr.load(%p) : (!fly.ptr<f16, shared, align<16>, S<3,3,3>>) -> vector<4xf16>
  return %v : vector<4xf16>
}

// An index is stored as 64 bits.
// CHECK-LABEL: func.func @indices(
// CHECK: %[[X:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> i64
// CHECK: arith.index_cast %[[X]] : i64 to index
// CHECK: %[[Y:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: llvm.store %[[Y]], %{{.*}} {alignment = 8 : i64} : i64, !llvm.ptr<1>
func.func @indices(%p: !fly.ptr<index, global>) {
  %x = fly.ptr.load(%p) : (!fly.ptr<index, global>) -> index
  %y = arith.addi %x, %x : index
  %c = fly.make_int_tuple() : () -> !fly.int_tuple<5>
  %q = fly.add_offset(%p, %c)
    : (!fly.ptr<index, global>, !fly.int_tuple<5>) -> !fly.ptr<index, global>
  fly.ptr.store(%y, %q) : (index, !fly.ptr<index, global>) -> ()
  return
}
