// RUN: fly-opt-py --fly-set-target=chip=gfx942 --convert-fly-to-rocdl %s | FileCheck --check-prefixes=CHECK,CDNA %s
// RUN: fly-opt-py --fly-set-target=chip=gfx1100 --convert-fly-to-rocdl %s | FileCheck --check-prefixes=CHECK,RDNA %s

gpu.module @kernels {
  // A descriptor without flags gets those of the target: RDNA chooses its check of bounds in them.
  // The pointer is a pair with an offset in elements; an access scales and swizzles it in bytes,
  // and moves whole words.
  // CHECK-LABEL: gpu.func @descriptor(
  // CDNA: %[[F:.*]] = arith.constant 159744 : i32
  // RDNA: %[[F:.*]] = arith.constant 822243328 : i32
  // CHECK: %[[D:.*]] = rocdl.make.buffer.rsrc %{{.*}}, %{{.*}}, %{{.*}}, %[[F]]
  // CHECK: %[[P:.*]] = llvm.insertvalue %[[D]], %{{.*}}[0]
  // CHECK: %[[Q:.*]] = llvm.insertvalue %{{.*}}, %[[P]][1] : !llvm.struct<(ptr<8>, i32)>
  // CHECK: %[[N:.*]] = arith.trunci %{{.*}} : i64 to i32
  // CHECK: %[[O:.*]] = llvm.extractvalue %[[Q]][1]
  // CHECK: arith.addi %[[O]], %[[N]] : i32
  // CHECK: %[[B:.*]] = arith.muli
  // CHECK: %[[M:.*]] = arith.andi %[[B]], %c384_i32 : i32
  // CHECK: %[[S:.*]] = arith.shrui %[[M]], %c3_i32 : i32
  // CHECK: %[[X:.*]] = arith.xori %[[B]], %[[S]] : i32
  // CHECK: %[[V:.*]] = rocdl.raw.ptr.buffer.load %{{.*}}, %[[X]], %c0_i32, 0 : vector<2xi32>
  // CHECK: llvm.bitcast %[[V]] : vector<2xi32> to vector<4xf16>
  // CHECK: rocdl.raw.ptr.buffer.store
  // CHECK: %[[R:.*]] = llvm.extractvalue %[[Q]][0]
  // CHECK: gpu.return %[[R]] : !llvm.ptr<8>
  gpu.func @descriptor(%p: !fly.ptr<f16, global>, %n: i64, %i: i64, %out: !fly.ptr<f16, global>) -> !llvm.ptr<8> {
    %s = arith.constant 0 : i16
    %d = fly.make_ptr(%p, %s, %n) : (!fly.ptr<f16, global>, i16, i64) -> !fly.ptr<f16, #fly_rocdl.buffer_desc, S<2,4,3>>
    %t = fly.make_int_tuple(%i) : (i64) -> !fly.int_tuple<?{i64}>
    %e = fly.add_offset(%d, %t) : (!fly.ptr<f16, #fly_rocdl.buffer_desc, S<2,4,3>>, !fly.int_tuple<?{i64}>) -> !fly.ptr<f16, #fly_rocdl.buffer_desc, S<2,4,3>>
    %v = fly.ptr.load(%e) : (!fly.ptr<f16, #fly_rocdl.buffer_desc, S<2,4,3>>) -> vector<4xf16>
    fly.ptr.store(%v, %d) : (vector<4xf16>, !fly.ptr<f16, #fly_rocdl.buffer_desc, S<2,4,3>>) -> ()
    %r = fly_rocdl.get_buffer_rsrc(%d) : (!fly.ptr<f16, #fly_rocdl.buffer_desc, S<2,4,3>>) -> !llvm.ptr<8>
    gpu.return %r : !llvm.ptr<8>
  }
  // Registers with gaps are gathered and scattered run by run; a predicate is a condition around.
  // CHECK-LABEL: gpu.func @gaps(
  // CHECK: %[[A:.*]] = llvm.load %arg1 : !llvm.ptr<5> -> vector<2xf32>
  // CHECK: %[[B:.*]] = vector.insert_strided_slice %[[A]], %{{.*}} {offsets = [0]
  // CHECK: %[[G:.*]] = llvm.getelementptr %arg1[%c8_i32]
  // CHECK: %[[C:.*]] = llvm.load %[[G]] : !llvm.ptr<5> -> vector<2xf32>
  // CHECK: %[[D:.*]] = vector.insert_strided_slice %[[C]], %[[B]] {offsets = [2]
  // CHECK: llvm.store %[[D]], %arg0 : vector<4xf32>, !llvm.ptr<1>
  // CHECK: %[[P:.*]] = llvm.load %arg2 : !llvm.ptr<5> -> i1
  // CHECK: scf.if %[[P]] {
  // CHECK:   llvm.load %arg0 : !llvm.ptr<1> -> vector<4xf32>
  // CHECK-COUNT-2: llvm.store %{{.*}} : vector<2xf32>, !llvm.ptr<5>
  gpu.func @gaps(%g: !fly.memref<f32, global, 4:1>, %r: !fly.memref<f32, register, (2,2):(1,8)>, %p: !fly.memref<i1, register, 1:1>) {
    %c = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
    fly.copy_atom_call(%c, %r, %g) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, register, (2,2):(1,8)>, !fly.memref<f32, global, 4:1>) -> ()
    fly.copy_atom_call(%c, %g, %r, %p) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, 4:1>, !fly.memref<f32, register, (2,2):(1,8)>, !fly.memref<i1, register, 1:1>) -> ()
    gpu.return
  }
  // Eight-bit floats are bytes in memory.
  // CHECK-LABEL: gpu.func @narrow(
  // CHECK: %[[L:.*]] = llvm.load %arg0 {alignment = 1 : i64} : !llvm.ptr<3> -> vector<4xi8>
  // CHECK: %[[V:.*]] = arith.bitcast %[[L]] : vector<4xi8> to vector<4xf8E4M3FN>
  // CHECK: %[[S:.*]] = arith.bitcast %[[V]]
  // CHECK: llvm.store %[[S]], %arg0 {alignment = 1 : i64} : vector<4xi8>, !llvm.ptr<3>
  gpu.func @narrow(%p: !fly.ptr<f8E4M3FN, shared>) {
    %v = fly.ptr.load(%p) : (!fly.ptr<f8E4M3FN, shared>) -> vector<4xf8E4M3FN>
    fly.ptr.store(%v, %p) : (vector<4xf8E4M3FN>, !fly.ptr<f8E4M3FN, shared>) -> ()
    gpu.return
  }
  // An atom is a struct of its state; a scale may come as bytes.
  // CHECK-LABEL: gpu.func @scaled(
  // CHECK: %[[ONE:.*]] = llvm.insertvalue %c0_i32, %{{.*}}[0] : !llvm.struct<(i32, i32)>
  // CHECK: %[[NONE:.*]] = llvm.insertvalue %c0_i32, %[[ONE]][1]
  // CHECK: %[[W:.*]] = llvm.bitcast %arg0 : vector<4xi8> to i32
  // CHECK: %[[STATE:.*]] = llvm.insertvalue %[[W]], %[[NONE]][1]
  // CHECK: %[[SA:.*]] = llvm.extractvalue %[[STATE]][0]
  // CHECK: %[[SB:.*]] = llvm.extractvalue %[[STATE]][1]
  // CHECK: rocdl.mfma.scale.f32.16x16x128.f8f6f4 %arg1, %arg1, %arg2, fp8_e5m2, fp8_e5m2, 1, %[[SA]], 0, %[[SB]]
  gpu.func @scaled(%sa: vector<4xi8>, %a: vector<8xi32>, %c: vector<4xf32>) -> vector<4xf32> {
    %m = fly.make_mma_atom : !fly.mma_atom<!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E5M2, f8E5M2) -> f32, opselA = 1, opselB = 0>>
    %n = fly.atom.set_value(%m, "scale_b", %sa) : (!fly.mma_atom<!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E5M2, f8E5M2) -> f32, opselA = 1, opselB = 0>>, vector<4xi8>) -> !fly.mma_atom<!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E5M2, f8E5M2) -> f32, opselA = 1, opselB = 0>>
    %d = fly.mma_atom_call_ssa(%n, %a, %a, %c) : (!fly.mma_atom<!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E5M2, f8E5M2) -> f32, opselA = 1, opselB = 0>>, vector<8xi32>, vector<8xi32>, vector<4xf32>) -> vector<4xf32>
    gpu.return %d : vector<4xf32>
  }
  // Atomic updates, in memory and through a descriptor.
  // CHECK-LABEL: gpu.func @update(
  // CHECK: llvm.atomicrmw fmax %arg2, %arg0 syncscope("workgroup") monotonic : !llvm.ptr<3>, f32
  // CHECK: llvm.call_intrinsic "llvm.amdgcn.raw.ptr.buffer.atomic.inc"(%arg1,
  gpu.func @update(%x: f32, %k: i32, %f: !fly.memref<f32, shared, 1:1>, %b: !fly.memref<i32, #fly_rocdl.buffer_desc, 1:1>) {
    %a = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_atomic<max, f32, "workgroup">, 32>
    %u = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly_rocdl.cdna3.buffer_atomic<inc, i32>, 32>
    fly.copy_atom_call_ssa(%a, %x, %f) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly.universal_atomic<max, f32, "workgroup">, 32>, f32, !fly.memref<f32, shared, 1:1>) -> ()
    fly.copy_atom_call_ssa(%u, %k, %b) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly_rocdl.cdna3.buffer_atomic<inc, i32>, 32>, i32, !fly.memref<i32, #fly_rocdl.buffer_desc, 1:1>) -> ()
    gpu.return
  }
}
