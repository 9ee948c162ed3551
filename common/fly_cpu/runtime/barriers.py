"""Barriers of a block."""

from __future__ import annotations

from fly_cpu.state import (
    ALL_BARRIERS,
    BARRIER,
    FIBER_BYTES,
    KINDS,
    MOST_BARRIERS,
    READY,
    WARP_GROUP,
)

BARRIERS = f"""
; Waits at a barrier. %count is the number of threads that it waits for, 0 for all.
define internal i64 @fly.barrier(i32 %id, i32 %count, i1 %aligned, i1 %value, i32 %site)
    noinline nounwind {{
  call void @fly.check_barrier(i32 %id, i32 %count, i32 %site)
  %result = call i64 @fly.any_barrier(i32 %id, i32 %count, i1 %aligned, i1 %value, i32 %site)
  ret i64 %result
}}

; Waits for the threads of the warp group: its products are those of all of them. A GPU begins a
; product when its four warps have come there, so that none is behind where another one waits.
define internal void @fly.warp_group(i32 %site) noinline nounwind {{
  %index = load i64, ptr @fly.index
  %group = udiv i64 %index, {WARP_GROUP}
  %first = mul i64 %group, {WARP_GROUP}
  %threads = load i64, ptr $threads
  %rest = sub i64 %threads, %first
  %count = call i64 @llvm.umin.i64(i64 %rest, i64 {WARP_GROUP})
  %count.32 = trunc i64 %count to i32
  %group.32 = trunc i64 %group to i32
  %id = add i32 %group.32, {MOST_BARRIERS}
  %unused = call i64 @fly.any_barrier(i32 %id, i32 %count.32, i1 true, i1 false, i32 %site)
  ret void
}}

define internal i64 @fly.any_barrier(i32 %id, i32 %count, i1 %aligned, i1 %value, i32 %site)
    noinline nounwind {{
entry:
  %f = load ptr, ptr @fly.current
  %mask.at = getelementptr i8, ptr %f, i64 $_mask
  store i32 %id, ptr %mask.at
  %count.at = getelementptr i8, ptr %f, i64 $_count
  store i32 %count, ptr %count.at
  %aligned.at = getelementptr i8, ptr %f, i64 $_aligned
  %aligned.32 = zext i1 %aligned to i32
  store i32 %aligned.32, ptr %aligned.at
  %site.at = getelementptr i8, ptr %f, i64 $_site
  store i32 %site, ptr %site.at
  %input.at = getelementptr i8, ptr %f, i64 $_input
  %value.64 = zext i1 %value to i64
  store i64 %value.64, ptr %input.at
  %phase = call i32 @fly.strict.arrive(i32 %id)
  call void @fly.wait(i32 {BARRIER})
  call void @fly.strict.leave(i32 %id, i32 %phase)
  %output.at = getelementptr i8, ptr %f, i64 $_output
  %result = load i64, ptr %output.at
  ret i64 %result
}}

; Counts for a barrier, and goes on.
define internal void @fly.arrive(i32 %id, i32 %count, i32 %site) noinline nounwind {{
  call void @fly.check_barrier(i32 %id, i32 %count, i32 %site)
  %phase = call i32 @fly.strict.arrive(i32 %id)
  %place = getelementptr i64, ptr @fly.arrived, i32 %id
  %before = load i64, ptr %place
  %after = add i64 %before, 1
  store i64 %after, ptr %place
  ret void
}}

define internal void @fly.check_barrier(i32 %id, i32 %count, i32 %site) nounwind {{
entry:
  %known = icmp ult i32 %id, {MOST_BARRIERS}
  %part = and i32 %count, 31
  %whole = icmp eq i32 %part, 0
  %good = and i1 %known, %whole
  br i1 %good, label %done, label %bad
bad:
  %id.64 = zext i32 %id to i64
  %count.64 = zext i32 %count to i64
  call void @fly.fault(i64 {KINDS.index("barrier")}, i64 %id.64, i64 %count.64, i32 %site)
  unreachable
done:
  ret void
}}

; Opens the barriers that enough threads have reached. Whether there were any.
define internal i1 @fly.release_barriers() nounwind {{
entry:
  %threads = load i64, ptr $threads
  %ended = load i64, ptr @fly.ended
  %live = sub i64 %threads, %ended
  call void @llvm.memset.p0.i64(ptr @fly.waiters, i8 0, i64 {8 * ALL_BARRIERS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.trues, i8 0, i64 {8 * ALL_BARRIERS}, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.freed, i8 0, i64 {ALL_BARRIERS}, i1 false)
  br label %count
count:
  %l = phi i64 [ 0, %entry ], [ %l.next, %count.next ]
  %f = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %l
  %lane = and i64 %l, 31
  %leads = icmp eq i64 %lane, 0
  br i1 %leads, label %one, label %compare
compare:
  %previous = getelementptr i8, ptr %f, i64 -{FIBER_BYTES}
  %split = call i1 @fly.split(ptr %previous, ptr %f)
  br i1 %split, label %divergent, label %one
divergent:
  %previous.state.at = getelementptr i8, ptr %previous, i64 $_state
  %previous.state = load i32, ptr %previous.state.at
  %previous.waits = icmp eq i32 %previous.state, {BARRIER}
  %waiter = select i1 %previous.waits, ptr %previous, ptr %f
  call void @fly.stopped(i64 {KINDS.index("divergent")}, ptr %waiter)
  unreachable
one:
  %state.at = getelementptr i8, ptr %f, i64 $_state
  %state = load i32, ptr %state.at
  %waits = icmp eq i32 %state, {BARRIER}
  br i1 %waits, label %add, label %count.next
add:
  %id.at = getelementptr i8, ptr %f, i64 $_mask
  %id = load i32, ptr %id.at
  %input.at = getelementptr i8, ptr %f, i64 $_input
  %input = load i64, ptr %input.at
  %waiters.at = getelementptr i64, ptr @fly.waiters, i32 %id
  %waiters = load i64, ptr %waiters.at
  %waiters.more = add i64 %waiters, 1
  store i64 %waiters.more, ptr %waiters.at
  %trues.at = getelementptr i64, ptr @fly.trues, i32 %id
  %trues = load i64, ptr %trues.at
  %trues.more = add i64 %trues, %input
  store i64 %trues.more, ptr %trues.at
  br label %count.next
count.next:
  %l.next = add i64 %l, 1
  %more = icmp ult i64 %l.next, %threads
  br i1 %more, label %count, label %open
open:
  %k = phi i64 [ 0, %count.next ], [ %k.next, %open.next ]
  %any = phi i1 [ false, %count.next ], [ %any.next, %open.next ]
  %g = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %k
  %g.state.at = getelementptr i8, ptr %g, i64 $_state
  %g.state = load i32, ptr %g.state.at
  %g.waits = icmp eq i32 %g.state, {BARRIER}
  br i1 %g.waits, label %enough, label %open.next
enough:
  %g.id.at = getelementptr i8, ptr %g, i64 $_mask
  %g.id = load i32, ptr %g.id.at
  %g.count.at = getelementptr i8, ptr %g, i64 $_count
  %g.count.32 = load i32, ptr %g.count.at
  %g.count = zext i32 %g.count.32 to i64
  %every = icmp eq i64 %g.count, 0
  %wanted = select i1 %every, i64 %live, i64 %g.count
  %g.waiters.at = getelementptr i64, ptr @fly.waiters, i32 %g.id
  %g.waiters = load i64, ptr %g.waiters.at
  %g.arrived.at = getelementptr i64, ptr @fly.arrived, i32 %g.id
  %g.arrived = load i64, ptr %g.arrived.at
  %total = add i64 %g.waiters, %g.arrived
  %full = icmp uge i64 %total, %wanted
  br i1 %full, label %free, label %open.next
free:
  store i32 {READY}, ptr %g.state.at
  %g.trues.at = getelementptr i64, ptr @fly.trues, i32 %g.id
  %g.trues = load i64, ptr %g.trues.at
  %high = shl i64 %g.waiters, 32
  %both = or i64 %high, %g.trues
  %g.output.at = getelementptr i8, ptr %g, i64 $_output
  store i64 %both, ptr %g.output.at
  %freed.at = getelementptr i1, ptr @fly.freed, i32 %g.id
  store i1 true, ptr %freed.at
  br label %open.next
open.next:
  %now = phi i1 [ false, %open ], [ false, %enough ], [ true, %free ]
  %any.next = or i1 %any, %now
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %threads
  br i1 %k.more, label %open, label %reset
reset:
  %b = phi i64 [ 0, %open.next ], [ %b.next, %reset.next ]
  %b.freed.at = getelementptr i1, ptr @fly.freed, i64 %b
  %b.freed = load i1, ptr %b.freed.at
  br i1 %b.freed, label %clear, label %reset.next
clear:
  %b.arrived.at = getelementptr i64, ptr @fly.arrived, i64 %b
  store i64 0, ptr %b.arrived.at
  %b.32 = trunc i64 %b to i32
  call void @fly.strict.next(i32 %b.32)
  br label %reset.next
reset.next:
  %b.next = add i64 %b, 1
  %b.more = icmp ult i64 %b.next, {ALL_BARRIERS}
  br i1 %b.more, label %reset, label %done
done:
  ret i1 %any.next
}}

; Whether two neighbours of a warp break a rule of aligned barriers: that all threads of the warp
; execute the same one (PTX ISA, "barrier"). A thread that still runs may do so yet.
define internal i1 @fly.split(ptr %a, ptr %b) nounwind {{
  %a.state.at = getelementptr i8, ptr %a, i64 $_state
  %b.state.at = getelementptr i8, ptr %b, i64 $_state
  %a.state = load i32, ptr %a.state.at
  %b.state = load i32, ptr %b.state.at
  %a.aligned.at = getelementptr i8, ptr %a, i64 $_aligned
  %b.aligned.at = getelementptr i8, ptr %b, i64 $_aligned
  %a.aligned.32 = load i32, ptr %a.aligned.at
  %b.aligned.32 = load i32, ptr %b.aligned.at
  %a.aligned = icmp ne i32 %a.aligned.32, 0
  %b.aligned = icmp ne i32 %b.aligned.32, 0
  %a.waits = icmp eq i32 %a.state, {BARRIER}
  %b.waits = icmp eq i32 %b.state, {BARRIER}
  %a.must = and i1 %a.waits, %a.aligned
  %b.must = and i1 %b.waits, %b.aligned
  %must = or i1 %a.must, %b.must
  %a.site.at = getelementptr i8, ptr %a, i64 $_site
  %b.site.at = getelementptr i8, ptr %b, i64 $_site
  %a.site = load i32, ptr %a.site.at
  %b.site = load i32, ptr %b.site.at
  %a.id.at = getelementptr i8, ptr %a, i64 $_mask
  %b.id.at = getelementptr i8, ptr %b, i64 $_mask
  %a.id = load i32, ptr %a.id.at
  %b.id = load i32, ptr %b.id.at
  %same.site = icmp eq i32 %a.site, %b.site
  %same.id = icmp eq i32 %a.id, %b.id
  %same.state = icmp eq i32 %a.state, %b.state
  %same.1 = and i1 %same.site, %same.id
  %same = and i1 %same.1, %same.state
  %apart = xor i1 %same, true
  %a.runs = icmp eq i32 %a.state, {READY}
  %b.runs = icmp eq i32 %b.state, {READY}
  %runs = or i1 %a.runs, %b.runs
  %still = xor i1 %runs, true
  %broken = and i1 %must, %apart
  %result = and i1 %broken, %still
  ret i1 %result
}}
"""
