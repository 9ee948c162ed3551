// RUN: fly-opt-py --fly-set-target=chip=sm_90a --fly-lower-subgroups --canonicalize %s | FileCheck %s

// Patterns of the language's primitives have constant operands; those of other shuffles stay.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @kernel
  // CHECK-SAME: %[[X:[a-z0-9]+]]: i32, %[[FROM:[a-z0-9]+]]: i32
  gpu.func @kernel(%x: i32, %from: i32) kernel {
    %lanes = arith.constant 32 : i32
    // In groups of 16: (32 - 16) << 8.
    // CHECK-DAG: %[[ROWS:.*]] = arith.constant 4096 : i32
    // CHECK-DAG: %[[ROW_END:.*]] = arith.constant 15 : i32
    // CHECK: %[[A:.*]] = nvvm.shfl.sync up %{{.*}}, %[[X]], %c2_i32, %[[ROWS]]
    // CHECK: %[[B:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[A]], %[[ROW_END]],
    // CHECK: %[[C:.*]] = nvvm.shfl.sync up %{{.*}}, %[[B]], %c1_i32, %c0_i32
    // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[C]], %[[FROM]],
    %a, %v = gpu.shuffle idx %x, %from, %lanes {fly.lane_move = "row_shift:2"} : i32
    %b, %w = gpu.shuffle idx %a, %from, %lanes {fly.lane_move = "row_below"} : i32
    %c, %u = gpu.shuffle idx %b, %from, %lanes {fly.lane_move = "shift"} : i32
    %d, %t = gpu.shuffle idx %c, %from, %lanes {fly.lane_move = "lane"} : i32
    gpu.printf "%d", %d : i32
    gpu.return
  }
}
