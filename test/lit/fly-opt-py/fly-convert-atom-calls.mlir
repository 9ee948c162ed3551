// RUN: fly-opt-py --fly-convert-atom-call-to-ssa-form %s | FileCheck %s
// RUN: fly-opt-py --fly-convert-atom-call-to-ssa-form --fly-promote-regmem-to-vectorssa %s | FileCheck --check-prefix=VALUES %s


gpu.module @kernels {
  // A copy to registers gives a value that is stored; a copy from registers takes one.
  // CHECK-LABEL: gpu.func @there_and_back(
  // CHECK: %[[R:.*]] = fly.make_ptr()
  // CHECK: %[[V:.*]] = fly.copy_atom_call_ssa(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 0, 0>}
  // CHECK-SAME: !fly.memref<f32, global, 4:1>) -> vector<4xf32>
  // CHECK: fly.ptr.store(%[[V]], %[[R]])
  // CHECK: %[[W:.*]] = fly.ptr.load(%[[R]]) : (!fly.ptr<f32, register>) -> vector<4xf32>
  // CHECK: fly.copy_atom_call_ssa(%{{.*}}, %[[W]], %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 1, 0>}
  // CHECK-SAME: vector<4xf32>, !fly.memref<f32, shared, 4:1>) -> ()
  // VALUES-LABEL: gpu.func @there_and_back(
  // VALUES-NOT: register
  // VALUES: %[[V:.*]] = fly.copy_atom_call_ssa(
  // VALUES: vector.insert_strided_slice %[[V]]
  gpu.func @there_and_back(%g: !fly.memref<f32, global, 4:1>, %s: !fly.memref<f32, shared, 4:1>) kernel {
    %l = fly.static : !fly.layout<(2,2):(1,2)>
    %r = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f32, register>
    %v = fly.make_view(%r, %l) : (!fly.ptr<f32, register>, !fly.layout<(2,2):(1,2)>) -> !fly.memref<f32, register, (2,2):(1,2)>
    %c = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
    fly.copy_atom_call(%c, %g, %v) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, 4:1>, !fly.memref<f32, register, (2,2):(1,2)>) -> ()
    fly.copy_atom_call(%c, %v, %s) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, register, (2,2):(1,2)>, !fly.memref<f32, shared, 4:1>) -> ()
    gpu.return
  }

  // One element is a scalar; under a predicate the old value of the destination is an operand.
  // CHECK-LABEL: gpu.func @chosen(
  // CHECK: %[[P:.*]] = fly.ptr.load(%{{.*}}) : (!fly.ptr<i1, register>) -> i1
  // CHECK: %[[OLD:.*]] = fly.ptr.load(%{{.*}}) : (!fly.ptr<f32, register>) -> f32
  // CHECK: fly.copy_atom_call_ssa(%{{.*}}, %{{.*}}, %[[OLD]], %[[P]]) {operandSegmentSizes = array<i32: 1, 1, 1, 1>}
  // CHECK-SAME: f32, i1) -> f32
  gpu.func @chosen(%g: !fly.memref<f32, #fly_rocdl.buffer_desc, 1:1>) kernel {
    %l = fly.static : !fly.layout<1:0>
    %r = fly.make_ptr() {dictAttrs = {allocSize = 1 : i64}} : () -> !fly.ptr<f32, register>
    %q = fly.make_ptr() {dictAttrs = {allocSize = 1 : i64}} : () -> !fly.ptr<i1, register>
    %v = fly.make_view(%r, %l) : (!fly.ptr<f32, register>, !fly.layout<1:0>) -> !fly.memref<f32, register, 1:0>
    %p = fly.make_view(%q, %l) : (!fly.ptr<i1, register>, !fly.layout<1:0>) -> !fly.memref<i1, register, 1:0>
    %c = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>
    fly.copy_atom_call(%c, %g, %v, %p) : (!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>, !fly.memref<f32, #fly_rocdl.buffer_desc, 1:1>, !fly.memref<f32, register, 1:0>, !fly.memref<i1, register, 1:0>) -> ()
    gpu.return
  }

  // A matrix instruction takes its operands and gives its result as vectors; eight bits are i8.
  // CHECK-LABEL: gpu.func @multiply(
  // CHECK: %[[A:.*]] = fly.ptr.load(%{{.*}}) : (!fly.ptr<f8E5M2FNUZ, register>) -> vector<8xi8>
  // CHECK: %[[B:.*]] = fly.ptr.load(%{{.*}}) : (!fly.ptr<f8E5M2FNUZ, register>) -> vector<8xi8>
  // CHECK: %[[C:.*]] = fly.ptr.load(%[[ACC:.*]]) : (!fly.ptr<f32, register>) -> vector<16xf32>
  // CHECK: %[[D:.*]] = fly.mma_atom_call_ssa(%{{.*}}, %[[A]], %[[B]], %[[C]])
  // CHECK: fly.ptr.store(%[[D]], %[[ACC]])
  gpu.func @multiply() kernel {
    %l8 = fly.static : !fly.layout<8:1>
    %l16 = fly.static : !fly.layout<(4,4):(1,4)>
    %ra = fly.make_ptr() {dictAttrs = {allocSize = 8 : i64}} : () -> !fly.ptr<f8E5M2FNUZ, register>
    %rc = fly.make_ptr() {dictAttrs = {allocSize = 16 : i64}} : () -> !fly.ptr<f32, register>
    %a = fly.make_view(%ra, %l8) : (!fly.ptr<f8E5M2FNUZ, register>, !fly.layout<8:1>) -> !fly.memref<f8E5M2FNUZ, register, 8:1>
    %c = fly.make_view(%rc, %l16) : (!fly.ptr<f32, register>, !fly.layout<(4,4):(1,4)>) -> !fly.memref<f32, register, (4,4):(1,4)>
    %m = fly.make_mma_atom : !fly.mma_atom<!fly_rocdl.cdna3.mfma<32x32x16, (f8E5M2FNUZ, f8E5M2FNUZ) -> f32>>
    fly.mma_atom_call(%m, %c, %a, %a, %c) : (!fly.mma_atom<!fly_rocdl.cdna3.mfma<32x32x16, (f8E5M2FNUZ, f8E5M2FNUZ) -> f32>>, !fly.memref<f32, register, (4,4):(1,4)>, !fly.memref<f8E5M2FNUZ, register, 8:1>, !fly.memref<f8E5M2FNUZ, register, 8:1>, !fly.memref<f32, register, (4,4):(1,4)>) -> ()
    gpu.return
  }

  // Registers with gaps, in another order, or of an argument without a known pointer's view: the
  // first two stay memrefs, the last is read through its iterator. No registers: nothing changes.
  // CHECK-LABEL: gpu.func @others(
  // CHECK: fly.copy_atom_call(
  // CHECK: fly.copy_atom_call(
  // CHECK: %[[I:.*]] = fly.get_iter(%{{.*}}) : (!fly.memref<f32, register, 4:1>) -> !fly.ptr<f32, register>
  // CHECK: fly.ptr.load(%[[I]])
  // CHECK: fly.copy_atom_call_ssa
  // CHECK: fly.copy_atom_call(
  gpu.func @others(%g: !fly.memref<f32, global, 4:1>, %gaps: !fly.memref<f32, register, 4:2>, %turned: !fly.memref<f32, register, (2,2):(2,1)>, %plain: !fly.memref<f32, register, 4:1>) {
    %c = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
    fly.copy_atom_call(%c, %gaps, %g) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, register, 4:2>, !fly.memref<f32, global, 4:1>) -> ()
    fly.copy_atom_call(%c, %turned, %g) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, register, (2,2):(2,1)>, !fly.memref<f32, global, 4:1>) -> ()
    fly.copy_atom_call(%c, %plain, %g) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, register, 4:1>, !fly.memref<f32, global, 4:1>) -> ()
    fly.copy_atom_call(%c, %g, %g) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, 4:1>, !fly.memref<f32, global, 4:1>) -> ()
    gpu.return
  }

  // A result that no vector can stand for, registers with gaps, stays a memref; the operands are
  // values all the same.
  // CHECK-LABEL: gpu.func @gaps_in_d(
  // CHECK: %[[I:.*]] = fly.get_iter(%[[V:.*]]) : (!fly.memref<f16, register, 4:1>)
  // CHECK: %[[A:.*]] = fly.ptr.load(%[[I]]) : (!fly.ptr<f16, register>) -> vector<4xf16>
  // CHECK: fly.mma_atom_call_ssa(%{{.*}}, %[[D:.*]], %[[A]], %{{.*}}, %[[D]]) :
  // CHECK-SAME: !fly.memref<f32, register, 4:2>, vector<4xf16>, vector<4xf16>, !fly.memref<f32, register, 4:2>) -> ()
  gpu.func @gaps_in_d(%d: !fly.memref<f32, register, 4:2>, %a: !fly.memref<f16, register, 4:1>) {
    %m = fly.make_mma_atom : !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>
    fly.mma_atom_call(%m, %d, %a, %a, %d) : (!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, !fly.memref<f32, register, 4:2>, !fly.memref<f16, register, 4:1>, !fly.memref<f16, register, 4:1>, !fly.memref<f32, register, 4:2>) -> ()
    gpu.return
  }
}
