// Asserts and printed lines of kernels become calls that write records for the host.
//
// RUN: fly-opt-py --fly-lower-prints %s | %filecheck %s
// RUN: fly-opt-py --fly-lower-prints=asserts=false %s | %filecheck %s --check-prefix=OFF
// RUN: not fly-opt-py --fly-lower-prints %S/Inputs/print-of-i32.mlir 2>&1 | %filecheck %s --check-prefix=WIDTH

// CHECK-DAG: llvm.mlir.global external protected @fly_prints
// CHECK-DAG: llvm.mlir.global external protected @fly_reports
// CHECK-DAG: llvm.mlir.global external protected constant @fly_report_sites
// CHECK: gpu.func @k
// CHECK: scf.if
// CHECK: llvm.call @fly_report(
// CHECK: llvm.call @fly_print(
// CHECK-NOT: fly.print
// CHECK: gpu.func @plain
// CHECK-NOT: llvm.call
// CHECK: gpu.return

// OFF-NOT: @fly_report(
// OFF: llvm.call @fly_print(
// OFF-NOT: @fly_report(

// WIDTH: fly.print takes at most 8 values of type i64

gpu.module @kernels {
  gpu.func @k(%c: i1, %x: i64) kernel {
    scf.if %c {
      fly.print(%x) {format = "{0:i64} is wrong", assert} : (i64) -> ()
    }
    fly.print(%x, %x) {format = "{0:i64} {1:u64:x}"} : (i64, i64) -> ()
    gpu.return
  }
  gpu.func @plain(%x: i64) kernel {
    gpu.return
  }
}
