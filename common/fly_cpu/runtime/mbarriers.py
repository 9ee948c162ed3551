"""mbarriers: counters in shared memory of arrivals, and of bytes that copies bring.

An mbarrier is 64 bits: the arrivals that its phase still waits for (20), those that each phase
waits for (20), the parity of the phase (1), and the bytes that are still to come (23, signed). A
GPU's form is opaque. A thread that waits for a phase gives way until it has ended; a phase that
nothing can end any more is a fault.

Source: PTX ISA 8.8, "Parallel Synchronization and Communication Instructions: mbarrier".
"""

from __future__ import annotations

from fly_cpu.state import FIBER_BYTES, KINDS, MBARRIER, POISON, READY

FAULT = KINDS.index("mbarrier")
# Why an mbarrier faults.
NOT_INITIALIZED, TOO_MANY, TOO_MUCH, NO_COUNT = range(4)

MBARRIERS = f"""
define internal void @fly.mbarrier.init(i64 %at, i32 %count, i32 %site) noinline nounwind {{
entry:
  call void @fly.write(i64 %at, i64 8, i64 7, i32 %site)
  %less = sub i32 %count, 1
  %good = icmp ult i32 %less, {(1 << 20) - 1}
  br i1 %good, label %store, label %bad
bad:
  call void @fly.fault(i64 {FAULT}, i64 %at, i64 {NO_COUNT}, i32 %site)
  unreachable
store:
  %wide = zext i32 %count to i64
  %each = shl i64 %wide, 20
  %word = or i64 %wide, %each
  %p = inttoptr i64 %at to ptr
  store i64 %word, ptr %p
  ret void
}}

; The content; a fault if it is what shared memory holds at first.
define internal i64 @fly.mbarrier.word(i64 %at, i32 %site) noinline nounwind {{
entry:
  call void @fly.write(i64 %at, i64 8, i64 7, i32 %site)
  %p = inttoptr i64 %at to ptr
  %word = load i64, ptr %p
  %shifted = lshr i64 %word, 20
  %each = and i64 %shifted, {(1 << 20) - 1}
  %none = icmp eq i64 %each, 0
  %fresh = icmp eq i64 %word, {POISON << 32 | POISON}
  %wrong = or i1 %none, %fresh
  br i1 %wrong, label %bad, label %good
bad:
  call void @fly.fault(i64 {FAULT}, i64 %at, i64 {NOT_INITIALIZED}, i32 %site)
  unreachable
good:
  ret i64 %word
}}

; Counts arrivals, and bytes: expected ones are positive, those that came negative.
define internal i64 @fly.mbarrier.count(i64 %at, i64 %arrivals, i64 %bytes, i32 %site)
    noinline nounwind {{
entry:
  %word = call i64 @fly.mbarrier.word(i64 %at, i32 %site)
  %pending = and i64 %word, {(1 << 20) - 1}
  %shifted = lshr i64 %word, 20
  %each = and i64 %shifted, {(1 << 20) - 1}
  %parity.up = lshr i64 %word, 40
  %parity = and i64 %parity.up, 1
  %to.come = ashr i64 %word, 41
  %left = sub i64 %pending, %arrivals
  %many = icmp slt i64 %left, 0
  br i1 %many, label %over, label %count
over:
  call void @fly.fault(i64 {FAULT}, i64 %at, i64 {TOO_MANY}, i32 %site)
  unreachable
count:
  %more = add i64 %to.come, %bytes
  %low = icmp slt i64 %more, {-(1 << 20)}
  %high = icmp sgt i64 %more, {(1 << 20) - 1}
  %beyond = or i1 %low, %high
  br i1 %beyond, label %much, label %store
much:
  call void @fly.fault(i64 {FAULT}, i64 %at, i64 {TOO_MUCH}, i32 %site)
  unreachable
store:
  %arrived = icmp eq i64 %left, 0
  %copied = icmp eq i64 %more, 0
  %ends = and i1 %arrived, %copied
  %flip = zext i1 %ends to i64
  %parity.new = xor i64 %parity, %flip
  %left.new = select i1 %ends, i64 %each, i64 %left
  %each.up = shl i64 %each, 20
  %parity.at = shl i64 %parity.new, 40
  %bytes.at = shl i64 %more, 41
  %w.1 = or i64 %left.new, %each.up
  %w.2 = or i64 %w.1, %parity.at
  %w.3 = or i64 %w.2, %bytes.at
  %p = inttoptr i64 %at to ptr
  store i64 %w.3, ptr %p
  ret i64 %word
}}

; Waits until the phase of this parity has ended.
define internal void @fly.mbarrier.wait(i64 %at, i32 %parity, i32 %site) noinline nounwind {{
entry:
  %wanted.32 = and i32 %parity, 1
  %wanted = zext i32 %wanted.32 to i64
  %word = call i64 @fly.mbarrier.word(i64 %at, i32 %site)
  %up = lshr i64 %word, 40
  %now = and i64 %up, 1
  %over = icmp ne i64 %now, %wanted
  br i1 %over, label %done, label %wait
wait:
  %f = load ptr, ptr @fly.current
  %input.at = getelementptr i8, ptr %f, i64 $_input
  store i64 %at, ptr %input.at
  %mask.at = getelementptr i8, ptr %f, i64 $_mask
  store i32 %wanted.32, ptr %mask.at
  %site.at = getelementptr i8, ptr %f, i64 $_site
  store i32 %site, ptr %site.at
  call void @fly.wait(i32 {MBARRIER})
  call void @fly.strict.mbarrier.leave(i64 %at, i32 %parity)
  ret void
done:
  call void @fly.strict.mbarrier.leave(i64 %at, i32 %parity)
  call void @fly.poll()
  ret void
}}

; Lets the threads go on whose phases have ended. Whether there were any.
define internal i1 @fly.release_mbarriers() nounwind {{
entry:
  %threads = load i64, ptr $threads
  br label %loop
loop:
  %l = phi i64 [ 0, %entry ], [ %l.next, %next ]
  %any = phi i1 [ false, %entry ], [ %any.next, %next ]
  %f = getelementptr [{FIBER_BYTES} x i8], ptr @fly.fibers, i64 %l
  %state.at = getelementptr i8, ptr %f, i64 $_state
  %state = load i32, ptr %state.at
  %waits = icmp eq i32 %state, {MBARRIER}
  br i1 %waits, label %look, label %next
look:
  %at.at = getelementptr i8, ptr %f, i64 $_input
  %at = load i64, ptr %at.at
  %p = inttoptr i64 %at to ptr
  %word = load i64, ptr %p
  %up = lshr i64 %word, 40
  %now.64 = and i64 %up, 1
  %now = trunc i64 %now.64 to i32
  %mask.at = getelementptr i8, ptr %f, i64 $_mask
  %wanted = load i32, ptr %mask.at
  %over = icmp ne i32 %now, %wanted
  br i1 %over, label %free, label %next
free:
  store i32 {READY}, ptr %state.at
  br label %next
next:
  %freed = phi i1 [ false, %loop ], [ false, %look ], [ true, %free ]
  %any.next = or i1 %any, %freed
  %l.next = add i64 %l, 1
  %more = icmp ult i64 %l.next, %threads
  br i1 %more, label %loop, label %done
done:
  ret i1 %any.next
}}
"""
