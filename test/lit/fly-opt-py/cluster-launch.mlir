// The size of clusters that a launch gives becomes the kernel's, of which each target's lowering makes its own.
// RUN: fly-opt-py --target gfx1250 %s | %filecheck %s --check-prefix=AMD
// RUN: fly-opt-py --target sm_90a %s | %filecheck %s --check-prefix=NVIDIA
// RUN: sed 's/ kernel {/ kernel attributes {rocdl.cluster_dims = "4,2,1"} {/' %s > %t.same.mlir
// RUN: fly-opt-py --target gfx1250 %t.same.mlir | %filecheck %s --check-prefix=AMD
// RUN: fly-opt-py --target sm_90a %t.same.mlir | %filecheck %s --check-prefix=NVIDIA
// RUN: sed 's/ kernel {/ kernel attributes {fly.cluster_dims = "2,4,1"} {/' %s > %t.other.mlir
// RUN: not fly-opt-py --target gfx1250 %t.other.mlir 2>&1 | %filecheck %s --check-prefix=OTHER
// RUN: sed 's/clusters in (%c4, %c2, %c1)/clusters in (%c4, %c2, %n)/' %s > %t.computed.mlir
// RUN: not fly-opt-py --target gfx1250 %t.computed.mlir 2>&1 | %filecheck %s --check-prefix=COMPUTED
// RUN: sed 's/clusters in (%c4, %c2, %c1)/clusters in (%c4, %c0, %c1)/' %s > %t.zero.mlir
// RUN: not fly-opt-py --target gfx1250 %t.zero.mlir 2>&1 | %filecheck %s --check-prefix=ZERO
// RUN: sed 's/^    return$/    gpu.launch_func @kernels::@k blocks in (%n, %n, %c1) threads in (%c64, %c1, %c1)\n    return/' %s > %t.two.mlir
// RUN: not fly-opt-py --target gfx1250 %t.two.mlir 2>&1 | %filecheck %s --check-prefix=TWO
// RUN: sed 's/clusters in (%c4, %c2, %c1)/clusters in (%c1, %c1, %c1)/' %s > %t.one.mlir
// RUN: fly-opt-py --target gfx942 %t.one.mlir | %filecheck %s --check-prefix=ONE
// RUN: not fly-opt-py --target gfx942 %s 2>&1 | %filecheck %s --check-prefix=TARGET
// RUN: sed 's/ kernel {/ kernel attributes {rocdl.cluster_dims = "4,x"} {/' %s > %t.sizes.mlir
// RUN: not fly-opt-py --target gfx1250 %t.sizes.mlir 2>&1 | %filecheck %s --check-prefix=SIZES
// RUN: sed 's/ kernel {/ kernel attributes {nvvm.cluster_dim = array<i32: 4, 2, 1>} {/' %s > %t.nvvm.mlir
// RUN: fly-opt-py --target sm_90a %t.nvvm.mlir | %filecheck %s --check-prefix=NVIDIA
// AMD: "amdgpu-cluster-dims"="4,2,1"
// NVIDIA: "nvvm.cluster_dim"="4,2,1"
// OTHER: pass fly-extract-host-program: a launch in clusters of 4×2×1 workgroups, but k is compiled for clusters of 2×4×1
// COMPUTED: pass fly-extract-host-program: the size of a cluster is computed
// ZERO: pass fly-extract-host-program: a launch in clusters of 4×0×1 workgroups
// SIZES: pass fly-extract-host-program: rocdl.cluster_dims = "4,x": expected one to three sizes, as in "2,1,1"
// TWO: pass fly-extract-host-program: k is launched in clusters of 1×1×1 workgroups here, and of 4×2×1 before
// ONE-NOT: amdgpu-cluster-dims
// ONE: define amdgpu_kernel void @k
// TARGET: gfx942 has no clusters of workgroups
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @h(%size: i32 {fly.name = "size", fly.dtype = "i32"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %n = arith.index_cast %size : i32 to index
    gpu.launch_func @kernels::@k clusters in (%c4, %c2, %c1) blocks in (%n, %n, %c1) threads in (%c64, %c1, %c1)
    return
  }
}
