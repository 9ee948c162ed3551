// The lanes of a wave are the target's; what depends on them folds, and a shuffle among more is refused.
// A shared array with as many bytes for each wave is allocated for the target's waves.
// RUN: fly-opt-py --target gfx942 %s --emit mlir | %filecheck %s --check-prefix=WAVE64
// RUN: fly-opt-py --target gfx1100 %s --emit mlir | %filecheck %s --check-prefix=WAVE32
// RUN: fly-opt-py --target gfx1201 %s --emit mlir | %filecheck %s --check-prefix=WAVE32
// RUN: sed "s/half_of : f32/whole : f32/" %s | not fly-opt-py --target gfx1201 2>&1 | %filecheck %s --check-prefix=REFUSED
// RUN: sed "s/half_of : f32/whole : f32/" %s | fly-opt-py --target gfx90a -o /dev/null
// RUN: not fly-opt-py --fly-fold-wave-size %s 2>&1 | %filecheck %s --check-prefix=NONE

// WAVE64-DAG: llvm.mlir.global internal @{{.*}} !llvm.array<16 x i8>
// WAVE64-DAG: llvm.mlir.global internal @{{.*}} !llvm.array<48 x i8>
// WAVE32-DAG: llvm.mlir.global internal @{{.*}} !llvm.array<32 x i8>
// WAVE32-DAG: llvm.mlir.global internal @{{.*}} !llvm.array<48 x i8>
// WAVE64-LABEL: llvm.func @lanes
// WAVE64-NOT: scf.if
// WAVE64: llvm.mlir.constant(64 : i64)
// WAVE64: rocdl.ds_bpermute
// WAVE32-LABEL: llvm.func @lanes
// WAVE32-NOT: rocdl.ds_bpermute
// WAVE32: llvm.mlir.constant(32 : i64)
// REFUSED: fly-opt-py: error: {{.*}}: a shuffle uses 64 lanes, but a wave of gfx1201 has 32
// REFUSED: omit the width to use the whole wave; fx.num_warp_threads() is its size
// NONE: the module has no target
module {
  gpu.module @kernels {
    gpu.func @lanes(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %x: f32) kernel {
      %size = gpu.subgroup_size : index
      %lanes = arith.index_cast %size : index to i64
      %c32 = arith.constant 32 : index
      %wide = arith.cmpi ugt, %size, %c32 : index
      scf.if %wide {
        %offset = arith.constant 1 : i32
        %whole = arith.constant 64 : i32
        %y, %valid = gpu.shuffle down %x, %offset, %whole : f32
        llvm.store %y, %p : f32, !llvm.ptr<1>
      }
      llvm.store %lanes, %q : i64, !llvm.ptr<1>
      gpu.return
    }
    gpu.func @arrays() kernel {
      %zero = arith.constant 0.0 : f32
      %of_waves = fly.make_ptr() {dictAttrs = {allocSize = 32 : i64, ofWaves}} : () -> !fly.ptr<f32, shared>
      %plain = fly.make_ptr() {dictAttrs = {allocSize = 48 : i64}} : () -> !fly.ptr<f32, shared>
      fly.ptr.store(%zero, %of_waves) : (f32, !fly.ptr<f32, shared>) -> ()
      fly.ptr.store(%zero, %plain) : (f32, !fly.ptr<f32, shared>) -> ()
      gpu.return
    }
    gpu.func @half_of(%p: !llvm.ptr<1>, %x: f32) kernel {
      %offset = arith.constant 1 : i32
      %half_of = arith.constant 32 : i32
      %whole = arith.constant 64 : i32
      %y, %valid = gpu.shuffle down %x, %offset, %half_of : f32
      llvm.store %y, %p : f32, !llvm.ptr<1>
      gpu.return
    }
  }
}
