"""What orders accesses in strict mode (`runtime.races`): barriers, mbarriers, waits for copies and
products, atomic operations, the barrier of a cluster."""

from __future__ import annotations

from fly_cpu import tensor_maps as form
from fly_cpu.runtime.vector_clocks import (
    AGENTS,
    BLOCK_AGENTS,
    CLOCKS,
    COPIES,
    LOADS,
    MOST_MBARRIERS,
    PRODUCTS,
    STORES,
)


def _until(agent: int, clock: str) -> str:
    """Lets the warp know an agent of its own up to a clock."""
    return f"""  %warp = lshr i64 %index, 5
  %agent = add i64 %warp, {agent}
  call void @fly.strict.know(i64 %agent, i32 {clock})
"""


ORDERS = f"""
define internal ptr @fly.strict.barrier(i32 %id, i32 %phase) nounwind {{
  %at = getelementptr [2 x {CLOCKS}], ptr @fly.strict.barriers, i32 %id, i32 %phase
  ret ptr %at
}}

; The phase of the barrier at which the thread arrives.
define internal i32 @fly.strict.arrive(i32 %id) nounwind {{
  %phase.at = getelementptr i32, ptr @fly.strict.phases, i32 %id
  %phase = load i32, ptr %phase.at
  %at = call ptr @fly.strict.barrier(i32 %id, i32 %phase)
  call void @fly.strict.tell(ptr %at)
  ret i32 %phase
}}

define internal void @fly.strict.leave(i32 %id, i32 %phase) nounwind {{
  %at = call ptr @fly.strict.barrier(i32 %id, i32 %phase)
  call void @fly.strict.hear(ptr %at)
  ret void
}}

define internal void @fly.strict.next(i32 %id) nounwind {{
  %phase.at = getelementptr i32, ptr @fly.strict.phases, i32 %id
  %phase = load i32, ptr %phase.at
  %other = xor i32 %phase, 1
  store i32 %other, ptr %phase.at
  ret void
}}

; The number of an mbarrier in its block: the agent of the loads that it waits for.
define internal i64 @fly.strict.number(i64 %at, i64 %far) noinline nounwind {{
entry:
  %places = getelementptr i8, ptr @fly.strict.places, i64 %far
  %count.at = getelementptr i8, ptr @fly.strict.count, i64 %far
  %count = load i64, ptr %count.at
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %n.next, %next ]
  %more = icmp ult i64 %n, %count
  br i1 %more, label %look, label %new
look:
  %place = getelementptr i64, ptr %places, i64 %n
  %held = load i64, ptr %place
  %found = icmp eq i64 %held, %at
  br i1 %found, label %done, label %next
next:
  %n.next = add i64 %n, 1
  br label %loop
new:
  %full = icmp eq i64 %count, {MOST_MBARRIERS}
  br i1 %full, label %last, label %add
last:
  ret i64 {MOST_MBARRIERS - 1}
add:
  %new.place = getelementptr i64, ptr %places, i64 %count
  store i64 %at, ptr %new.place
  %after = add i64 %count, 1
  store i64 %after, ptr %count.at
  %clocks = call ptr @fly.strict.mbarrier(i64 %count, i64 0, i64 %far)
  call void @llvm.memset.p0.i64(ptr %clocks, i8 0, i64 {8 * AGENTS}, i1 false)
  %loads = call ptr @fly.strict.loads.of(i64 %count, i64 %far)
  store i32 0, ptr %loads
  ret i64 %count
done:
  ret i64 %n
}}

define internal ptr @fly.strict.mbarrier(i64 %number, i64 %parity, i64 %far) nounwind {{
  %all = getelementptr i8, ptr @fly.strict.mbarriers, i64 %far
  %at = getelementptr [2 x {CLOCKS}], ptr %all, i64 %number, i64 %parity
  ret ptr %at
}}

; The count of the loads that it has waited for.
define internal ptr @fly.strict.loads.of(i64 %number, i64 %far) nounwind {{
  %all = getelementptr i8, ptr @fly.strict.loads, i64 %far
  %at = getelementptr i32, ptr %all, i64 %number
  ret ptr %at
}}

; The parity of the phase that an mbarrier is in.
define internal i64 @fly.strict.parity(i64 %at) nounwind {{
  %p = inttoptr i64 %at to ptr
  %word = load i64, ptr %p
  %up = lshr i64 %word, 40
  %parity = and i64 %up, 1
  ret i64 %parity
}}

; Of any block of the cluster. What is none is a fault elsewhere.
define internal void @fly.strict.mbarrier.arrive(i64 %at) noinline nounwind {{
entry:
  %rank = call i64 @fly.strict.owner(i64 %at)
  %none = icmp slt i64 %rank, 0
  br i1 %none, label %done, label %tell
tell:
  %far = call i64 @fly.strict.far(i64 %rank)
  %number = call i64 @fly.strict.number(i64 %at, i64 %far)
  %parity = call i64 @fly.strict.parity(i64 %at)
  %clocks = call ptr @fly.strict.mbarrier(i64 %number, i64 %parity, i64 %far)
  call void @fly.strict.tell(ptr %clocks)
  br label %done
done:
  ret void
}}

define internal void @fly.strict.mbarrier.leave(i64 %at, i32 %parity) noinline nounwind {{
  %number = call i64 @fly.strict.number(i64 %at, i64 0)
  %wanted.32 = and i32 %parity, 1
  %wanted = zext i32 %wanted.32 to i64
  %clocks = call ptr @fly.strict.mbarrier(i64 %number, i64 %wanted, i64 0)
  call void @fly.strict.hear(ptr %clocks)
  ret void
}}

; The barrier of the cluster: an arrival in a phase, and the end of a wait for it.

define internal ptr @fly.strict.meeting.at(i64 %phase) nounwind {{
  %far = call i64 @fly.strict.far(i64 0)
  %all = getelementptr i8, ptr @fly.strict.meeting, i64 %far
  %parity = and i64 %phase, 1
  %at = getelementptr {CLOCKS}, ptr %all, i64 %parity
  ret ptr %at
}}

define internal void @fly.strict.meet(i64 %phase) noinline nounwind {{
  %at = call ptr @fly.strict.meeting.at(i64 %phase)
  call void @fly.strict.tell(ptr %at)
  ret void
}}

define internal void @fly.strict.met(i64 %phase) noinline nounwind {{
  %at = call ptr @fly.strict.meeting.at(i64 %phase)
  call void @fly.strict.hear(ptr %at)
  ret void
}}

; What is asynchronous.

define internal void @fly.strict.element(i64 %to, i32 %bytes, i32 %group, i32 %site)
    noinline nounwind {{
  %index = load i64, ptr @fly.index
  %warp = lshr i64 %index, 5
  %number = add i64 %warp, {COPIES}
  %agent = call i64 @fly.strict.agent(i64 %number)
  %clock = add i32 %group, 1
  %bytes.64 = zext i32 %bytes to i64
  call void @fly.strict.access(i64 %to, i64 %bytes.64, i1 true, i64 %agent, i32 %clock, i32 %site,
    i64 0)
  ret void
}}

define internal void @fly.strict.elements(i32 %upto) nounwind {{
  %index = load i64, ptr @fly.index
  %some = icmp sgt i32 %upto, 0
  %clock = select i1 %some, i32 %upto, i32 0
{_until(COPIES, "%clock")}  ret void
}}

; A load of a tile, or a store, whose %barrier is 0 and whose group is %group.
define internal void @fly.strict.tile(ptr %map, i64 %shared, i64 %barrier, i32 %group, i32 %site)
    noinline nounwind {{
entry:
  %size.at = getelementptr i8, ptr %map, i64 {form.SIZE}
  %size = load i32, ptr %size.at, align 1
  %bytes.0 = zext i32 %size to i64
  br label %loop
loop:
  %mode = phi i64 [ 0, %entry ], [ %mode.next, %loop ]
  %bytes = phi i64 [ %bytes.0, %entry ], [ %bytes.next, %loop ]
  %far = shl i64 %mode, 2
  %from = add i64 %far, {form.BOX}
  %box.at = getelementptr i8, ptr %map, i64 %from
  %box = load i32, ptr %box.at, align 1
  %box.64 = zext i32 %box to i64
  %bytes.next = mul i64 %bytes, %box.64
  %mode.next = add i64 %mode, 1
  %more = icmp ult i64 %mode.next, {form.MOST_MODES}
  br i1 %more, label %loop, label %made
made:
  %stores = icmp eq i64 %barrier, 0
  br i1 %stores, label %store, label %load
store:
  %index = load i64, ptr @fly.index
  %warp = lshr i64 %index, 5
  %its.number = add i64 %warp, {STORES}
  %its.agent = call i64 @fly.strict.agent(i64 %its.number)
  %its.clock = add i32 %group, 1
  call void @fly.strict.access(i64 %shared, i64 %bytes.next, i1 false, i64 %its.agent,
    i32 %its.clock, i32 %site, i64 0)
  ret void
load:
  ; To this block or, with its mbarrier, to another one.
  %rank = call i64 @fly.strict.owner(i64 %barrier)
  %nowhere = icmp slt i64 %rank, 0
  br i1 %nowhere, label %done, label %known
known:
  %distance = call i64 @fly.strict.far(i64 %rank)
  %number = call i64 @fly.strict.number(i64 %barrier, i64 %distance)
  %first = mul i64 %rank, {BLOCK_AGENTS}
  %its = add i64 %number, {LOADS}
  %agent = add i64 %first, %its
  %count.at = call ptr @fly.strict.loads.of(i64 %number, i64 %distance)
  %count = load i32, ptr %count.at
  %clock = add i32 %count, 1
  store i32 %clock, ptr %count.at
  call void @fly.strict.access(i64 %shared, i64 %bytes.next, i1 true, i64 %agent, i32 %clock,
    i32 %site, i64 %distance)
  ; Whoever waits for the phase knows of it.
  %parity = call i64 @fly.strict.parity(i64 %barrier)
  %clocks = call ptr @fly.strict.mbarrier(i64 %number, i64 %parity, i64 %distance)
  %told.at = getelementptr i32, ptr %clocks, i64 %agent
  store i32 %clock, ptr %told.at
  br label %done
done:
  ret void
}}

define internal void @fly.strict.stores(i32 %upto) nounwind {{
  %index = load i64, ptr @fly.index
  %some = icmp sgt i32 %upto, 0
  %clock = select i1 %some, i32 %upto, i32 0
{_until(STORES, "%clock")}  ret void
}}

; A read of a product of a warp group.
define internal void @fly.strict.product(i64 %at, i64 %bytes, i32 %site) noinline nounwind {{
  %index = load i64, ptr @fly.index
  %group = lshr i64 %index, 7
  %number = add i64 %group, {PRODUCTS}
  %agent = call i64 @fly.strict.agent(i64 %number)
  %count.at = getelementptr i32, ptr @fly.strict.committed, i64 %index
  %count = load i32, ptr %count.at
  %clock = add i32 %count, 1
  call void @fly.strict.access(i64 %at, i64 %bytes, i1 false, i64 %agent, i32 %clock, i32 %site,
    i64 0)
  ret void
}}

define internal void @fly.strict.commit() nounwind {{
  %index = load i64, ptr @fly.index
  %count.at = getelementptr i32, ptr @fly.strict.committed, i64 %index
  %count = load i32, ptr %count.at
  %after = add i32 %count, 1
  store i32 %after, ptr %count.at
  ret void
}}

; Waits for all groups of products but the last %left: what one warp of the group has waited for,
; all of it has read.
define internal void @fly.strict.products(i32 %left) nounwind {{
  %index = load i64, ptr @fly.index
  %count.at = getelementptr i32, ptr @fly.strict.committed, i64 %index
  %count = load i32, ptr %count.at
  %done = sub i32 %count, %left
  %some = icmp sgt i32 %done, 0
  %clock = select i1 %some, i32 %done, i32 0
  %group = lshr i64 %index, 7
  %agent = add i64 %group, {PRODUCTS}
  call void @fly.strict.know(i64 %agent, i32 %clock)
  ret void
}}

define internal void @fly.strict.atomic() noinline nounwind {{
  %far = call i64 @fly.strict.far(i64 0)
  %atomics = getelementptr i8, ptr @fly.strict.atomics, i64 %far
  call void @fly.strict.hear(ptr %atomics)
  call void @fly.strict.tell(ptr %atomics)
  ret void
}}
"""
