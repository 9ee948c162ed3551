"""Vector clocks of strict mode (`runtime.races`): of warps, and of what orders them.

A vector clock has places for the agents of all blocks of a cluster, block after block. What belongs
to a block, as its mbarriers and the accesses to its shared memory, is kept in the library that runs
it, and others get there by the distance between two libraries (`runtime.clusters`), here %far. What
belongs to all of them, as the cluster's barrier, is kept in that of rank 0.
"""

from __future__ import annotations

from fly_cpu.state import ALL_BARRIERS, MOST_THREADS

WARPS, _GROUPS, MOST_MBARRIERS = MOST_THREADS // 32, MOST_THREADS // 128, 128
MOST_BLOCKS = 8  # of a cluster
# The first number of each kind of agents of a block.
COPIES, STORES, PRODUCTS = WARPS, 2 * WARPS, 3 * WARPS
LOADS = PRODUCTS + _GROUPS
BLOCK_AGENTS = LOADS + MOST_MBARRIERS
assert BLOCK_AGENTS % 8 == 0
AGENTS = MOST_BLOCKS * BLOCK_AGENTS
CLOCKS = f"[{AGENTS} x i32]"

VECTOR_CLOCKS = f"""
@fly.strict.clocks = internal global [{WARPS} x {CLOCKS}] zeroinitializer, align 64
@fly.strict.barriers = internal global [{ALL_BARRIERS} x [2 x {CLOCKS}]]
    zeroinitializer, align 64
@fly.strict.phases = internal global [{ALL_BARRIERS} x i32] zeroinitializer
@fly.strict.mbarriers = internal global [{MOST_MBARRIERS} x [2 x {CLOCKS}]]
    zeroinitializer, align 64
@fly.strict.places = internal global [{MOST_MBARRIERS} x i64] zeroinitializer
@fly.strict.count = internal global i64 0
@fly.strict.loads = internal global [{MOST_MBARRIERS} x i32] zeroinitializer
@fly.strict.committed = internal global [{MOST_THREADS} x i32] zeroinitializer
@fly.strict.atomics = internal global {CLOCKS} zeroinitializer, align 64
@fly.strict.meeting = internal global [2 x {CLOCKS}] zeroinitializer, align 64
@fly.strict.generation = internal global i64 0
@fly.strict.first = internal global i64 0
@fly.strict.agents = internal global i64 0
declare <8 x i32> @llvm.umax.v8i32(<8 x i32>, <8 x i32>)
declare i64 @llvm.umax.i64(i64, i64)
declare i32 @llvm.umax.i32(i32, i32)

; Called where a block begins.
define internal void @fly.strict.start() noinline nounwind {{
entry:
  call void @llvm.memset.p0.i64(ptr @fly.strict.clocks, i8 0, i64 {4 * AGENTS * WARPS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.strict.barriers, i8 0,
    i64 {8 * AGENTS * ALL_BARRIERS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.strict.committed, i8 0, i64 {4 * MOST_THREADS}, i1 false)
  store i64 0, ptr @fly.strict.count
  %blocks = load i64, ptr $cluster
  %blocks.some = call i64 @llvm.umax.i64(i64 %blocks, i64 1)
  %agents = mul i64 %blocks.some, {BLOCK_AGENTS}
  store i64 %agents, ptr @fly.strict.agents
  %rank = load i64, ptr $rank
  %first = mul i64 %rank, {BLOCK_AGENTS}
  store i64 %first, ptr @fly.strict.first
  %before = load i64, ptr @fly.strict.generation
  %after = add i64 %before, 1
  store i64 %after, ptr @fly.strict.generation
  %leads = icmp eq i64 %rank, 0
  br i1 %leads, label %together, label %own
together:
  ; It begins before the others.
  call void @llvm.memset.p0.i64(ptr @fly.strict.atomics, i8 0, i64 {4 * AGENTS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.strict.meeting, i8 0, i64 {8 * AGENTS}, i1 false)
  br label %own
own:
  br label %loop
loop:
  %w = phi i64 [ 0, %own ], [ %w.next, %loop ]
  %agent = add i64 %first, %w
  %at = getelementptr [{WARPS} x {CLOCKS}], ptr @fly.strict.clocks, i64 0, i64 %w, i64 %agent
  store i32 1, ptr %at
  %w.next = add i64 %w, 1
  %more = icmp ult i64 %w.next, {WARPS}
  br i1 %more, label %loop, label %done
done:
  ret void
}}

; The number in the cluster of an agent of the block.
define internal i64 @fly.strict.agent(i64 %number) nounwind {{
  %first = load i64, ptr @fly.strict.first
  %agent = add i64 %first, %number
  ret i64 %agent
}}

; The number in the cluster of the current warp.
define internal i64 @fly.strict.warp() nounwind {{
  %index = load i64, ptr @fly.index
  %warp = lshr i64 %index, 5
  %agent = call i64 @fly.strict.agent(i64 %warp)
  ret i64 %agent
}}

; The distance to the library of a block of the cluster.
define internal i64 @fly.strict.far(i64 %rank) nounwind {{
entry:
  %peers = load ptr, ptr $peers
  %none = icmp eq ptr %peers, null
  br i1 %none, label %alone, label %look
alone:
  ret i64 0
look:
  %far.at = getelementptr i64, ptr %peers, i64 %rank
  %far = load i64, ptr %far.at
  ret i64 %far
}}

; The rank of the block in whose shared memory an address is; -1 if it is in none.
define internal i64 @fly.strict.owner(i64 %at) noinline nounwind {{
entry:
  %own = call i1 @fly.is_shared(i64 %at)
  %own.rank = load i64, ptr $rank
  br i1 %own, label %here, label %others
here:
  ret i64 %own.rank
others:
  %blocks = load i64, ptr $cluster
  br label %loop
loop:
  %rank = phi i64 [ 0, %others ], [ %rank.next, %look ]
  %more = icmp ult i64 %rank, %blocks
  br i1 %more, label %look, label %none
look:
  %far = call i64 @fly.strict.far(i64 %rank)
  %same = sub i64 %at, %far
  %its = call i1 @fly.is_shared(i64 %same)
  %rank.next = add i64 %rank, 1
  br i1 %its, label %found, label %loop
found:
  ret i64 %rank
none:
  ret i64 -1
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
  %agents = load i64, ptr @fly.strict.agents
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
  %more = icmp ult i64 %n.next, %agents
  br i1 %more, label %loop, label %done
done:
  ret void
}}

; What the warp has done so far is told to %to; what it does next is later.
define internal void @fly.strict.tell(ptr %to) nounwind {{
  %own = call ptr @fly.strict.own()
  call void @fly.strict.join(ptr %to, ptr %own)
  %warp = call i64 @fly.strict.warp()
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

; Lets the warp know an agent of its block up to a clock.
define internal void @fly.strict.know(i64 %number, i32 %clock) nounwind {{
  %agent = call i64 @fly.strict.agent(i64 %number)
  %own = call ptr @fly.strict.own()
  %at = getelementptr i32, ptr %own, i64 %agent
  %before = load i32, ptr %at
  %after = call i32 @llvm.umax.i32(i32 %before, i32 %clock)
  store i32 %after, ptr %at
  ret void
}}
"""
