// A host function as FlyDSL traces it: arguments without names, a launch on a stream, atoms that are passed on to kernels.
// RUN: fly-opt-py --target gfx942 %s | opt -S -O3 | fly-llc | fly-link -o %t.hsaco
// RUN: fly-run --inspect %t.hsaco | %filecheck %s
// RUN: fly-run %t.hsaco "arg0=arange(32,f32)" "arg1=zeros(32,f32):%t.npy" -q
// RUN: %PYTHON -c "import numpy, sys; assert numpy.array_equal(numpy.load(sys.argv[1]), numpy.arange(32))" %t.npy

// CHECK: program copy for gfx942
// CHECK-NEXT: inputs
// CHECK-NEXT: arg0 f32[?], read and written, strides [1]
// CHECK-NEXT: arg1 f32[?], read and written, strides [1]
// CHECK-NEXT: steps
// CHECK-NEXT: launch copy_kernel(arg0, (arg0.shape[0] as i32), arg1, (arg1.shape[0] as i32))
// CHECK-NEXT: grid 8, block 1
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @copy_kernel(%a: !fly.memref<f32, global, ?:1>, %b: !fly.memref<f32, global, ?:1>, %atom: !fly.copy_atom<!fly.universal_copy<128>, 32>) kernel {
      %id = gpu.block_id x
      %block = arith.index_cast %id : index to i32
      %tile = fly.static : !fly.tile<4>
      %as = fly.zipped_divide(%a, %tile) : (!fly.memref<f32, global, ?:1>, !fly.tile<4>) -> !fly.memref<f32, global, (4,?):(1,4)>
      %bs = fly.zipped_divide(%b, %tile) : (!fly.memref<f32, global, ?:1>, !fly.tile<4>) -> !fly.memref<f32, global, (4,?):(1,4)>
      %coord = fly.make_coord(%block) : (i32) -> !fly.int_tuple<(*,?)>
      %from = fly.slice(%as, %coord) : (!fly.memref<f32, global, (4,?):(1,4)>, !fly.int_tuple<(*,?)>) -> !fly.memref<f32, global, 4:1>
      %to = fly.slice(%bs, %coord) : (!fly.memref<f32, global, (4,?):(1,4)>, !fly.int_tuple<(*,?)>) -> !fly.memref<f32, global, 4:1>
      fly.copy_atom_call(%atom, %from, %to) : (!fly.copy_atom<!fly.universal_copy<128>, 32>, !fly.memref<f32, global, 4:1>, !fly.memref<f32, global, 4:1>) -> ()
      gpu.return
    }
  }
  func.func @copy(%a: !fly.memref<f32, global, ?:1>, %b: !fly.memref<f32, global, ?:1>, %stream: !gpu.async.token) attributes {llvm.emit_c_interface} {
    %c8 = arith.constant 8 : index
    %c1 = arith.constant 1 : index
    %atom = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
    %done = gpu.launch_func async [%stream] @kernels::@copy_kernel blocks in (%c8, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : !fly.memref<f32, global, ?:1>, %b : !fly.memref<f32, global, ?:1>, %atom : !fly.copy_atom<!fly.universal_copy<128>, 32>)
    return
  }
}
