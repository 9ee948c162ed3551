// The printed pipeline carries everything: given back, it makes the same bytes.
// RUN: fly-opt-py --target gfx942 --print-pipeline | %filecheck %s
// RUN: fly-opt-py --target gfx942 %s -o %t.target.ll
// RUN: %PYTHON -c "import subprocess, sys; text = subprocess.run(['fly-opt-py', '--target', 'gfx942', '--print-pipeline'], stdout=subprocess.PIPE).stdout.decode(); sys.exit(subprocess.call(['fly-opt-py', '--passes', text, *sys.argv[1:]]))" %s -o %t.passes.ll
// RUN: cmp %t.target.ll %t.passes.ll
// RUN: fly-opt-py --target gfx942 --emit mlir --print-pipeline | %filecheck %s --check-prefix=MLIR
// RUN: fly-opt-py --target gfx942 -g --print-pipeline | %filecheck %s --check-prefix=DEBUG
// RUN: fly-opt-py --print-pipeline | %filecheck %s --check-prefix=NOTHING

// CHECK: builtin.module(
// CHECK-NEXT: fly-set-target{chip=gfx942},
// CHECK-NEXT: fly-extract-host-program,
// CHECK-NEXT: fly-rewrite-func-signature,
// CHECK: gpu.module(fly-lower-launch-sizes),
// CHECK: gpu.module(convert-gpu-to-rocdl{chipset=gfx942 index-bitwidth=64
// CHECK: fly-kernel-attributes,
// CHECK-NEXT: fly-emit-llvm
// CHECK-NEXT: )

// MLIR: fly-kernel-attributes
// MLIR-NOT: fly-emit-llvm
// DEBUG: ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly},
// DEBUG-NEXT: fly-emit-llvm
// NOTHING: builtin.module()
module {
  gpu.module @kernels {
    gpu.func @k(%p: !llvm.ptr<1>) kernel {
      %i = gpu.block_dim x
      %n = arith.index_cast %i : index to i64
      llvm.store %n, %p : i64, !llvm.ptr<1>
      gpu.return
    }
  }
}
