// RUN: fly-opt-py --fly-rocdl-cluster-attr %s | FileCheck %s
// RUN: fly-opt-py --passes 'builtin.module(gpu.module(convert-gpu-to-rocdl,fly-rocdl-cluster-attr),fly-emit-llvm)' --emit llvm %s | FileCheck --check-prefix=LLVM %s

// What stands in passthrough stays; functions without a cluster are left alone.
// CHECK: llvm.func @both() attributes {passthrough = ["noinline", ["amdgpu-cluster-dims", "4,2,1"]]}
// CHECK: llvm.func @none()
// CHECK-NOT: rocdl.cluster_dims = "4
gpu.module @kernels {
  llvm.func @both() attributes {rocdl.cluster_dims = "4,2,1", passthrough = ["noinline"]} {
    llvm.return
  }
  llvm.func @none() {
    llvm.return
  }
  // LLVM: define amdgpu_kernel void @kernel() #[[A:[0-9]+]]
  // LLVM: attributes #[[A]] = {{.*}}"amdgpu-cluster-dims"="2,2,1"
  gpu.func @kernel() kernel attributes {rocdl.cluster_dims = "2,2,1"} {
    gpu.return
  }
}
