// Elements of six and four bits share bytes: steps are in bytes, accesses are of whole ones.
// RUN: fly-opt-py --convert-fly-to-rocdl %s | %filecheck %s

// CHECK-LABEL: func.func @fours(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %[[N:.*]]: i32)
// CHECK: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: %[[B:.*]] = arith.shrsi %[[N]], %[[ONE]] : i32
// CHECK: %[[A:.*]] = llvm.getelementptr %[[P]][%[[B]]] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
// CHECK: %[[W:.*]] = llvm.load %[[A]] {alignment = 1 : i64} : !llvm.ptr<1> -> i32
// CHECK: llvm.bitcast %[[W]] : i32 to vector<8xi4>
func.func @fours(%p: !fly.ptr<f4E2M1FN, global>, %n: i32) -> vector<8xf4E2M1FN> {
  %c = fly.make_int_tuple(%n) : (i32) -> !fly.int_tuple<?{div=2}>
  %a = fly.add_offset(%p, %c) : (!fly.ptr<f4E2M1FN, global>, !fly.int_tuple<?{div=2}>) -> !fly.ptr<f4E2M1FN, global>
  %x = fly.ptr.load(%a) : (!fly.ptr<f4E2M1FN, global>) -> vector<8xf4E2M1FN>
  return %x : vector<8xf4E2M1FN>
}

// Four of six bits fill three bytes: twelve elements on are nine bytes.
// CHECK-LABEL: func.func @sixes(
// CHECK: %[[Q:.*]] = arith.shrsi %c12_i32, %c2_i32 : i32
// CHECK: %[[B:.*]] = arith.muli %[[Q]], %c3_i32 : i32
// CHECK: llvm.getelementptr %{{.*}}[%[[B]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
// CHECK: llvm.bitcast %{{.*}} : vector<4xi6> to vector<3xi8>
// CHECK: llvm.store %{{.*}} : vector<3xi8>, !llvm.ptr<3>
func.func @sixes(%p: !fly.ptr<f6E2M3FN, shared>, %v: vector<4xf6E2M3FN>) {
  %c = fly.make_int_tuple() : () -> !fly.int_tuple<12>
  %a = fly.add_offset(%p, %c) : (!fly.ptr<f6E2M3FN, shared>, !fly.int_tuple<12>) -> !fly.ptr<f6E2M3FN, shared>
  fly.ptr.store(%v, %a) : (vector<4xf6E2M3FN>, !fly.ptr<f6E2M3FN, shared>) -> ()
  return
}
