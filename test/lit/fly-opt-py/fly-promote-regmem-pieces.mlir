// RUN: fly-opt-py --passes 'builtin.module(fly-promote-regmem-to-vectorssa{pieces=true})' %s | FileCheck %s

// Written two by two: each pair is a value, and what writes a pair is it. Only the pair that the
// loop touches is carried. All six at once are put together of the pairs.
// CHECK-LABEL: gpu.func @pairs(
// CHECK-SAME: %[[X:[^:]*]]: vector<2xf32>, %[[Y:[^:]*]]: vector<2xf32>
// CHECK: %[[D:.*]] = scf.for {{.*}} iter_args(%[[IN:.*]] = %[[Y]]) -> (vector<2xf32>) {
// CHECK:   %[[SUM:.*]] = arith.addf %[[IN]], %[[X]] : vector<2xf32>
// CHECK:   scf.yield %[[SUM]] : vector<2xf32>
// CHECK: %[[P:.*]] = ub.poison : vector<6xf32>
// CHECK: %[[Q:.*]] = vector.insert_strided_slice %[[X]], %[[P]] {offsets = [0], strides = [1]}
// CHECK: %[[R:.*]] = vector.insert_strided_slice %[[D]], %[[Q]] {offsets = [2], strides = [1]}
// CHECK: %[[S:.*]] = vector.insert_strided_slice %[[X]], %[[R]] {offsets = [4], strides = [1]}
// CHECK: fly.ptr.store(%[[S]], %{{.*}}) : (vector<6xf32>
gpu.module @kernels {
  gpu.func @pairs(%x: vector<2xf32>, %y: vector<2xf32>, %out: !fly.ptr<f32, global>, %a: index, %b: index, %c: index) kernel {
    %r = fly.make_ptr() {dictAttrs = {allocSize = 6 : i64}} : () -> !fly.ptr<f32, register>
    %two = fly.make_int_tuple() : () -> !fly.int_tuple<2>
    %r2 = fly.add_offset(%r, %two) : (!fly.ptr<f32, register>, !fly.int_tuple<2>) -> !fly.ptr<f32, register>
    %r4 = fly.add_offset(%r2, %two) : (!fly.ptr<f32, register>, !fly.int_tuple<2>) -> !fly.ptr<f32, register>
    fly.ptr.store(%x, %r) : (vector<2xf32>, !fly.ptr<f32, register>) -> ()
    fly.ptr.store(%y, %r2) : (vector<2xf32>, !fly.ptr<f32, register>) -> ()
    scf.for %i = %a to %b step %c {
      %old = fly.ptr.load(%r2) : (!fly.ptr<f32, register>) -> vector<2xf32>
      %new = arith.addf %old, %x : vector<2xf32>
      fly.ptr.store(%new, %r2) : (vector<2xf32>, !fly.ptr<f32, register>) -> ()
    }
    fly.ptr.store(%x, %r4) : (vector<2xf32>, !fly.ptr<f32, register>) -> ()
    %end = fly.ptr.load(%r) : (!fly.ptr<f32, register>) -> vector<6xf32>
    fly.ptr.store(%end, %out) : (vector<6xf32>, !fly.ptr<f32, global>) -> ()
    gpu.return
  }

  // A half of 32 bits is no register: what is written one by one stays together two by two.
  // CHECK-LABEL: gpu.func @halves(
  // CHECK: %[[P:.*]] = ub.poison : vector<2xf16>
  // CHECK: %[[A:.*]] = vector.insert %{{.*}}, %[[P]] [0] : f16 into vector<2xf16>
  // CHECK: %[[B:.*]] = vector.insert %{{.*}}, %[[A]] [1] : f16 into vector<2xf16>
  // CHECK: fly.ptr.store(%[[B]], %{{.*}}) : (vector<2xf16>
  gpu.func @halves(%x: f16, %out: !fly.ptr<f16, global>) kernel {
    %r = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f16, register>
    %one = fly.make_int_tuple() : () -> !fly.int_tuple<1>
    %two = fly.make_int_tuple() : () -> !fly.int_tuple<2>
    %r1 = fly.add_offset(%r, %one) : (!fly.ptr<f16, register>, !fly.int_tuple<1>) -> !fly.ptr<f16, register>
    %r2 = fly.add_offset(%r, %two) : (!fly.ptr<f16, register>, !fly.int_tuple<2>) -> !fly.ptr<f16, register>
    fly.ptr.store(%x, %r) : (f16, !fly.ptr<f16, register>) -> ()
    fly.ptr.store(%x, %r1) : (f16, !fly.ptr<f16, register>) -> ()
    %low = fly.ptr.load(%r) : (!fly.ptr<f16, register>) -> vector<2xf16>
    %high = fly.ptr.load(%r2) : (!fly.ptr<f16, register>) -> vector<2xf16>
    fly.ptr.store(%low, %out) : (vector<2xf16>, !fly.ptr<f16, global>) -> ()
    fly.ptr.store(%high, %out) : (vector<2xf16>, !fly.ptr<f16, global>) -> ()
    gpu.return
  }
}
