// A textual pipeline: passes of MLIR and passes in Python side by side, nested.
// A known block bounds the numbers of blocks, unless the bound has more than 31 bits.
// RUN: fly-opt-py --passes 'builtin.module(gpu.module(fly-lower-launch-sizes,canonicalize),cse)' %s | %filecheck %s
// RUN: fly-opt-py --passes 'gpu.module(fly-lower-launch-sizes)' %s | %filecheck %s --check-prefix=SIZES

// CHECK: gpu.func @k
// CHECK-NEXT: %[[N:.*]] = arith.constant 64 : i64
// CHECK-NEXT: llvm.store %[[N]]
// SIZES: arith.constant 64 : index
// SIZES: arith.index_cast
// SIZES: gpu.block_id x upper_bound 67108864
// SIZES: gpu.block_id y{{$}}
// SIZES-LABEL: gpu.func @unknown
// SIZES: gpu.block_id x{{$}}
module {
  gpu.module @kernels {
    gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %i = gpu.block_dim x
      %n = arith.index_cast %i : index to i64
      llvm.store %n, %p : i64, !llvm.ptr<1>
      %x = gpu.block_id x
      %y = gpu.block_id y
      %sum = arith.addi %x, %y : index
      %stored = arith.index_cast %sum : index to i64
      llvm.store %stored, %p : i64, !llvm.ptr<1>
      gpu.return
    }
    gpu.func @unknown(%p: !llvm.ptr<1>) kernel {
      %x = gpu.block_id x
      %stored = arith.index_cast %x : index to i64
      llvm.store %stored, %p : i64, !llvm.ptr<1>
      gpu.return
    }
  }
}
