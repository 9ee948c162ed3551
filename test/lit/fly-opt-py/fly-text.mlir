// RUN: fly-opt-py %s | FileCheck %s
// RUN: fly-opt-py %s | fly-opt-py | FileCheck %s

// Read as FlyDSL writes it, printed in the same text and in normal form; and so again.
// CHECK-LABEL: func.func @text(
// CHECK-SAME: %[[M:.*]]: !fly.memref<f32, global, (4,?{i64 div=16}):(?{i64},1), align<16>> {fly.name = "fly.get(%x)"}
// CHECK: %[[C:.*]] = fly.make_int_tuple(%{{.*}}, %{{.*}}) : (i32, i32) -> !fly.int_tuple<(?,?)>
// CHECK: fly.static : !fly.layout<(4,8):(1,4)>
// CHECK: fly.static {elems = [4 : i32]} : !fly.int_tuple<(4)>
// CHECK: fly.get(%[[C]]) {mode = array<i32: 1>} : (!fly.int_tuple<(?,?)>) -> !fly.int_tuple<?>
// CHECK: fly.memref.load(%[[M]], %[[C]]) : (!fly.memref<f32, global, (4,?{i64 div=16}):(?{i64},1), align<16>>, !fly.int_tuple<(?,?)>) -> f32
func.func @text(%m: !fly.memref<f32, global, (4, ?{i64 div=16}) : (?{i64}, 1), align<16>> {fly.name = "fly.get(%x)"}, %i: i32) {
  %c = fly.make_int_tuple(%i, %i) : (i32, i32) -> !fly.int_tuple<(?, ?)>
  %l = "fly.static"() : () -> !fly.layout<(4, 8) : (1, 4)>
  %t = fly.static {elems = [4 : i32]} : !fly.int_tuple<( 4 )>
  %k = fly.get(%c) {mode = array<i32: 1>} : (!fly.int_tuple<(?,?)>) -> !fly.int_tuple<?>
  %x = fly.memref.load(%m, %c) : (
    !fly.memref<f32, global, (4,?{i64 div=16}) : (?{i64},1), align<16>>, !fly.int_tuple<(?,?)>
  ) -> f32
  return
}
