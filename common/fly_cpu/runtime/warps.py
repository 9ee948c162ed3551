"""Lanes of a warp that wait for each other."""

from __future__ import annotations

from fly_cpu.state import (
    ACTIVE,
    DONE,
    FIBER_BYTES,
    KINDS,
    POISON,
    READY,
    WARP,
)

WARPS = f"""
; Releases the lanes of a warp that wait for each other. Whether there were any.
define internal i1 @fly.release_warp(i64 %first) nounwind {{
entry:
  %threads = load i64, ptr $threads
  %end.most = add i64 %first, 32
  %end = call i64 @llvm.umin.i64(i64 %end.most, i64 %threads)
  br label %loop
loop:
  %l = phi i64 [ %first, %entry ], [ %l.next, %next ]
  %any = phi i1 [ false, %entry ], [ %any.next, %next ]
  %running = phi i1 [ false, %entry ], [ %running.1, %next ]
  %active = phi i64 [ -1, %entry ], [ %active.1, %next ]
  %f = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %l
  %state.at = getelementptr i8, ptr %f, i64 $_state
  %state = load i32, ptr %state.at
  %is.ready = icmp eq i32 %state, {READY}
  %running.1 = or i1 %running, %is.ready
  %is.active = icmp eq i32 %state, {ACTIVE}
  %none = icmp eq i64 %active, -1
  %is.first = and i1 %is.active, %none
  %active.1 = select i1 %is.first, i64 %l, i64 %active
  %waits = icmp eq i32 %state, {WARP}
  br i1 %waits, label %try, label %next
try:
  %done = call i1 @fly.release_group(i64 %first, ptr %f)
  br label %next
next:
  %released = phi i1 [ false, %loop ], [ %done, %try ]
  %any.next = or i1 %any, %released
  %l.next = add i64 %l, 1
  %more = icmp ult i64 %l.next, %end
  br i1 %more, label %loop, label %last
last:
  ; Lanes that ask which are active: those that ask together, once no other lane moves.
  %moving = or i1 %any.next, %running.1
  %asked = icmp ne i64 %active.1, -1
  %still = xor i1 %moving, true
  %answer = and i1 %asked, %still
  br i1 %answer, label %active.lanes, label %no
active.lanes:
  %who = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %active.1
  call void @fly.release_active(i64 %first, i64 %end, ptr %who)
  ret i1 true
no:
  ret i1 %any.next
}}

; Releases the lanes of the mask of fiber %f if all are there. Lanes that have ended do not count.
define internal i1 @fly.release_group(i64 %first, ptr %f) nounwind {{
entry:
  %threads = load i64, ptr $threads
  %mask.at = getelementptr i8, ptr %f, i64 $_mask
  %mask = load i32, ptr %mask.at
  %site.at = getelementptr i8, ptr %f, i64 $_site
  %site = load i32, ptr %site.at
  br label %check
check:
  %k = phi i64 [ 0, %entry ], [ %k.next, %good ]
  %present = phi i32 [ 0, %entry ], [ %present.next, %good ]
  %l = add i64 %first, %k
  %k.32 = trunc i64 %k to i32
  %bit = shl i32 1, %k.32
  %shifted = lshr i32 %mask, %k.32
  %member = trunc i32 %shifted to i1
  %exists = icmp ult i64 %l, %threads
  %matters = and i1 %member, %exists
  br i1 %matters, label %compare, label %good
compare:
  %o = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %l
  %o.state.at = getelementptr i8, ptr %o, i64 $_state
  %o.state = load i32, ptr %o.state.at
  %o.mask.at = getelementptr i8, ptr %o, i64 $_mask
  %o.mask = load i32, ptr %o.mask.at
  %o.site.at = getelementptr i8, ptr %o, i64 $_site
  %o.site = load i32, ptr %o.site.at
  %ended = icmp eq i32 %o.state, {DONE}
  %waits = icmp eq i32 %o.state, {WARP}
  %same.mask = icmp eq i32 %o.mask, %mask
  %same.site = icmp eq i32 %o.site, %site
  %same = and i1 %same.mask, %same.site
  %here = and i1 %waits, %same
  %fine = or i1 %here, %ended
  %taken = select i1 %here, i32 %bit, i32 0
  br i1 %fine, label %good, label %no
good:
  %added = phi i32 [ 0, %check ], [ %taken, %compare ]
  %present.next = or i32 %present, %added
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 32
  br i1 %more, label %check, label %release
release:
  %r = phi i64 [ 0, %good ], [ %r.next, %next ]
  %r.l = add i64 %first, %r
  %r.32 = trunc i64 %r to i32
  %r.shifted = lshr i32 %mask, %r.32
  %r.member = trunc i32 %r.shifted to i1
  %r.exists = icmp ult i64 %r.l, %threads
  %r.matters = and i1 %r.member, %r.exists
  br i1 %r.matters, label %one, label %next
one:
  %p = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %r.l
  %p.state.at = getelementptr i8, ptr %p, i64 $_state
  %p.state = load i32, ptr %p.state.at
  %p.waits = icmp eq i32 %p.state, {WARP}
  br i1 %p.waits, label %ready, label %next
ready:
  store i32 {READY}, ptr %p.state.at
  %p.count.at = getelementptr i8, ptr %p, i64 $_count
  store i32 %present.next, ptr %p.count.at
  %p.input.at = getelementptr i8, ptr %p, i64 $_input
  %p.output.at = getelementptr i8, ptr %p, i64 $_output
  %value = load i64, ptr %p.input.at
  store i64 %value, ptr %p.output.at
  br label %next
next:
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, 32
  br i1 %r.more, label %release, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal void @fly.release_active(i64 %first, i64 %end, ptr %f) nounwind {{
entry:
  %site.at = getelementptr i8, ptr %f, i64 $_site
  %site = load i32, ptr %site.at
  br label %count
count:
  %l = phi i64 [ %first, %entry ], [ %l.next, %count ]
  %mask = phi i64 [ 0, %entry ], [ %mask.next, %count ]
  %o = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %l
  %o.state.at = getelementptr i8, ptr %o, i64 $_state
  %o.state = load i32, ptr %o.state.at
  %o.site.at = getelementptr i8, ptr %o, i64 $_site
  %o.site = load i32, ptr %o.site.at
  %asks = icmp eq i32 %o.state, {ACTIVE}
  %same = icmp eq i32 %o.site, %site
  %here = and i1 %asks, %same
  %lane = sub i64 %l, %first
  %bit = shl i64 1, %lane
  %added = select i1 %here, i64 %bit, i64 0
  %mask.next = or i64 %mask, %added
  %l.next = add i64 %l, 1
  %more = icmp ult i64 %l.next, %end
  br i1 %more, label %count, label %tell
tell:
  %t = phi i64 [ %first, %count ], [ %t.next, %next ]
  %p = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %t
  %t.lane = sub i64 %t, %first
  %t.shifted = lshr i64 %mask.next, %t.lane
  %t.member = trunc i64 %t.shifted to i1
  br i1 %t.member, label %ready, label %next
ready:
  %p.state.at = getelementptr i8, ptr %p, i64 $_state
  store i32 {READY}, ptr %p.state.at
  %p.output.at = getelementptr i8, ptr %p, i64 $_output
  store i64 %mask.next, ptr %p.output.at
  br label %next
next:
  %t.next = add i64 %t, 1
  %t.more = icmp ult i64 %t.next, %end
  br i1 %t.more, label %tell, label %done
done:
  ret void
}}

; Waits for the lanes of the mask, and hands them the value.
define internal void @fly.meet(i32 %mask, i64 %value, i32 %site) noinline nounwind {{
entry:
  %index = load i64, ptr @fly.index
  %index.32 = trunc i64 %index to i32
  %lane = and i32 %index.32, 31
  %shifted = lshr i32 %mask, %lane
  %member = trunc i32 %shifted to i1
  br i1 %member, label %wait, label %outside
outside:
  %mask.64 = zext i32 %mask to i64
  call void @fly.fault(i64 {KINDS.index("mask")}, i64 %mask.64, i64 0, i32 %site)
  unreachable
wait:
  %f = load ptr, ptr @fly.current
  %mask.at = getelementptr i8, ptr %f, i64 $_mask
  store i32 %mask, ptr %mask.at
  %site.at = getelementptr i8, ptr %f, i64 $_site
  store i32 %site, ptr %site.at
  %input.at = getelementptr i8, ptr %f, i64 $_input
  store i64 %value, ptr %input.at
  call void @fly.wait(i32 {WARP})
  ret void
}}

; What a lane of this warp handed over; a fixed pattern for a lane that did not take part.
define internal i64 @fly.heard(i32 %lane) nounwind {{
entry:
  %index = load i64, ptr @fly.index
  %first = and i64 %index, -32
  %lane.64 = zext i32 %lane to i64
  %l = add i64 %first, %lane.64
  %present = call i32 @fly.present()
  %shifted = lshr i32 %present, %lane
  %member = trunc i32 %shifted to i1
  br i1 %member, label %read, label %none
read:
  %f = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %l
  %output.at = getelementptr i8, ptr %f, i64 $_output
  %value = load i64, ptr %output.at
  ret i64 %value
none:
  ret i64 {POISON << 32 | POISON}
}}

; The lanes that took part in the operation that this thread waited for last.
define internal i32 @fly.present() nounwind {{
  %f = load ptr, ptr @fly.current
  %count.at = getelementptr i8, ptr %f, i64 $_count
  %present = load i32, ptr %count.at
  ret i32 %present
}}
"""
