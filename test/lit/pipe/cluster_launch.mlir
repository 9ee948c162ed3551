// A host function that gives the clusters' size with the launch: the kernel runs in clusters of 4×2
// workgroups, and stores 10 times the greatest rank, and its own.
// RUN: fly-opt-py --target gfx1250 %s | opt -S -O3 | fly-llc | fly-link -o %t.hsaco
// RUN: fly-run --device emulator -q %t.hsaco "out=full((4,8),i32,-1):%t.1.npy"
// RUN: sed 's/amdgcn.cluster.workgroup.flat.id/nvvm.read.ptx.sreg.cluster.ctarank/; s/amdgcn.cluster.workgroup.max.flat.id/nvvm.read.ptx.sreg.cluster.nctarank/' %s > %t.nvidia.mlir
// RUN: fly-opt-py --target sm_90a %t.nvidia.mlir | opt -S -O3 | fly-llc | fly-link -o %t.ptx
// RUN: fly-run --device cpu -q %t.ptx "out=full((4,8),i32,-1):%t.2.npy"
// RUN: %PYTHON -c "import numpy as np, sys; y, x = np.indices((4, 8)); rank = x % 4 + 4 * (y % 2); one, two = map(np.load, sys.argv[1:]); assert (one == 70 + rank).all() and (two == 80 + rank).all()" %t.1.npy %t.2.npy
// RUN: fly-opt-py --target sm_90a %t.nvidia.mlir | opt -S -O3 | fly-llc | FileCheck --check-prefix=PTX %s
// RUN: sed 's/%%c8, %%c4, %%c1) threads/%%c8, %%c3, %%c1) threads/' %s | fly-opt-py --target gfx1250 | opt -S -O3 | fly-llc | fly-link -o %t.part.hsaco
// RUN: not fly-run --device emulator -q %t.part.hsaco "out=full((4,8),i32,-1)" 2>&1 | FileCheck --check-prefix=PART %s
//
// PTX: .reqnctapercluster 4, 2, 1
// PART: fly-run: error: ranks: a grid of 8×3 workgroups is not made of whole clusters, which have 4×2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @ranks(%out: !fly.memref<i32, global, (4,8):(8,1)>) kernel {
      %row = gpu.block_id y
      %column = gpu.block_id x
      %y = arith.index_cast %row : index to i32
      %x = arith.index_cast %column : index to i32
      %rank = llvm.call_intrinsic "llvm.amdgcn.cluster.workgroup.flat.id"() : () -> i32
      %last = llvm.call_intrinsic "llvm.amdgcn.cluster.workgroup.max.flat.id"() : () -> i32
      %ten = arith.constant 10 : i32
      %tens = arith.muli %last, %ten : i32
      %value = arith.addi %tens, %rank : i32
      %at = fly.make_int_tuple(%y, %x) : (i32, i32) -> !fly.int_tuple<(?,?)>
      fly.memref.store(%value, %out, %at) : (i32, !fly.memref<i32, global, (4,8):(8,1)>, !fly.int_tuple<(?,?)>) -> ()
      gpu.return
    }
  }
  func.func @h(%out: !fly.memref<i32, global, (4,8):(8,1)> {fly.name = "out"}) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    gpu.launch_func @kernels::@ranks clusters in (%c4, %c2, %c1) blocks in (%c8, %c4, %c1) threads in (%c1, %c1, %c1) args(%out : !fly.memref<i32, global, (4,8):(8,1)>)
    return
  }
}
