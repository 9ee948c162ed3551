"""Vector clocks of strict mode (`runtime.races`): of warps, and of what orders them."""

from __future__ import annotations

from fly_cpu.state import MOST_BARRIERS, MOST_THREADS

WARPS, _GROUPS, MOST_MBARRIERS = MOST_THREADS // 32, MOST_THREADS // 128, 128
# The first number of each kind of agents.
COPIES, STORES, PRODUCTS = WARPS, 2 * WARPS, 3 * WARPS
LOADS = PRODUCTS + _GROUPS
AGENTS = LOADS + MOST_MBARRIERS
assert AGENTS % 8 == 0
CLOCKS = f"[{AGENTS} x i32]"

VECTOR_CLOCKS = f"""
@fly.strict.clocks = internal global [{WARPS} x {CLOCKS}] zeroinitializer, align 64
@fly.strict.barriers = internal global [{MOST_BARRIERS} x [2 x {CLOCKS}]]
    zeroinitializer, align 64
@fly.strict.phases = internal global [{MOST_BARRIERS} x i32] zeroinitializer
@fly.strict.mbarriers = internal global [{MOST_MBARRIERS} x [2 x {CLOCKS}]]
    zeroinitializer, align 64
@fly.strict.places = internal global [{MOST_MBARRIERS} x i64] zeroinitializer
@fly.strict.count = internal global i64 0
@fly.strict.loads = internal global [{MOST_MBARRIERS} x i32] zeroinitializer
@fly.strict.committed = internal global [{MOST_THREADS} x i32] zeroinitializer
@fly.strict.atomics = internal global {CLOCKS} zeroinitializer, align 64
@fly.strict.generation = internal global i64 0
declare <8 x i32> @llvm.umax.v8i32(<8 x i32>, <8 x i32>)
declare i64 @llvm.umax.i64(i64, i64)
declare i32 @llvm.umax.i32(i32, i32)

; Called where a block begins.
define internal void @fly.strict.start() noinline nounwind {{
entry:
  call void @llvm.memset.p0.i64(ptr @fly.strict.clocks, i8 0, i64 {4 * AGENTS * WARPS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.strict.barriers, i8 0,
    i64 {8 * AGENTS * MOST_BARRIERS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.strict.mbarriers, i8 0,
    i64 {8 * AGENTS * MOST_MBARRIERS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.strict.loads, i8 0, i64 {4 * MOST_MBARRIERS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.strict.committed, i8 0, i64 {4 * MOST_THREADS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.strict.atomics, i8 0, i64 {4 * AGENTS}, i1 false)
  store i64 0, ptr @fly.strict.count
  %before = load i64, ptr @fly.strict.generation
  %after = add i64 %before, 1
  store i64 %after, ptr @fly.strict.generation
  br label %loop
loop:
  %w = phi i64 [ 0, %entry ], [ %w.next, %loop ]
  %at = getelementptr [{WARPS} x {CLOCKS}], ptr @fly.strict.clocks, i64 0, i64 %w, i64 %w
  store i32 1, ptr %at
  %w.next = add i64 %w, 1
  %more = icmp ult i64 %w.next, {WARPS}
  br i1 %more, label %loop, label %done
done:
  ret void
}}

; The vector clock of the current warp.
define internal ptr @fly.strict.own() nounwind {{
  %index = load i64, ptr @fly.index
  %warp = lshr i64 %index, 5
  %at = getelementptr {CLOCKS}, ptr @fly.strict.clocks, i64 %warp
  ret ptr %at
}}

define internal void @fly.strict.join(ptr %to, ptr %from) noinline nounwind {{
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %n.next, %loop ]
  %a.at = getelementptr i32, ptr %to, i64 %n
  %b.at = getelementptr i32, ptr %from, i64 %n
  %a = load <8 x i32>, ptr %a.at, align 4
  %b = load <8 x i32>, ptr %b.at, align 4
  %c = call <8 x i32> @llvm.umax.v8i32(<8 x i32> %a, <8 x i32> %b)
  store <8 x i32> %c, ptr %a.at, align 4
  %n.next = add i64 %n, 8
  %more = icmp ult i64 %n.next, {AGENTS}
  br i1 %more, label %loop, label %done
done:
  ret void
}}

; What the warp has done so far is told to %to; what it does next is later.
define internal void @fly.strict.tell(ptr %to) nounwind {{
  %own = call ptr @fly.strict.own()
  call void @fly.strict.join(ptr %to, ptr %own)
  %index = load i64, ptr @fly.index
  %warp = lshr i64 %index, 5
  %at = getelementptr i32, ptr %own, i64 %warp
  %before = load i32, ptr %at
  %after = add i32 %before, 1
  store i32 %after, ptr %at
  ret void
}}

define internal void @fly.strict.hear(ptr %from) nounwind {{
  %own = call ptr @fly.strict.own()
  call void @fly.strict.join(ptr %own, ptr %from)
  ret void
}}

define internal void @fly.strict.know(i64 %agent, i32 %clock) nounwind {{
  %own = call ptr @fly.strict.own()
  %at = getelementptr i32, ptr %own, i64 %agent
  %before = load i32, ptr %at
  %after = call i32 @llvm.umax.i32(i32 %before, i32 %clock)
  store i32 %after, ptr %at
  ret void
}}
"""
