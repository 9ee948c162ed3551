// Without the libraries: exit code 3, the function that needs them, and how to get them.
// RUN: env FLY_DEVICE_LIBS=%S/nothing-here not fly-opt-py --target gfx942 %s 2>%t.err
// RUN: %filecheck %s --input-file=%t.err
// RUN: %PYTHON -c "import subprocess, sys; sys.exit(subprocess.call(['env', 'FLY_DEVICE_LIBS=/nothing-here', 'fly-opt-py', '--target', 'gfx942', *sys.argv[1:]], stderr=subprocess.DEVNULL) != 3)" %s
// RUN: env FLY_DEVICE_LIBS=%S/nothing-here fly-opt-py --target gfx942 --emit mlir %s -o %t.mlir

// CHECK: fly-opt-py: error: __ocml_sin_f64 is in ROCm's device libraries, which were not found
// CHECK-NEXT: install them (Debian: apt-get install rocm-device-libs
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
