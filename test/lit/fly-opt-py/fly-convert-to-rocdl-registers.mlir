// RUN: fly-opt-py --fly-layout-lowering --convert-fly-to-rocdl %s | FileCheck %s

// Registers are a stack slot of the function's first block, even if they are asked for in a loop,
// so that LLVM can make them registers.
// CHECK-LABEL: func.func @in_a_loop(
// CHECK: %[[N:.*]] = arith.constant 8 : i64
// CHECK-NEXT: %[[R:.*]] = llvm.alloca %[[N]] x f32 : (i64) -> !llvm.ptr<5>
// CHECK: scf.for
// CHECK-NOT: llvm.alloca
// CHECK: %[[C:.*]] = arith.constant 6 : i32
// CHECK: %[[A:.*]] = llvm.getelementptr %[[R]][%[[C]]] : (!llvm.ptr<5>, i32) -> !llvm.ptr<5>, f32
// CHECK: llvm.store %{{.*}}, %[[A]] {alignment = 4 : i64} : f32, !llvm.ptr<5>
// CHECK: llvm.load %[[A]] {alignment = 4 : i64} : !llvm.ptr<5> -> f32
func.func @in_a_loop(%x: f32, %a: index, %b: index, %c: index) {
  %l = fly.static : !fly.layout<(2,4):(4,1)>
  %k = fly.static : !fly.int_tuple<(1,2)>
  scf.for %i = %a to %b step %c {
    %m = fly.memref.alloca(%l) : (!fly.layout<(2,4):(4,1)>) -> !fly.memref<f32, register, (2,4):(4,1)>
    fly.memref.store(%x, %m, %k)
      : (f32, !fly.memref<f32, register, (2,4):(4,1)>, !fly.int_tuple<(1,2)>) -> ()
    %y = fly.memref.load(%m, %k)
      : (!fly.memref<f32, register, (2,4):(4,1)>, !fly.int_tuple<(1,2)>) -> f32
  }
  return
}
