// The host program as text: behind the extraction, or of a module that has one already.
// RUN: fly-opt-py --target gfx942 --emit host %s | %filecheck %s --match-full-lines
// RUN: fly-opt-py --target gfx942 --emit mlir %s | fly-opt-py --emit host | %filecheck %s --match-full-lines
// RUN: fly-opt-py --fly-set-target=chip=gfx942 --fly-extract-host-program --fly-emit-host %s | %filecheck %s --match-full-lines
// RUN: fly-opt-py --target gfx942 --emit host --print-pipeline | %filecheck %s --check-prefix=PIPELINE
// RUN: not fly-opt-py --emit host %s 2>&1 | %filecheck %s --check-prefix=NONE
// RUN: not fly-opt-py --target gfx942 --emit hots %s 2>&1 | %filecheck %s --check-prefix=UNKNOWN

// CHECK: program steps for gfx942
// CHECK-NEXT: inputs
// CHECK-NEXT:   A       f32[n], read and written, strides [1]
// CHECK-NEXT:   n       i32, 3 by default
// CHECK-NEXT:   s       a stream
// CHECK-NEXT: tensors
// CHECK-NEXT:   T       f32[n, 4] strides [4, 1], n * 4 elements
// CHECK-NEXT:   result  f32[n] strides [1], n elements
// CHECK-NEXT: steps
// CHECK-NEXT:   check 0 < n else "n is {n}, and not positive"
// CHECK-NEXT:   check 0 <= n else "T: extent 0 is {n}, less than 0"
// CHECK-NEXT:   loop v0 = 0, A_1 = A while v0 < n
// CHECK-NEXT:     launch k(A_1, (A_1.shape[0]))
// CHECK-NEXT:       grid v0, block 64, dynamic shared memory 16, stream s
// CHECK-NEXT:     next v0 = v0 + 1, A_1 = A_1
// CHECK-NEXT:     last v1 = v0, A_2 = A_1
// CHECK-NEXT:   allocate T
// CHECK-NEXT:   call result = tests.f(A, n, None, True, 1.5, 'x', (1, 2), out=T)
// CHECK-NEXT:   free T
// CHECK-NEXT:   if 0 < n
// CHECK-NEXT:     launch k(result, (n))
// CHECK-NEXT:       grid (1, n), block 64
// CHECK-NEXT:     gives v2 = n + 1
// CHECK-NEXT:   else
// CHECK-NEXT:     gives v2 = 7
// CHECK-NEXT: returns (A_2, v2), None, result, 5 as last, result1, R, result3

// PIPELINE: builtin.module(
// PIPELINE-NEXT: fly-set-target{chip=gfx942},
// PIPELINE-NEXT: fly-extract-host-program,
// PIPELINE-NEXT: fly-emit-host
// PIPELINE-NEXT: )
// NONE: fly-opt-py: error: the module has no host program
// NONE-NEXT: --target X extracts that of its host function
// UNKNOWN: fly-opt-py: error: unknown emission 'hots'
// UNKNOWN-NEXT: mlir, llvm, host or host-llvm
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%A: !fly.memref<f32, global, ?{i64}:1>) kernel { gpu.return }
  }
  func.func @steps(%A: !fly.memref<f32, global, ?{i64}:1> {fly.name = "A", fly.dtype = "f32", fly.shape = ["n"]}, %n32: i32 {fly.name = "n", fly.dtype = "i32", fly.default = 3 : i32}, %s: !gpu.async.token {fly.name = "s"}) -> (!fly.memref<f32, global, ?{i64}:1>, i64, !fly.memref<f32, global, ?{i64}:1>) attributes {fly.results = [[{name = "last"}, {}], unit, {name = "R"}, {value = 5 : i64}]} {
    %n = arith.extsi %n32 : i32 to i64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %bytes = arith.constant 16 : i32
    %positive = arith.cmpi sgt, %n, %zero : i64
    fly.check(%positive, %n) {message = ["n is ", unit, ", and not positive"]} : (i1, i64) -> ()
    %T = fly.empty(%n) {dtype = "f32", shape = [unit, 4], allocation = "", view = "logical", name = "T"} : (i64) -> !fly.memref<f32, global, (?{i64},4):(4,1)>
    %last = scf.for %i = %zero to %n step %one iter_args(%now = %A) -> (!fly.memref<f32, global, ?{i64}:1>) : i64 {
      %grid = arith.index_cast %i : i64 to index
      gpu.launch_func <%s : !gpu.async.token> @kernels::@k blocks in (%grid, %c1, %c1) threads in (%c64, %c1, %c1) dynamic_shared_memory_size %bytes args(%now : !fly.memref<f32, global, ?{i64}:1>)
      scf.yield %now : !fly.memref<f32, global, ?{i64}:1>
    }
    %R = fly.call(%A, %n, %T, %n) {function = "tests.f", arguments = [unit, unit, {}, true, 1.5, "x", [1, 2]], keywords = {out = unit}, results = [{dtype = "f32", shape = [unit]}]} : (!fly.memref<f32, global, ?{i64}:1>, i64, !fly.memref<f32, global, (?{i64},4):(4,1)>, i64) -> !fly.memref<f32, global, ?{i64}:1>
    %count = scf.if %positive -> (i64) {
      %grid = arith.index_cast %n : i64 to index
      gpu.launch_func @kernels::@k blocks in (%c1, %grid, %c1) threads in (%c64, %c1, %c1) args(%R : !fly.memref<f32, global, ?{i64}:1>)
      %more = arith.addi %n, %one : i64
      scf.yield %more : i64
    } else {
      %seven = arith.constant 7 : i64
      scf.yield %seven : i64
    }
    return %last, %count, %R : !fly.memref<f32, global, ?{i64}:1>, i64, !fly.memref<f32, global, ?{i64}:1>
  }
}
