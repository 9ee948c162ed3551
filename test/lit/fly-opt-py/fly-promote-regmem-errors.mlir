// RUN: fly-opt-py --verify-diagnostics --fly-promote-regmem-to-vectorssa %s

gpu.module @kernels {
  gpu.func @beyond(%x: vector<4xf32>) kernel {
    %r = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f32, register>
    %one = fly.make_int_tuple() : () -> !fly.int_tuple<1>
    %r1 = fly.add_offset(%r, %one) : (!fly.ptr<f32, register>, !fly.int_tuple<1>) -> !fly.ptr<f32, register>
    // expected-error@+1 {{fly.ptr.store: elements 1 to 4 are not among the 4 registers that were allocated}}
    fly.ptr.store(%x, %r1) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
    gpu.return
  }
}
