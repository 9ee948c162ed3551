"""Starting and continuing a launch, and its blocks; switching between stacks."""

from __future__ import annotations

from fly_cpu.state import (
    FINISHED,
    FUEL,
    SCHEDULER_STACK,
    SLICE,
)

# Saves the registers that a callee must preserve, and continues on another stack (System V ABI).
ASSEMBLY = """
.text
.p2align 4
.type fly.switch,@function
fly.switch:
.cfi_startproc
pushq %rbp
pushq %rbx
pushq %r12
pushq %r13
pushq %r14
pushq %r15
movq %rsp, (%rdi)
movq %rsi, %rsp
popq %r15
popq %r14
popq %r13
popq %r12
popq %rbx
popq %rbp
retq
.cfi_endproc
.size fly.switch, .-fly.switch
.p2align 4
.type fly.first,@function
fly.first:
.cfi_startproc
.cfi_undefined rip
callq fly.thread
ud2
.cfi_endproc
.size fly.first, .-fly.first
.p2align 4
.type fly.begin,@function
fly.begin:
.cfi_startproc
.cfi_undefined rip
callq fly.schedule
ud2
.cfi_endproc
.size fly.begin, .-fly.begin
"""
_SAVED = 48  # bytes of registers on a stack that is not running

GRID = f"""
; Starts a launch, or continues it. What it returns is in state.py.
define protected i64 @fly_run(i64 %fresh) noinline nounwind {{
entry:
  %start = icmp ne i64 %fresh, 0
  br i1 %start, label %prepare, label %continue
prepare:
  store i64 0, ptr $done
  store i64 {FUEL}, ptr $fuel
  call void @fly.set_up(ptr @fly.stack, i64 {SCHEDULER_STACK}, ptr @fly.begin, ptr @fly.paused)
  br label %continue
continue:
  %sp = load i64, ptr @fly.paused
  call void @fly.switch(ptr @fly.host, i64 %sp)
  %status = load i64, ptr $status
  ret i64 %status
}}

; Makes a stack look as if `function` were about to be called on it.
define internal void @fly.set_up(ptr %stack, i64 %size, ptr %function, ptr %to) nounwind {{
  %end = getelementptr i8, ptr %stack, i64 %size
  %room = getelementptr i8, ptr %end, i64 -{64 + 8 + _SAVED}
  call void @llvm.memset.p0.i64(ptr %room, i8 0, i64 {_SAVED}, i1 false)
  %return = getelementptr i8, ptr %room, i64 {_SAVED}
  store ptr %function, ptr %return
  %sp = ptrtoint ptr %room to i64
  store i64 %sp, ptr %to
  ret void
}}

; Returns to Python, which may call fly_run(0).
define internal void @fly.leave(i64 %status) noinline nounwind {{
  store i64 %status, ptr $status
  %host = load i64, ptr @fly.host
  call void @fly.switch(ptr @fly.paused, i64 %host)
  ret void
}}

define hidden void @fly.schedule() noinline nounwind {{
entry:
  br label %take
take:
  %tickets = load ptr, ptr $tickets
  %blocks = load i64, ptr $blocks
  %block = atomicrmw add ptr %tickets, i64 1 monotonic
  %more = icmp ult i64 %block, %blocks
  br i1 %more, label %run, label %end
run:
  %width = load i64, ptr $grid_x
  %height = load i64, ptr $grid_y
  %x = urem i64 %block, %width
  %row = udiv i64 %block, %width
  %y = urem i64 %row, %height
  %z = udiv i64 %row, %height
  store i64 %x, ptr $ctaid_x
  store i64 %y, ptr $ctaid_y
  store i64 %z, ptr $ctaid_z
  call void @fly.block()
  %before = load i64, ptr $done
  %done = add i64 %before, 1
  store i64 %done, ptr $done
  %threads = load i64, ptr $threads
  %groups = lshr i64 %threads, 5
  %cost = add i64 %groups, 1
  call void @fly.spend(i64 %cost)
  br label %take
end:
  call void @fly.leave(i64 {FINISHED})
  unreachable
}}

; Returns to Python if the slice is over.
define internal void @fly.spend(i64 %cost) nounwind {{
entry:
  %before = load i64, ptr $turns
  %left = sub i64 %before, %cost
  store i64 %left, ptr $turns
  %over = icmp slt i64 %left, 0
  br i1 %over, label %leave, label %done
leave:
  call void @fly.leave(i64 {SLICE})
  br label %done
done:
  ret void
}}
"""
