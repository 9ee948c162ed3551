// Without libdevice: exit code 3, the function that needs it, and how to get it.
// RUN: env FLY_LIBDEVICE=%S/nothing-here not fly-opt-py --target sm_90a %s 2>%t.err
// RUN: %filecheck %s --input-file=%t.err
// RUN: env FLY_LIBDEVICE=%S/nothing-here fly-opt-py --target sm_90a --emit mlir %s -o %t.mlir

// CHECK: fly-opt-py: error: __nv_sin is in NVIDIA's libdevice, which was not found
// CHECK-NEXT: pip install 'fly-filters[cuda]', or install the CUDA toolkit
module {
  gpu.module @kernels {
    gpu.func @k(%p: !llvm.ptr<1>) kernel {
      %x = llvm.load %p : !llvm.ptr<1> -> f64
      %y = math.sin %x : f64
      llvm.store %y, %p : f64, !llvm.ptr<1>
      gpu.return
    }
  }
}
