// What is no whole number of bytes is refused, not rounded.
// RUN: fly-opt-py --convert-fly-to-rocdl --split-input-file --verify-diagnostics %s

func.func @odd(%p: !fly.ptr<f6E2M3FN, global>) -> vector<4xf6E2M3FN> {
  %c = fly.make_int_tuple() : () -> !fly.int_tuple<6>
  // expected-error @+1 {{6 elements of f6E2M3FN are not known to be a multiple of 4}}
  %a = fly.add_offset(%p, %c) : (!fly.ptr<f6E2M3FN, global>, !fly.int_tuple<6>) -> !fly.ptr<f6E2M3FN, global>
  %x = fly.ptr.load(%a) : (!fly.ptr<f6E2M3FN, global>) -> vector<4xf6E2M3FN>
  return %x : vector<4xf6E2M3FN>
}

// -----

func.func @part(%p: !fly.ptr<i4, global>) -> i4 {
  // expected-error @+1 {{an access must move whole bytes, but i4 has 4 bits}}
  %x = fly.ptr.load(%p) : (!fly.ptr<i4, global>) -> i4
  return %x : i4
}
