// Addresses that are numbers: fly-run places the array, and passes where it is. Each lane reads the
// element behind its own too, as kernels do that fetch ahead.
// RUN: fly-opt-py --target gfx942 %s | opt -S -O3 | fly-llc | fly-link -o %t.hsaco
// RUN: fly-run --device emulator -q --margin 64 %t.hsaco "x=address:arange(8,f32)" "y=address:zeros(8,f32):%t.npy"
// RUN: %PYTHON -c "import numpy, sys; assert numpy.load(sys.argv[1]).tolist() == [1, 3, 5, 7, 9, 11, 13, 7]" %t.npy
// RUN: fly-run --device emulator -q --margin 64 --host interp %t.hsaco "x=address:arange(8,f32)" "y=address:%t.npy:%t.2.npy"
// RUN: cmp %t.npy %t.2.npy
// RUN: fly-run --device emulator -q --margin 64 --kernel k --grid 1 --block 8 %t.hsaco "address:arange(8,f32)" "address:zeros(8,f32):%t.3.npy"
// RUN: cmp %t.npy %t.3.npy
// RUN: fly-run --device emulator --margin 64 --bench --repeat 2 %t.hsaco "x=address:arange(8,f32)" "y=address:zeros(8,f32)" 2>&1 | FileCheck --check-prefix=BENCH %s
// RUN: fly-run --device emulator --margin 64 %t.hsaco "x=address:arange(8,f32)" "y=address:zeros(8,f32):%t.4.npy" 2>&1 | FileCheck --check-prefix=TABLE %s
// RUN: not fly-run --device emulator %t.hsaco "x=address:arange(8,f32)" "y=address:zeros(8,f32)" 2>&1 | FileCheck --check-prefix=FAULT %s
// RUN: not fly-run --device emulator --margin 64 %t.hsaco "x=address:zeros(8,f32)" "y=address:zeros(1,f32)" 2>&1 | FileCheck --check-prefix=STORE %s
// RUN: not fly-run %t.hsaco "x=address:5" "y=address:zeros(8,f32)" 2>&1 | FileCheck --check-prefix=NUMBER %s
// RUN: not fly-run %t.hsaco "x=address:zeros(8)" "y=address:zeros(8,f32)" 2>&1 | FileCheck --check-prefix=TYPE %s
// RUN: not fly-run --margin -1 %t.hsaco "x=address:zeros(8,f32)" "y=address:zeros(8,f32)" 2>&1 | FileCheck --check-prefix=MARGIN %s
// RUN: sed 's/i64/i32/g' %s | fly-opt-py --target gfx942 | opt -S -O3 | fly-llc | fly-link -o %t.32.hsaco
// RUN: not fly-run %t.32.hsaco "x=address:zeros(8,f32)" "y=address:zeros(8,f32)" 2>&1 | FileCheck --check-prefix=NARROW %s
//
// BENCH: k
// TABLE: x {{ *}}f32 {{ *}}8
// TABLE: y {{ *}}f32 {{ *}}8 {{.*}}1 3 5 7
// FAULT: fly-run: error: memory fault: 8 bytes at {{.*}}: the last 4 of its bytes are past the end of `x` (32 bytes)
// STORE: fly-run: error: write to read-only memory
// NUMBER: fly-run: error: x=address:5: only an array has an address
// TYPE: fly-run: error: zeros needs a type here
// MARGIN: fly-run: error: --margin must be a number of bytes, at least 0
// NARROW: fly-run: error: x=address:zeros(8,f32): x is {{.*}}, and an address has 64 bits
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: i64, %y: i64) kernel {
      %from = llvm.inttoptr %x : i64 to !llvm.ptr<1>
      %to = llvm.inttoptr %y : i64 to !llvm.ptr<1>
      %thread = gpu.thread_id x
      %i = arith.index_cast %thread : index to i32
      %a = llvm.getelementptr %from[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %b = llvm.getelementptr %a[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
      %c = llvm.load %a : !llvm.ptr<1> -> f32
      %d = llvm.load %b : !llvm.ptr<1> -> f32
      %sum = arith.addf %c, %d : f32
      %place = llvm.getelementptr %to[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %sum, %place : f32, !llvm.ptr<1>
      gpu.return
    }
  }
  func.func @h(%x: i64 {fly.name = "x"}, %y: i64 {fly.name = "y"}) {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1) args(%x : i64, %y : i64)
    return
  }
}
