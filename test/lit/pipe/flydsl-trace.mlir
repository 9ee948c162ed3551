// What FlyDSL 0.4.2 writes, through the pipe: a host function without names, with pointers, that
// computes a grid by the layout algebra; addresses in their own spelling; lines that are printed.
//
// RUN: %PYTHON -c "import numpy as np; np.save('%t.a.npy', np.arange(6, dtype='f4')); np.save('%t.b.npy', np.zeros(4, 'f4'))"
// RUN: fly-opt-py --target gfx942 %s | opt -S -O3 | fly-llc | fly-link -o %t.hsaco
// RUN: fly-run --device emulator %t.hsaco arg0=%t.a.npy arg1=%t.b.npy arg2=7 2>&1 | FileCheck %s
//
// Its pipeline's text ends in MLIR's code generation. LLVM IR comes out instead.
// RUN: xargs -0 -a %S/Inputs/flydsl-pipeline.txt -I PASSES fly-opt-py --passes PASSES %s | opt -S -O3 | fly-llc | fly-link -o %t.2.hsaco
// RUN: fly-run --device emulator %t.2.hsaco arg0=%t.a.npy arg1=%t.b.npy arg2=7 2>&1 | FileCheck %s
//
// RUN: not fly-opt-py --passes 'builtin.module(gpu-module-to-binary)' %s 2>&1 | FileCheck --check-prefix=NONE %s
// RUN: not fly-opt-py --passes 'builtin.module(nvvm-attach-target{chip=sm_90a},gpu-module-to-binary)' %s 2>&1 | FileCheck --check-prefix=OTHER %s
//
// The layout lowering on a trace whose signatures are still as they were traced.
// RUN: fly-opt-py --fly-layout-lowering %s | FileCheck --check-prefix=FRESH %s

// CHECK-DAG: {block} 0 of 2: (0,4) 0.5
// CHECK-DAG: {block} 1 of 2: (1,4) 1.5
// CHECK-DAG: arg1 {{.*}}0.5 1.5
// NONE: fly-opt-py: error: a pipeline that ends in gpu-module-to-binary needs the target that it is for
// OTHER: fly-opt-py: error: for sm_90a no pipeline of MLIR's can end in gpu-module-to-binary
// FRESH: func.func @launch
// FRESH: [[LEAF:%.+]] = fly.get_leaves({{.*}}) {dynamicOnly = true} : (!fly.int_tuple<?>) -> i32
// FRESH: arith.ceildivsi [[LEAF]]

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k_0(%arg0: !fly.memref<f32, global, ?:1>, %arg1: !fly.ptr<f32, global>, %arg2: !fly.int_tuple<?>) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %x = gpu.block_id x
      %0 = arith.index_cast %x : index to i32
      %1 = fly.extract_aligned_pointer_as_index %arg0 : <f32, global, ?:1> -> !llvm.ptr<1>
      %2 = fly.extract_aligned_pointer_as_index %arg1 : <f32, global> -> !llvm.ptr<1>
      %3 = llvm.getelementptr %1[%0] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %4 = llvm.load %3 : !llvm.ptr<1> -> f32
      %half = arith.constant 0.5 : f32
      %5 = arith.addf %4, %half : f32
      %6 = llvm.getelementptr %2[%0] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %5, %6 : f32, !llvm.ptr<1>
      %7 = fly.get_scalar(%arg2) : (!fly.int_tuple<?>) -> i32
      %8 = fly.make_int_tuple(%0) : (i32) -> !fly.int_tuple<(?,4)>
      fly.print(%0, %7, %8, %5) {format = "{block} {} of {}: {} {}"} : (i32, i32, !fly.int_tuple<(?,4)>, f32) -> ()
      gpu.return
    }
  }
  func.func @launch(%arg0: !fly.memref<f32, global, ?:1>, %arg1: !fly.ptr<f32, global>, %arg2: i32, %arg3: !gpu.async.token) attributes {llvm.emit_c_interface} {
    %0 = fly.static : !fly.tile<[4]>
    %1 = fly.flat_divide(%arg0, %0) : (!fly.memref<f32, global, ?:1>, !fly.tile<[4]>) -> !fly.memref<f32, global, (4,?):(1,4)>
    %2 = fly.get_layout(%1) : (!fly.memref<f32, global, (4,?):(1,4)>) -> !fly.layout<(4,?):(1,4)>
    %3 = fly.get_shape(%2) : (!fly.layout<(4,?):(1,4)>) -> !fly.int_tuple<(4,?)>
    %4 = fly.get_leaves(%3) {dynamicOnly = true} : (!fly.int_tuple<(4,?)>) -> i32
    %5 = fly.make_int_tuple(%4) : (i32) -> !fly.int_tuple<?>
    %6 = arith.index_cast %4 : i32 to index
    %c1 = arith.constant 1 : index
    %7 = gpu.launch_func async [%arg3] @kernels::@k_0 blocks in (%6, %c1, %c1) threads in (%c1, %c1, %c1) args(%arg0 : !fly.memref<f32, global, ?:1>, %arg1 : !fly.ptr<f32, global>, %5 : !fly.int_tuple<?>)
    return
  }
}
