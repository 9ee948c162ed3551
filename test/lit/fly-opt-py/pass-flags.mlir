// Flags are passes, run in the order in which they stand, inside the operation that they need.
// RUN: fly-opt-py --cse --canonicalize --print-pipeline | %filecheck %s --check-prefix=ORDER
// RUN: fly-opt-py --canonicalize --cse --print-pipeline | %filecheck %s --check-prefix=OTHER
// RUN: fly-opt-py --canonicalize --convert-gpu-to-rocdl=chipset=gfx942 --convert-arith-to-llvm %s | %filecheck %s

// ORDER: cse,
// ORDER-NEXT: canonicalize
// OTHER: canonicalize,
// OTHER-NEXT: cse

// CHECK: llvm.func @k(%[[P:.*]]: !llvm.ptr<1>)
// CHECK-SAME: rocdl.kernel
// CHECK: %[[C:.*]] = llvm.mlir.constant(3 : i32)
// CHECK-NEXT: llvm.store %[[C]], %[[P]]
module {
  gpu.module @kernels {
    gpu.func @k(%p: !llvm.ptr<1>) kernel {
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %three = arith.addi %one, %two : i32
      llvm.store %three, %p : i32, !llvm.ptr<1>
      gpu.return
    }
  }
}
