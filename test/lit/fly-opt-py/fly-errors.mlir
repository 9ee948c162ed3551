// RUN: fly-opt-py --split-input-file --verify-diagnostics --fly-layout-lowering %s

func.func @result_type(%l: !fly.layout<(4,8):(1,4)>) {
  // expected-error@below {{fly.get_shape: the inferred type !fly.int_tuple<(4,8)> is not the result's type !fly.int_tuple<(8,4)>}}
  %s = fly.get_shape(%l) : (!fly.layout<(4,8):(1,4)>) -> !fly.int_tuple<(8,4)>
  return
}

// -----

func.func @coordinate(%m: !fly.memref<f32, global, (4,8):(8,1)>) {
  %c = fly.static : !fly.int_tuple<(1,2,3)>
  // expected-error@below {{coordinate (1,2,3) does not fit shape (4,8)}}
  %v = fly.memref.load(%m, %c) : (!fly.memref<f32, global, (4,8):(8,1)>, !fly.int_tuple<(1,2,3)>) -> f32
  return
}

// -----

func.func @no_such_op(%l: !fly.layout<(4,8):(1,4)>) {
  // expected-error@below {{fly.get_shpae: unknown op; did you mean fly.get_shape?}}
  %s = fly.get_shpae(%l) : (!fly.layout<(4,8):(1,4)>) -> !fly.int_tuple<(4,8)>
  return
}

// -----

func.func @incongruent() {
  // expected-error@below {{shape (4,8) and stride (1) are not congruent}}
  %l = fly.static : !fly.layout<(4,8):(1)>
  return
}

// -----

func.func @unknown_layout(%l: !fly.composed_layout<S<1,0,1> o ? o 4:1>) {
  // expected-error@below {{run fly-rewrite-func-signature first}}
  %s = fly.composed_get_offset(%l) : (!fly.composed_layout<S<1,0,1> o ? o 4:1>) -> !fly.int_tuple<?>
  return
}
