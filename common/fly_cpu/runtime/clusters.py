"""Clusters of blocks: their barrier, other blocks' shared memory, copies to several blocks.

Each block of a cluster runs in a copy of the library of its own (`fly_run.cpu.clusters`), so the
memory of another block is at a constant distance from one's own: the word `peers` is the address of
a table of these distances, by rank. Where all threads of a block wait, the library returns, so that
other blocks run. What all of them share is the record `meeting` of five words; a block outside of a
cluster has one of its own:

    threads of the cluster, those that have arrived at its barrier, those that count as arrived
    because they have ended, those that ended after they had arrived, the barrier's phase

Source: PTX ISA 8.8, "barrier.cluster", "mapa", "cp.async.bulk.tensor".
"""

from __future__ import annotations

from fly_cpu import tensor_maps as form
from fly_cpu.state import CLUSTER, FIBER_BYTES, KINDS, READY, WAITING

FAULT = KINDS.index("cluster")
# Why an operation of a cluster faults.
ARRIVED_TWICE, NOT_ARRIVED, NO_BLOCK = range(3)
MEETING_WORDS = 5

_COORDINATES = ", ".join(f"i32 %c{mode}" for mode in range(form.MOST_MODES))


def _begin(name: str, faulty: str, why: int) -> str:
    """Returns the start of an operation of the barrier. `faulty`: how %met, a thread's mark of the
    phase that it has arrived in, compares with 0, which is none, where the operation is a fault."""
    return f"""define internal void @fly.cluster.{name}(i32 %site) noinline nounwind {{
entry:
  %f = load ptr, ptr @fly.current
  %met.at = getelementptr i8, ptr %f, i64 $_met
  %met = load i64, ptr %met.at
  %wrong = icmp {faulty} i64 %met, 0
  br i1 %wrong, label %bad, label %good
bad:
  call void @fly.fault(i64 {FAULT}, i64 0, i64 {why}, i32 %site)
  unreachable
good:
  %m = call ptr @fly.meeting()
  %phase.at = getelementptr i64, ptr %m, i64 4
  %phase = load i64, ptr %phase.at
"""


CLUSTERS = f"""
@fly.own_meeting = internal global [{MEETING_WORDS} x i64] zeroinitializer, align 64

define internal ptr @fly.meeting() nounwind {{
  %shared = load ptr, ptr $meeting
  %none = icmp eq ptr %shared, null
  %found = select i1 %none, ptr @fly.own_meeting, ptr %shared
  ret ptr %found
}}

; When a block begins.
define internal void @fly.start_meeting() nounwind {{
  call void @llvm.memset.p0.i64(ptr @fly.own_meeting, i8 0, i64 {8 * MEETING_WORDS}, i1 false)
  %threads = load i64, ptr $threads
  store i64 %threads, ptr @fly.own_meeting
  ret void
}}

; Ends the barrier's phase if nobody is missing.
define internal void @fly.complete_meeting(ptr %m) nounwind {{
entry:
  %arrived.at = getelementptr i64, ptr %m, i64 1
  %ended.at = getelementptr i64, ptr %m, i64 2
  %late.at = getelementptr i64, ptr %m, i64 3
  %phase.at = getelementptr i64, ptr %m, i64 4
  %all = load i64, ptr %m
  %arrived = load i64, ptr %arrived.at
  %ended = load i64, ptr %ended.at
  %here = add i64 %arrived, %ended
  %full = icmp eq i64 %here, %all
  br i1 %full, label %next, label %done
next:
  %late = load i64, ptr %late.at
  %ended.more = add i64 %ended, %late
  store i64 %ended.more, ptr %ended.at
  store i64 0, ptr %arrived.at
  store i64 0, ptr %late.at
  %phase = load i64, ptr %phase.at
  %phase.next = add i64 %phase, 1
  store i64 %phase.next, ptr %phase.at
  br label %done
done:
  ret void
}}

{_begin("arrive", "ne", ARRIVED_TWICE)}  call void @fly.strict.meet(i64 %phase)
  %mark = add i64 %phase, 1
  store i64 %mark, ptr %met.at
  %arrived.at = getelementptr i64, ptr %m, i64 1
  %arrived = load i64, ptr %arrived.at
  %more = add i64 %arrived, 1
  store i64 %more, ptr %arrived.at
  call void @fly.complete_meeting(ptr %m)
  ret void
}}

{_begin("wait", "eq", NOT_ARRIVED)}  %over = icmp uge i64 %phase, %met
  br i1 %over, label %look, label %wait
look:
  ; The last block to begin has not been shown the others' shared memory yet.
  %unseen = load i64, ptr $unseen
  %hidden = icmp ne i64 %unseen, 0
  br i1 %hidden, label %show, label %done
show:
  call void @fly.leave(i64 {WAITING})
  br label %done
wait:
  %site.at = getelementptr i8, ptr %f, i64 $_site
  store i32 %site, ptr %site.at
  %mask.at = getelementptr i8, ptr %f, i64 $_mask
  store i32 0, ptr %mask.at
  call void @fly.wait(i32 {CLUSTER})
  br label %done
done:
  %its.phase = sub i64 %met, 1
  call void @fly.strict.met(i64 %its.phase)
  store i64 0, ptr %met.at
  call void @fly.poll()
  ret void
}}

; A thread ends: from now on it counts as arrived.
define internal void @fly.leave_meeting(ptr %f) nounwind {{
  %m = call ptr @fly.meeting()
  %met.at = getelementptr i8, ptr %f, i64 $_met
  %met = load i64, ptr %met.at
  %phase.at = getelementptr i64, ptr %m, i64 4
  %phase = load i64, ptr %phase.at
  %counted = icmp ugt i64 %met, %phase
  %which = select i1 %counted, i64 3, i64 2
  %count.at = getelementptr i64, ptr %m, i64 %which
  %count = load i64, ptr %count.at
  %more = add i64 %count, 1
  store i64 %more, ptr %count.at
  call void @fly.complete_meeting(ptr %m)
  ret void
}}

; Lets the threads go on whose cluster has met. Whether there were any.
define internal i1 @fly.release_meeting() nounwind {{
entry:
  %threads = load i64, ptr $threads
  %m = call ptr @fly.meeting()
  %phase.at = getelementptr i64, ptr %m, i64 4
  %phase = load i64, ptr %phase.at
  br label %loop
loop:
  %l = phi i64 [ 0, %entry ], [ %l.next, %next ]
  %any = phi i1 [ false, %entry ], [ %any.next, %next ]
  %f = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %l
  %state.at = getelementptr i8, ptr %f, i64 $_state
  %state = load i32, ptr %state.at
  %waits = icmp eq i32 %state, {CLUSTER}
  %met.at = getelementptr i8, ptr %f, i64 $_met
  %met = load i64, ptr %met.at
  %over = icmp uge i64 %phase, %met
  %goes = and i1 %waits, %over
  br i1 %goes, label %free, label %next
free:
  store i32 {READY}, ptr %state.at
  br label %next
next:
  %any.next = phi i1 [ %any, %loop ], [ true, %free ]
  %l.next = add i64 %l, 1
  %more = icmp ult i64 %l.next, %threads
  br i1 %more, label %loop, label %done
done:
  ret i1 %any.next
}}

; The address in the shared memory of a block of the cluster.
define internal i64 @fly.mapa(i64 %own, i32 %rank, i32 %site) noinline nounwind {{
entry:
  %peers = load ptr, ptr $peers
  %none = icmp eq ptr %peers, null
  %size = load i64, ptr $cluster
  %blocks = select i1 %none, i64 1, i64 %size
  %rank.64 = zext i32 %rank to i64
  %known = icmp ult i64 %rank.64, %blocks
  br i1 %known, label %good, label %bad
bad:
  call void @fly.fault(i64 {FAULT}, i64 %rank.64, i64 {NO_BLOCK}, i32 %site)
  unreachable
good:
  br i1 %none, label %alone, label %map
alone:
  ret i64 %own
map:
  %far.at = getelementptr i64, ptr %peers, i64 %rank.64
  %far = load i64, ptr %far.at
  %there = add i64 %own, %far
  ret i64 %there
}}

; A load of a tile to the blocks whose bits %mask has.
define internal void @fly.multicast(ptr %map, i64 %shared, {_COORDINATES}, i64 %barrier,
    i32 %mask, i32 %site) noinline nounwind {{
entry:
  br label %loop
loop:
  %rank = phi i32 [ 0, %entry ], [ %rank.next, %next ]
  %rest = phi i32 [ %mask, %entry ], [ %rest.next, %next ]
  %some = icmp ne i32 %rest, 0
  br i1 %some, label %look, label %done
look:
  %bit = and i32 %rest, 1
  %named = icmp ne i32 %bit, 0
  br i1 %named, label %copy, label %next
copy:
  %to = call i64 @fly.mapa(i64 %shared, i32 %rank, i32 %site)
  %tells = call i64 @fly.mapa(i64 %barrier, i32 %rank, i32 %site)
  call void @fly.tile(ptr %map, i64 %to, {_COORDINATES}, i64 %tells, i32 %site)
  br label %next
next:
  %rank.next = add i32 %rank, 1
  %rest.next = lshr i32 %rest, 1
  br label %loop
done:
  ret void
}}
"""
