"""A block: its threads as fibers, which run until they wait for others or end."""

from __future__ import annotations

from fly_cpu.state import (
    ALL_BARRIERS,
    CLUSTER,
    DONE,
    FIBER_BYTES,
    FUEL,
    KINDS,
    MARGIN,
    NEW,
    READY,
    STACK,
    WAITING,
)

BLOCK = f"""
define internal void @fly.block() noinline nounwind {{
entry:
  %first.at = alloca i64
  %moved.at = alloca i1
  %threads = load i64, ptr $threads
  call void @fly.fill()
  %bytes = mul i64 %threads, {FIBER_BYTES}
  call void @llvm.memset.p0.i64(ptr @fly.fibers, i8 0, i64 %bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr @fly.arrived, i8 0, i64 {8 * ALL_BARRIERS}, i1 false)
  store i64 0, ptr @fly.copies.waiting
  call void @fly.start_groups()
  call void @fly.strict.start()
  call void @fly.start_meeting()
  store i64 0, ptr @fly.frees
  store i64 0, ptr @fly.used
  store i64 0, ptr @fly.ended
  store i32 0, ptr @fly.next.x
  store i32 0, ptr @fly.next.y
  store i32 0, ptr @fly.next.z
  br label %round
round:
  store i64 1, ptr $moved
  store i1 false, ptr %moved.at
  store i64 0, ptr %first.at
  br label %warps
warps:
  %first = load i64, ptr %first.at
  %more = icmp ult i64 %first, %threads
  br i1 %more, label %run, label %waits
run:
  %ran = call i1 @fly.run_warp(i64 %first)
  %released = call i1 @fly.release_warp(i64 %first)
  %moved.before = load i1, ptr %moved.at
  %moved.1 = or i1 %moved.before, %ran
  %moved.2 = or i1 %moved.1, %released
  store i1 %moved.2, ptr %moved.at
  br i1 %released, label %run, label %next
next:
  %following = add i64 %first, 32
  store i64 %following, ptr %first.at
  br label %warps
waits:
  %ended = load i64, ptr @fly.ended
  %all = icmp eq i64 %ended, %threads
  br i1 %all, label %done, label %release
release:
  %opened = call i1 @fly.release_barriers()
  %copied = call i1 @fly.make_copies()
  %phased = call i1 @fly.release_mbarriers()
  %met = call i1 @fly.release_meeting()
  %moved.3 = load i1, ptr %moved.at
  %going.1 = or i1 %moved.3, %opened
  %going.2 = or i1 %going.1, %copied
  %going.3 = or i1 %going.2, %met
  %going = or i1 %going.3, %phased
  br i1 %going, label %round, label %idle
idle:
  ; Another block of the cluster may let this one go on.
  %blocks = load i64, ptr $cluster
  %others = icmp ugt i64 %blocks, 1
  %hopeless = load i64, ptr $hopeless
  %hope = icmp eq i64 %hopeless, 0
  %asks = and i1 %others, %hope
  br i1 %asks, label %ask, label %stuck
ask:
  %waiter = call ptr @fly.waiter()
  %waiter.state.at = getelementptr i8, ptr %waiter, i64 $_state
  %waiter.state = load i32, ptr %waiter.state.at
  %waiter.state.64 = zext i32 %waiter.state to i64
  store i64 %waiter.state.64, ptr $size
  store i1 false, ptr %moved.at
  call void @fly.leave(i64 {WAITING})
  br label %release
stuck:
  %f = call ptr @fly.waiter()
  call void @fly.stopped(i64 {KINDS.index("deadlock")}, ptr %f)
  unreachable
done:
  call void @fly.finish_copies()
  ret void
}}

; The thread that a deadlock's fault names: the first one that waits, if possible for something else
; than its cluster, which may be waiting for that thread. There is one.
define internal ptr @fly.waiter() nounwind {{
entry:
  %threads = load i64, ptr $threads
  br label %loop
loop:
  %l = phi i64 [ 0, %entry ], [ %l.next, %next ]
  %found = phi ptr [ null, %entry ], [ %found.next, %next ]
  %f = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %l
  %state.at = getelementptr i8, ptr %f, i64 $_state
  %state = load i32, ptr %state.at
  switch i32 %state, label %done [ i32 {DONE}, label %next
                                   i32 {CLUSTER}, label %keep ]
keep:
  %none = icmp eq ptr %found, null
  %kept = select i1 %none, ptr %f, ptr %found
  br label %next
next:
  %found.next = phi ptr [ %found, %loop ], [ %kept, %keep ]
  %l.next = add i64 %l, 1
  %more = icmp ult i64 %l.next, %threads
  br i1 %more, label %loop, label %rest
done:
  ret ptr %f
rest:
  ret ptr %found.next
}}

; Runs the fibers of a warp that can run, each until it gives way. Whether there was one.
define internal i1 @fly.run_warp(i64 %first) nounwind {{
entry:
  %threads = load i64, ptr $threads
  %end.most = add i64 %first, 32
  %end = call i64 @llvm.umin.i64(i64 %end.most, i64 %threads)
  br label %loop
loop:
  %l = phi i64 [ %first, %entry ], [ %l.next, %next ]
  %any = phi i1 [ false, %entry ], [ %any.next, %next ]
  %f = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %l
  %state.at = getelementptr i8, ptr %f, i64 $_state
  %state = load i32, ptr %state.at
  switch i32 %state, label %next [ i32 {NEW}, label %new
                                   i32 {READY}, label %resume ]
new:
  call void @fly.new(ptr %f, i64 %l)
  br label %resume
resume:
  store ptr %f, ptr @fly.current
  %x.at = getelementptr i8, ptr %f, i64 $_x
  %y.at = getelementptr i8, ptr %f, i64 $_y
  %z.at = getelementptr i8, ptr %f, i64 $_z
  %x = load i32, ptr %x.at
  %y = load i32, ptr %y.at
  %z = load i32, ptr %z.at
  store i32 %x, ptr @fly.x
  store i32 %y, ptr @fly.y
  store i32 %z, ptr @fly.z
  store i64 %l, ptr @fly.index
  %stack.at = getelementptr i8, ptr %f, i64 $_stack
  %stack = load i64, ptr %stack.at
  %limit = add i64 %stack, {MARGIN}
  store i64 %limit, ptr @fly.limit
  %sp.at = getelementptr i8, ptr %f, i64 $_sp
  %sp = load i64, ptr %sp.at
  call void @fly.switch(ptr @fly.scheduler, i64 %sp)
  br label %next
next:
  %any.next = phi i1 [ %any, %loop ], [ true, %resume ]
  %l.next = add i64 %l, 1
  %more = icmp ult i64 %l.next, %end
  br i1 %more, label %loop, label %done
done:
  ret i1 %any.next
}}

; Gives a fiber a stack, if possible one that another has used, and its thread numbers.
define internal void @fly.new(ptr %f, i64 %l) nounwind {{
entry:
  %frees = load i64, ptr @fly.frees
  %some = icmp ne i64 %frees, 0
  br i1 %some, label %again, label %fresh
again:
  %last = sub i64 %frees, 1
  store i64 %last, ptr @fly.frees
  %place = getelementptr i64, ptr @fly.free, i64 %last
  %old = load i64, ptr %place
  br label %have
fresh:
  %used = load i64, ptr @fly.used
  %used.next = add i64 %used, 1
  store i64 %used.next, ptr @fly.used
  %offset = mul i64 %used, {STACK}
  %base = load i64, ptr $stacks
  %own = add i64 %base, %offset
  br label %have
have:
  %stack = phi i64 [ %old, %again ], [ %own, %fresh ]
  %stack.at = getelementptr i8, ptr %f, i64 $_stack
  store i64 %stack, ptr %stack.at
  %stack.p = inttoptr i64 %stack to ptr
  %sp.at = getelementptr i8, ptr %f, i64 $_sp
  call void @fly.set_up(ptr %stack.p, i64 {STACK}, ptr @fly.first, ptr %sp.at)
  ; Threads begin in order, so that their numbers can be counted.
  %x.32 = load i32, ptr @fly.next.x
  %y.32 = load i32, ptr @fly.next.y
  %z.32 = load i32, ptr @fly.next.z
  %width = load i32, ptr $block_x
  %height = load i32, ptr $block_y
  %x.more = add i32 %x.32, 1
  %x.over = icmp eq i32 %x.more, %width
  %x.next = select i1 %x.over, i32 0, i32 %x.more
  %x.carry = zext i1 %x.over to i32
  %y.more = add i32 %y.32, %x.carry
  %y.over = icmp eq i32 %y.more, %height
  %y.next = select i1 %y.over, i32 0, i32 %y.more
  %y.carry = zext i1 %y.over to i32
  %z.next = add i32 %z.32, %y.carry
  store i32 %x.next, ptr @fly.next.x
  store i32 %y.next, ptr @fly.next.y
  store i32 %z.next, ptr @fly.next.z
  %x.at = getelementptr i8, ptr %f, i64 $_x
  %y.at = getelementptr i8, ptr %f, i64 $_y
  %z.at = getelementptr i8, ptr %f, i64 $_z
  %index.at = getelementptr i8, ptr %f, i64 $_index
  store i32 %x.32, ptr %x.at
  store i32 %y.32, ptr %y.at
  store i32 %z.32, ptr %z.at
  store i64 %l, ptr %index.at
  ret void
}}

define hidden void @fly.thread() noinline nounwind {{
  %entry = load ptr, ptr $entry
  %arguments = load ptr, ptr $arguments
  call void %entry(ptr %arguments)
  call void @fly.end()
  unreachable
}}

; Ends the thread.
define internal void @fly.end() noinline noreturn nounwind {{
  %f = load ptr, ptr @fly.current
  %stack.at = getelementptr i8, ptr %f, i64 $_stack
  %stack = load i64, ptr %stack.at
  %frees = load i64, ptr @fly.frees
  %place = getelementptr i64, ptr @fly.free, i64 %frees
  store i64 %stack, ptr %place
  %frees.next = add i64 %frees, 1
  store i64 %frees.next, ptr @fly.frees
  %ended = load i64, ptr @fly.ended
  %ended.next = add i64 %ended, 1
  store i64 %ended.next, ptr @fly.ended
  call void @fly.leave_meeting(ptr %f)
  call void @fly.wait(i32 {DONE})
  unreachable
}}

; Gives way, in this state.
define internal void @fly.wait(i32 %state) noinline nounwind {{
  %f = load ptr, ptr @fly.current
  %state.at = getelementptr i8, ptr %f, i64 $_state
  store i32 %state, ptr %state.at
  %sp.at = getelementptr i8, ptr %f, i64 $_sp
  %scheduler = load i64, ptr @fly.scheduler
  call void @fly.switch(ptr %sp.at, i64 %scheduler)
  ret void
}}

; Called by loops.
define internal void @fly.poll() alwaysinline nounwind {{
entry:
  %before = load i64, ptr $fuel
  %left = sub i64 %before, 1
  store i64 %left, ptr $fuel
  %over = icmp slt i64 %left, 0
  br i1 %over, label %tired, label %done
tired:
  call void @fly.tire()
  br label %done
done:
  ret void
}}

define internal void @fly.tire() noinline nounwind {{
  store i64 {FUEL}, ptr $fuel
  call void @fly.spend(i64 1)
  call void @fly.wait(i32 {READY})
  ret void
}}
"""
