// What the layout algebra refuses, the verifier refuses, and shows both shapes.
// RUN: fly-opt-py --split-input-file --verify-diagnostics %s

func.func @composition(%a: !fly.layout<(6,8):(1,10)>, %b: !fly.layout<4:4>) {
  // expected-error@+1 {{fly.composition: (6,8):(1,10) can't be composed with 4:4: a stride of 4 does not divide the extent 6}}
  %r = fly.composition(%a, %b) : (!fly.layout<(6,8):(1,10)>, !fly.layout<4:4>) -> !fly.layout<(2,2):(4,10)>
  return
}
// -----
func.func @complement(%a: !fly.layout<(3,2):(1,2)>) {
  // expected-error@+1 {{fly.complement: (3,2):(1,2) has no complement: it maps two coordinates to one offset}}
  %r = fly.complement(%a) : (!fly.layout<(3,2):(1,2)>) -> !fly.layout<1:0>
  return
}
// -----
func.func @divide(%a: !fly.layout<64:1>, %t: !fly.tile<[4|4]>) {
  // expected-error@+1 {{fly.zipped_divide: 64:1 does not have the modes of the tile [4|4]}}
  %r = fly.zipped_divide(%a, %t) : (!fly.layout<64:1>, !fly.tile<[4|4]>) -> !fly.layout<(4,16):(1,4)>
  return
}
// -----
func.func @recast(%a: !fly.composed_layout<S<3,1,3> o 0 o 64:1>) {
  // expected-error@+1 {{fly.recast_layout: S<3,1,3> o 0 o 64:1 in 32 instead of 8 bits: S<3,1,3> permutes within the new elements}}
  %r = fly.recast_layout(%a) {new_type_bits = 32 : i32, old_type_bits = 8 : i32} : (!fly.composed_layout<S<3,1,3> o 0 o 64:1>) -> !fly.composed_layout<S<3,0,3> o 0 o 16:1>
  return
}
// -----
func.func @order(%s: !fly.int_tuple<(4,8)>, %o: !fly.int_tuple<(0,0)>) {
  // expected-error@+1 {{fly.make_ordered_layout: order (0,0) gives two modes of (4,8) the same position}}
  %r = fly.make_ordered_layout(%s, %o) : (!fly.int_tuple<(4,8)>, !fly.int_tuple<(0,0)>) -> !fly.layout<(4,8):(1,1)>
  return
}
// -----
func.func @take(%s: !fly.int_tuple<(4,8)>) {
  // expected-error@+1 {{fly.take: (4,8) has no modes 1 to 3}}
  %r = fly.take(%s) {begin = 1 : i32, end = 3 : i32} : (!fly.int_tuple<(4,8)>) -> !fly.int_tuple<8>
  return
}
// -----
func.func @slice(%m: !fly.memref<f32, global, (4,8):(8,1)>, %c: !fly.int_tuple<(1,2,*)>) {
  // expected-error@+1 {{fly.slice: coordinate (1,2,*) does not fit in (4,8)}}
  %r = fly.slice(%m, %c) : (!fly.memref<f32, global, (4,8):(8,1)>, !fly.int_tuple<(1,2,*)>) -> !fly.memref<f32, global, 8:1>
  return
}
// -----
func.func @stride(%a: !fly.composed_layout<S<1,1,1> o 0 o 8:1>) {
  // expected-error@+1 {{fly.get_stride: S<1,1,1> o 0 o 8:1 has no stride: it is composed}}
  %r = fly.get_stride(%a) : (!fly.composed_layout<S<1,1,1> o 0 o 8:1>) -> !fly.int_tuple<1>
  return
}
// -----
func.func @kind(%t: !fly.int_tuple<8>) {
  // expected-error@+1 {{fly.right_inverse: operand #0 must be a layout or composed_layout, but is !fly.int_tuple<8>}}
  %r = fly.right_inverse(%t) : (!fly.int_tuple<8>) -> !fly.layout<8:1>
  return
}
// -----
func.func @result(%a: !fly.layout<(4,8):(1,4)>) {
  // expected-error@+1 {{fly.coalesce: the inferred type !fly.layout<32:1> is not the result's type !fly.layout<(4,8):(1,4)>}}
  %r = fly.coalesce(%a) : (!fly.layout<(4,8):(1,4)>) -> !fly.layout<(4,8):(1,4)>
  return
}
