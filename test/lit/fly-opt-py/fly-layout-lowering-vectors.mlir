// RUN: fly-opt-py --fly-layout-lowering %s | FileCheck %s

// Two runs of four; where the second begins is known when the kernel runs.
// CHECK-LABEL: func.func @runs(
// CHECK-SAME:  %[[P:.*]]: !fly.ptr<f32, global>, %[[N:.*]]: i32)
// CHECK:       %[[Z:.*]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK:       %[[A:.*]] = fly.ptr.load(%{{.*}}) : (!fly.ptr<f32, global>) -> vector<4xf32>
// CHECK-NEXT:  %[[X:.*]] = vector.insert_strided_slice %[[A]], %[[Z]] {offsets = [0], strides = [1]}
// CHECK-NEXT:  %[[O:.*]] = fly.make_int_tuple(%[[N]]) : (i32) -> !fly.int_tuple<?{div=4}>
// CHECK-NEXT:  %[[Q:.*]] = fly.add_offset(%[[P]], %[[O]])
// CHECK-NEXT:  %[[B:.*]] = fly.ptr.load(%[[Q]]) : (!fly.ptr<f32, global>) -> vector<4xf32>
// CHECK-NEXT:  %[[Y:.*]] = vector.insert_strided_slice %[[B]], %[[X]] {offsets = [4], strides = [1]}
// CHECK-NEXT:  return %[[Y]]
func.func @runs(%p: !fly.ptr<f32, global>, %n: i32) -> vector<8xf32> {
  %e = fly.static : !fly.int_tuple<(4,2)>
  %s = fly.make_int_tuple(%n) : (i32) -> !fly.int_tuple<(1,?{div=4})>
  %l = fly.make_layout(%e, %s) : (!fly.int_tuple<(4,2)>, !fly.int_tuple<(1,?{div=4})>) -> !fly.layout<(4,2):(1,?{div=4})>
  %v = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<(4,2):(1,?{div=4})>) -> !fly.memref<f32, global, (4,2):(1,?{div=4})>
  %x = fly.memref.load_vec(%v) : (!fly.memref<f32, global, (4,2):(1,?{div=4})>) -> vector<8xf32>
  return %x : vector<8xf32>
}

// The second mode is the one that lies together: the vector's elements are sorted by run first.
// CHECK-LABEL: func.func @interleaved(
// CHECK-SAME:  %{{.*}}, %[[X:.*]]: vector<16xf16>)
// CHECK:       %[[A:.*]] = vector.shape_cast %[[X]] : vector<16xf16> to vector<1x8x2xf16>
// CHECK-NEXT:  %[[B:.*]] = vector.transpose %[[A]], [0, 2, 1] : vector<1x8x2xf16> to vector<1x2x8xf16>
// CHECK-NEXT:  %[[C:.*]] = vector.shape_cast %[[B]] : vector<1x2x8xf16> to vector<16xf16>
// CHECK:       %[[D:.*]] = vector.extract_strided_slice %[[C]] {offsets = [0], sizes = [8], strides = [1]}
// CHECK-NEXT:  fly.ptr.store(%[[D]],
// CHECK:       %[[E:.*]] = vector.extract_strided_slice %[[C]] {offsets = [8], sizes = [8], strides = [1]}
// CHECK-NEXT:  fly.ptr.store(%[[E]],
// CHECK-NEXT:  return
func.func @interleaved(%m: !fly.memref<f16, shared, (2,8):(8,1)>, %x: vector<16xf16>) {
  fly.memref.store_vec(%x, %m) : (vector<16xf16>, !fly.memref<f16, shared, (2,8):(8,1)>) -> ()
  return
}

// Modes of one element don't count: this is one access.
// CHECK-LABEL: func.func @whole(
// CHECK:       %[[P:.*]] = fly.get_iter
// CHECK-NEXT:  %[[X:.*]] = fly.ptr.load(%[[P]]) : (!fly.ptr<f16, shared>) -> vector<8xf16>
// CHECK-NEXT:  return %[[X]]
func.func @whole(%m: !fly.memref<f16, shared, (1,8):(0,1)>) -> vector<8xf16> {
  %x = fly.memref.load_vec(%m) : (!fly.memref<f16, shared, (1,8):(0,1)>) -> vector<8xf16>
  return %x : vector<8xf16>
}

// Nothing lies together.
// CHECK-LABEL: func.func @one_by_one(
// CHECK-SAME:  %{{.*}}, %[[X:.*]]: vector<2xi8>)
// CHECK:       %[[P0:.*]] = fly.add_offset(%{{.*}}) : (!fly.ptr<i8, shared>, !fly.int_tuple<0>)
// CHECK-NEXT:  %[[X0:.*]] = vector.extract %[[X]][0]
// CHECK-NEXT:  fly.ptr.store(%[[X0]], %[[P0]])
// CHECK:       %[[P1:.*]] = fly.add_offset(%{{.*}}) : (!fly.ptr<i8, shared>, !fly.int_tuple<4>)
// CHECK-NEXT:  %[[X1:.*]] = vector.extract %[[X]][1]
// CHECK-NEXT:  fly.ptr.store(%[[X1]], %[[P1]])
// CHECK:       %[[Z:.*]] = arith.constant dense<0> : vector<2xi8>
// CHECK-NEXT:  %[[Y0:.*]] = fly.ptr.load(%[[P0]])
// CHECK-NEXT:  %[[V:.*]] = vector.insert %[[Y0]], %[[Z]] [0]
// CHECK-NEXT:  %[[Y1:.*]] = fly.ptr.load(%[[P1]])
// CHECK-NEXT:  %[[W:.*]] = vector.insert %[[Y1]], %[[V]] [1]
// CHECK-NEXT:  return %[[W]]
func.func @one_by_one(%m: !fly.memref<i8, shared, 2:4>, %x: vector<2xi8>) -> vector<2xi8> {
  fly.memref.store_vec(%x, %m) : (vector<2xi8>, !fly.memref<i8, shared, 2:4>) -> ()
  %y = fly.memref.load_vec(%m) : (!fly.memref<i8, shared, 2:4>) -> vector<2xi8>
  return %y : vector<2xi8>
}

// Of coordinates nothing is loaded.
// CHECK-LABEL: func.func @coordinates(
// CHECK-SAME:  %[[I:.*]]: i32)
// CHECK:       %[[Z:.*]] = arith.constant dense<0> : vector<3xi32>
// CHECK:       %[[A:.*]] = vector.insert %[[I]], %[[Z]] [0]
// CHECK:       %[[J:.*]] = arith.addi %[[I]], %c5_i32 : i32
// CHECK:       %[[B:.*]] = vector.insert %[[J]], %[[A]] [1]
// CHECK:       %[[K:.*]] = arith.addi %[[I]], %c10_i32 : i32
// CHECK:       %[[C:.*]] = vector.insert %[[K]], %[[B]] [2]
// CHECK-NEXT:  return %[[C]]
func.func @coordinates(%i: i32) -> vector<3xi32> {
  %b = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
  %l = fly.static : !fly.layout<3:5>
  %v = fly.make_view(%b, %l) : (!fly.int_tuple<?>, !fly.layout<3:5>) -> !fly.coord_tensor<?, 3:5>
  %x = fly.memref.load_vec(%v) : (!fly.coord_tensor<?, 3:5>) -> vector<3xi32>
  return %x : vector<3xi32>
}
