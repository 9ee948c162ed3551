// The launcher of a host program as LLVM IR: guards of the arguments, integers, a launch through the driver's entry.
// RUN: fly-opt-py --target gfx942 --emit host-llvm %s | %filecheck %s
// RUN: fly-opt-py --target gfx942 --emit host-llvm %s | %opt -S -O1 | %filecheck %s --check-prefix=OPT
// RUN: fly-opt-py --target gfx942 --emit host-llvm --print-pipeline | %filecheck %s --check-prefix=PIPELINE
// RUN: not fly-opt-py --emit host-llvm %s 2>&1 | %filecheck %s --check-prefix=NONE

// CHECK: declare ptr @PyByteArray_AsString(ptr)
// CHECK: define ptr @call(ptr %self, ptr %args, i64 %nargs) nounwind {
// CHECK: call ptr @PyByteArray_AsString(ptr %self)
// CHECK: ret ptr
// OPT: define {{.*}}ptr @call(
// PIPELINE: fly-extract-host-program,
// PIPELINE-NEXT: fly-emit-host-llvm
// NONE: fly-opt-py: error: the module has no host program
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%A: !fly.memref<f32, global, ?{i64}:1>, %x: f32) kernel { gpu.return }
  }
  func.func @scale(%A: !fly.memref<f32, global, ?{i64}:1> {fly.name = "A", fly.dtype = "f32"}, %x: f32 {fly.name = "x", fly.dtype = "f32"}) {
    %one = arith.constant 1 : index
    %shape = fly.get_shape(%A) : (!fly.memref<f32, global, ?{i64}:1>) -> !fly.int_tuple<?{i64}>
    %n = fly.get_scalar(%shape) : (!fly.int_tuple<?{i64}>) -> i64
    %grid = arith.index_cast %n : i64 to index
    gpu.launch_func @kernels::@k blocks in (%grid, %one, %one) threads in (%one, %one, %one) args(%A : !fly.memref<f32, global, ?{i64}:1>, %x : f32)
    return
  }
}
