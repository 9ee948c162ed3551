// RUN: fly-opt-py --fly-set-target=chip=gfx942 --fly-rocdl-lane-moves %s | FileCheck --check-prefixes=BOTH,OLD %s
// RUN: fly-opt-py --fly-set-target=chip=gfx1100 --fly-rocdl-lane-moves %s | FileCheck --check-prefixes=BOTH,NEW %s

gpu.module @kernels {
  // Shuffles that say no pattern stay, as do those that the target has no instruction for.
  // BOTH-LABEL: gpu.func @kept
  // BOTH: gpu.shuffle xor
  // OLD: gpu.shuffle xor
  // NEW: "llvm.amdgcn.update.dpp.i32"(%{{.*}}, %{{.*}}, %c356_i32
  gpu.func @kept(%x: i32, %lanes: i32) kernel {
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %a, %v = gpu.shuffle xor %x, %c1, %lanes : i32
    %b, %w = gpu.shuffle xor %a, %c4, %lanes {fly.lane_move = "xor:4"} : i32
    gpu.printf "%d", %b : i32
    gpu.return
  }
  // quad_perm:[1,0,3,2], row_mirror; and xor 16.
  // BOTH-LABEL: gpu.func @xor
  // BOTH: "llvm.amdgcn.update.dpp.i32"(%{{.*}}, %{{.*}}, %c177_i32
  // BOTH: "llvm.amdgcn.update.dpp.i32"(%{{.*}}, %{{.*}}, %c320_i32
  // OLD: gpu.shuffle xor
  // NEW: "llvm.amdgcn.permlanex16.i32"
  gpu.func @xor(%x: i32, %lanes: i32) kernel {
    %c1 = arith.constant 1 : i32
    %c15 = arith.constant 15 : i32
    %c16 = arith.constant 16 : i32
    %a, %v = gpu.shuffle xor %x, %c1, %lanes {fly.lane_move = "xor:1"} : i32
    %b, %w = gpu.shuffle xor %a, %c15, %lanes {fly.lane_move = "xor:15"} : i32
    %c, %u = gpu.shuffle xor %b, %c16, %lanes {fly.lane_move = "xor:16"} : i32
    gpu.printf "%d", %c : i32
    gpu.return
  }
  // The other value of the select becomes the old one; row_bcast:15 writes odd rows only.
  // BOTH-LABEL: gpu.func @selected
  // BOTH-SAME: %[[X:[a-z0-9]+]]: i32, %[[LANES:[a-z0-9]+]]: i32, %[[OLD:[a-z0-9]+]]: i32
  // BOTH: "llvm.amdgcn.update.dpp.i32"(%[[OLD]], %[[X]], %c274_i32
  // BOTH-NOT: arith.select
  // OLD: "llvm.amdgcn.update.dpp.i32"(%[[OLD]], %{{.*}}, %c322_i32{{[_0-9]*}}, %c10_i32
  // NEW: "llvm.amdgcn.permlanex16.i32"
  // NEW: arith.select
  gpu.func @selected(%x: i32, %lanes: i32, %other: i32, %is_odd: i1, %from: i32) kernel {
    %a, %v = gpu.shuffle idx %x, %from, %lanes {fly.lane_move = "row_shift:2"} : i32
    %b = arith.select %is_odd, %a, %other : i32
    %c, %w = gpu.shuffle idx %b, %from, %lanes {fly.lane_move = "row_below"} : i32
    %d = arith.select %is_odd, %c, %other : i32
    gpu.printf "%d", %d : i32
    gpu.return
  }
  // BOTH-LABEL: gpu.func @lane
  // BOTH: "llvm.amdgcn.readlane.i32"
  gpu.func @lane(%x: i32, %lanes: i32, %from: i32) kernel {
    %a, %v = gpu.shuffle idx %x, %from, %lanes {fly.lane_move = "lane"} : i32
    gpu.printf "%d", %a : i32
    gpu.return
  }
}
