// RUN: fly-opt-py --split-input-file --verify-diagnostics --fly-rewrite-func-signature %s

// expected-error@below {{a branch passes a fly value; use scf control flow instead}}
func.func @branch(%t: !fly.int_tuple<?>, %p: i1) -> i32 {
  cf.cond_br %p, ^bb1(%t : !fly.int_tuple<?>), ^bb1(%t : !fly.int_tuple<?>)
^bb1(%u: !fly.int_tuple<?>):
  %s = fly.get_scalar(%u) : (!fly.int_tuple<?>) -> i32
  return %s : i32
}

// -----

func.func @scale(%t: !fly.layout<4:?E0>, %p: !fly.int_tuple<4>) -> !fly.layout<4:?E0> {
  %d = fly.get_stride(%t) : (!fly.layout<4:?E0>) -> !fly.int_tuple<?E0>
  %l = fly.make_layout(%p, %d) : (!fly.int_tuple<4>, !fly.int_tuple<?E0>) -> !fly.layout<4:?E0>
  // expected-error@below {{func.return: ?E0 can't cross a function boundary: its scale is dynamic}}
  return %l : !fly.layout<4:?E0>
}
