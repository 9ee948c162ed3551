// RUN: fly-opt-py --fly-promote-regmem-to-vectorssa %s | FileCheck %s
// RUN: fly-opt-py --fly-promote-regmem-to-vectorssa --canonicalize %s | FileCheck --check-prefix=CANON %s

// Six registers become one vector of six: stores insert, loads extract, poison before the first.
// CHECK-LABEL: gpu.func @straight(
// CHECK-SAME: %[[X:[^:]*]]: vector<2xf16>, %[[Y:[^:]*]]: f16
// CHECK-NOT: register
// CHECK: %[[P:.*]] = ub.poison : vector<6xf16>
// CHECK: %[[A:.*]] = vector.insert_strided_slice %[[X]], %[[P]] {offsets = [3], strides = [1]} : vector<2xf16> into vector<6xf16>
// CHECK: %[[B:.*]] = vector.insert %[[Y]], %[[A]] [5] : f16 into vector<6xf16>
// CHECK: %[[V:.*]] = vector.extract_strided_slice %[[B]] {offsets = [4], sizes = [2], strides = [1]} : vector<6xf16> to vector<2xf16>
// CHECK: %[[S:.*]] = vector.extract %[[B]][3] : f16 from vector<6xf16>
// CHECK: fly.ptr.store(%[[V]], %{{.*}}) : (vector<2xf16>
// CHECK: fly.ptr.store(%[[S]], %{{.*}}) : (f16
gpu.module @kernels {
  gpu.func @straight(%x: vector<2xf16>, %y: f16, %out: !fly.ptr<f16, global>) kernel {
    %r = fly.make_ptr() {dictAttrs = {allocSize = 6 : i64}} : () -> !fly.ptr<f16, register>
    %three = fly.make_int_tuple() : () -> !fly.int_tuple<3>
    %one = fly.make_int_tuple() : () -> !fly.int_tuple<1>
    %r3 = fly.add_offset(%r, %three) : (!fly.ptr<f16, register>, !fly.int_tuple<3>) -> !fly.ptr<f16, register>
    %r4 = fly.add_offset(%r3, %one) : (!fly.ptr<f16, register>, !fly.int_tuple<1>) -> !fly.ptr<f16, register>
    %r5 = fly.add_offset(%r4, %one) : (!fly.ptr<f16, register>, !fly.int_tuple<1>) -> !fly.ptr<f16, register>
    fly.ptr.store(%x, %r3) : (vector<2xf16>, !fly.ptr<f16, register>) -> ()
    fly.ptr.store(%y, %r5) : (f16, !fly.ptr<f16, register>) -> ()
    %v = fly.ptr.load(%r4) : (!fly.ptr<f16, register>) -> vector<2xf16>
    %s = fly.ptr.load(%r3) : (!fly.ptr<f16, register>) -> f16
    fly.ptr.store(%v, %out) : (vector<2xf16>, !fly.ptr<f16, global>) -> ()
    fly.ptr.store(%s, %out) : (f16, !fly.ptr<f16, global>) -> ()
    gpu.return
  }

  // An 8-bit float is held as i8; a load gives the float back.
  // CHECK-LABEL: gpu.func @narrow(
  // CHECK: %[[P:.*]] = ub.poison : vector<4xi8>
  // CHECK: %[[I:.*]] = vector.bitcast %{{.*}} : vector<4xf8E5M2> to vector<4xi8>
  // CHECK: %[[S:.*]] = vector.insert_strided_slice %[[I]], %[[P]]
  // CHECK: %[[B:.*]] = vector.extract %[[S]][2] : i8 from vector<4xi8>
  // CHECK: %[[ONE:.*]] = vector.from_elements %[[B]] : vector<1xi8>
  // CHECK: %[[F:.*]] = vector.bitcast %[[ONE]] : vector<1xi8> to vector<1xf8E5M2>
  // CHECK: vector.extract %[[F]][0] : f8E5M2 from vector<1xf8E5M2>
  gpu.func @narrow(%x: vector<4xf8E5M2>, %out: !fly.ptr<f8E5M2, global>) kernel {
    %r = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f8E5M2, register>
    %two = fly.make_int_tuple() : () -> !fly.int_tuple<2>
    %r2 = fly.add_offset(%r, %two) : (!fly.ptr<f8E5M2, register>, !fly.int_tuple<2>) -> !fly.ptr<f8E5M2, register>
    fly.ptr.store(%x, %r) : (vector<4xf8E5M2>, !fly.ptr<f8E5M2, register>) -> ()
    %s = fly.ptr.load(%r2) : (!fly.ptr<f8E5M2, register>) -> f8E5M2
    fly.ptr.store(%s, %out) : (f8E5M2, !fly.ptr<f8E5M2, global>) -> ()
    gpu.return
  }

  // Two kinds of registers through a loop that gives a value of its own, a condition without else
  // in it, and a while in that. Canonicalization takes the one that is only read out of the loop.
  // CHECK-LABEL: gpu.func @nested(
  // CHECK: %[[T0:.*]] = vector.insert %{{.*}}, %{{.*}} [1] : i32 into vector<2xi32>
  // CHECK: %[[C0:.*]] = vector.insert %{{.*}}, %{{.*}} [0] : f32 into vector<1xf32>
  // CHECK: %[[FOR:.*]]:3 = scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}}, %[[T:.*]] = %[[T0]], %[[C:.*]] = %[[C0]]) -> (i32, vector<2xi32>, vector<1xf32>)
  // CHECK:   %[[IF:.*]] = scf.if %{{.*}} -> (vector<2xi32>) {
  // CHECK:     %[[WHILE:.*]] = scf.while (%[[W:.*]] = %[[T]]) : (vector<2xi32>) -> vector<2xi32> {
  // CHECK:       %[[E:.*]] = vector.extract %[[W]][1]
  // CHECK:       %[[GO:.*]] = arith.cmpi slt, %[[E]]
  // CHECK:       scf.condition(%[[GO]]) %[[W]] : vector<2xi32>
  // CHECK:     } do {
  // CHECK:     ^bb0(%[[D:.*]]: vector<2xi32>):
  // CHECK:       %[[NEW:.*]] = vector.insert %{{.*}}, %[[D]] [1]
  // CHECK:       scf.yield %[[NEW]] : vector<2xi32>
  // CHECK:     }
  // CHECK:     scf.yield %[[WHILE]] : vector<2xi32>
  // CHECK:   } else {
  // CHECK:     scf.yield %[[T]] : vector<2xi32>
  // CHECK:   }
  // CHECK:   scf.yield %{{.*}}, %[[IF]], %[[C]] : i32, vector<2xi32>, vector<1xf32>
  // CHECK: vector.extract %[[FOR]]#1[1]
  // CANON-LABEL: gpu.func @nested(
  // CANON: scf.for {{.*}} -> (i32, vector<2xi32>)
  gpu.func @nested(%p: i1, %f: f32, %out: !fly.ptr<f32, global>, %iout: !fly.ptr<i32, global>) kernel {
    %a = arith.constant 0 : index
    %b = arith.constant 9 : index
    %c = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %limit = arith.constant 5 : i32
    %r = fly.make_ptr() {dictAttrs = {allocSize = 2 : i64}} : () -> !fly.ptr<i32, register>
    %q = fly.make_ptr() {dictAttrs = {allocSize = 1 : i64}} : () -> !fly.ptr<f32, register>
    %one = fly.make_int_tuple() : () -> !fly.int_tuple<1>
    %r1 = fly.add_offset(%r, %one) : (!fly.ptr<i32, register>, !fly.int_tuple<1>) -> !fly.ptr<i32, register>
    fly.ptr.store(%zero, %r1) : (i32, !fly.ptr<i32, register>) -> ()
    fly.ptr.store(%f, %q) : (f32, !fly.ptr<f32, register>) -> ()
    %n = scf.for %i = %a to %b step %c iter_args(%m = %zero) -> (i32) {
      scf.if %p {
        scf.while : () -> () {
          %e = fly.ptr.load(%r1) : (!fly.ptr<i32, register>) -> i32
          %go = arith.cmpi slt, %e, %limit : i32
          scf.condition(%go)
        } do {
          %e = fly.ptr.load(%r1) : (!fly.ptr<i32, register>) -> i32
          %next = arith.addi %e, %m : i32
          fly.ptr.store(%next, %r1) : (i32, !fly.ptr<i32, register>) -> ()
          scf.yield
        }
      }
      %g = fly.ptr.load(%q) : (!fly.ptr<f32, register>) -> f32
      fly.ptr.store(%g, %out) : (f32, !fly.ptr<f32, global>) -> ()
      %m1 = arith.addi %m, %limit : i32
      scf.yield %m1 : i32
    }
    %e = fly.ptr.load(%r1) : (!fly.ptr<i32, register>) -> i32
    %sum = arith.addi %n, %e : i32
    fly.ptr.store(%sum, %iout) : (i32, !fly.ptr<i32, global>) -> ()
    gpu.return
  }

  // Registers of a loop's body start anew each time round and are not carried.
  // CHECK-LABEL: gpu.func @local(
  // CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{[^ ]*}} {
  // CHECK:   %[[P:.*]] = ub.poison : vector<1xf32>
  // CHECK:   vector.insert %{{.*}}, %[[P]]
  gpu.func @local(%f: f32, %out: !fly.ptr<f32, global>, %a: index, %b: index, %c: index) kernel {
    scf.for %i = %a to %b step %c {
      %r = fly.make_ptr() {dictAttrs = {allocSize = 1 : i64}} : () -> !fly.ptr<f32, register>
      fly.ptr.store(%f, %r) : (f32, !fly.ptr<f32, register>) -> ()
      %g = fly.ptr.load(%r) : (!fly.ptr<f32, register>) -> f32
      fly.ptr.store(%g, %out) : (f32, !fly.ptr<f32, global>) -> ()
    }
    gpu.return
  }

  // What is reached by a recast, at an offset that is known only when the kernel runs, as a view
  // somebody uses, or out of a region that values can't be threaded through, stays memory. Its
  // neighbours don't.
  // CHECK-LABEL: gpu.func @kept(
  // CHECK-COUNT-4: fly.make_ptr()
  // CHECK-NOT: fly.make_ptr()
  // CHECK: ub.poison : vector<1xf32>
  // CHECK: fly.recast_iter
  // CHECK: fly.ptr.store(%{{.*}}, %{{.*}}) : (f32, !fly.ptr<f32, register>) -> ()
  // CHECK: scf.index_switch
  // CHECK: fly.ptr.store(%{{.*}}, %{{.*}}) : (f32, !fly.ptr<f32, register>) -> ()
  gpu.func @kept(%f: f32, %i: i32, %k: index, %iout: !fly.ptr<i32, global>, %out: !fly.ptr<f32, global>) kernel {
    %recast = fly.make_ptr() {dictAttrs = {allocSize = 1 : i64}} : () -> !fly.ptr<f32, register>
    %dynamic = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f32, register>
    %viewed = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f32, register>
    %region = fly.make_ptr() {dictAttrs = {allocSize = 1 : i64}} : () -> !fly.ptr<f32, register>
    %plain = fly.make_ptr() {dictAttrs = {allocSize = 1 : i64}} : () -> !fly.ptr<f32, register>
    fly.ptr.store(%f, %plain) : (f32, !fly.ptr<f32, register>) -> ()
    %g = fly.ptr.load(%plain) : (!fly.ptr<f32, register>) -> f32
    fly.ptr.store(%g, %out) : (f32, !fly.ptr<f32, global>) -> ()

    %as_int = fly.recast_iter(%recast) : (!fly.ptr<f32, register>) -> !fly.ptr<i32, register>
    %bits = fly.ptr.load(%as_int) : (!fly.ptr<i32, register>) -> i32
    fly.ptr.store(%bits, %iout) : (i32, !fly.ptr<i32, global>) -> ()

    %at = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
    %slot = fly.add_offset(%dynamic, %at) : (!fly.ptr<f32, register>, !fly.int_tuple<?>) -> !fly.ptr<f32, register>
    fly.ptr.store(%f, %slot) : (f32, !fly.ptr<f32, register>) -> ()

    %layout = fly.static : !fly.layout<4:1>
    %view = fly.make_view(%viewed, %layout) : (!fly.ptr<f32, register>, !fly.layout<4:1>) -> !fly.memref<f32, register, 4:1>
    %coord = fly.make_int_tuple() : () -> !fly.int_tuple<2>
    fly.memref.store(%f, %view, %coord) : (f32, !fly.memref<f32, register, 4:1>, !fly.int_tuple<2>) -> ()

    scf.index_switch %k
    case 0 {
      fly.ptr.store(%f, %region) : (f32, !fly.ptr<f32, register>) -> ()
      scf.yield
    }
    default {
    }
    gpu.return
  }
}
