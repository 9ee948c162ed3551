"""Faults, and checks of memory accesses."""

from __future__ import annotations

from fly_cpu.state import (
    FAULT,
    KINDS,
    PRINT,
    STACK,
)

FAULTS = f"""
; Records a fault of the current thread, and never comes back.
define internal void @fly.fault(i64 %kind, i64 %address, i64 %size, i32 %site)
    noinline noreturn nounwind cold {{
  %index = load i64, ptr @fly.index
  call void @fly.record(i64 %kind, i64 %address, i64 %size, i32 %site, i64 %index)
  unreachable
}}

; The same for a thread that waits.
define internal void @fly.stopped(i64 %kind, ptr %f) noinline noreturn nounwind cold {{
  %index.at = getelementptr i8, ptr %f, i64 $_index
  %index = load i64, ptr %index.at
  %site.at = getelementptr i8, ptr %f, i64 $_site
  %site = load i32, ptr %site.at
  %state.at = getelementptr i8, ptr %f, i64 $_state
  %state = load i32, ptr %state.at
  %state.64 = zext i32 %state to i64
  %waiting.at = getelementptr i8, ptr %f, i64 $_mask
  %waiting = load i32, ptr %waiting.at
  %waiting.64 = zext i32 %waiting to i64
  %ended = load i64, ptr @fly.ended
  store i64 %ended, ptr $waiting
  call void @fly.record(i64 %kind, i64 %waiting.64, i64 %state.64, i32 %site, i64 %index)
  unreachable
}}

define internal void @fly.record(i64 %kind, i64 %address, i64 %size, i32 %site, i64 %index)
    noreturn nounwind {{
  store i64 %kind, ptr $kind
  store i64 %address, ptr $address
  store i64 %size, ptr $size
  %site.64 = zext i32 %site to i64
  store i64 %site.64, ptr $site
  store i64 %index, ptr $thread
  call void @fly.leave(i64 {FAULT})
  unreachable
}}

define internal void @fly.trap(i32 %site) alwaysinline nounwind {{
  call void @fly.fault(i64 {KINDS.index("trap")}, i64 0, i64 0, i32 %site)
  ret void
}}

; Called where a function begins.
define internal void @fly.room(i32 %site) alwaysinline nounwind {{
entry:
  %sp = call i64 @llvm.read_register.i64(metadata !{{!"rsp"}})
  %limit = load i64, ptr @fly.limit
  %over = icmp ult i64 %sp, %limit
  br i1 %over, label %full, label %done
full:
  call void @fly.fault(i64 {KINDS.index("stack")}, i64 0, i64 {STACK}, i32 %site)
  unreachable
done:
  ret void
}}

; Python prints; the threads of the block wait for that.
define internal i32 @fly.print(ptr %format, ptr %values) noinline nounwind {{
  store ptr %format, ptr $format
  store ptr %values, ptr $values
  call void @fly.leave(i64 {PRINT})
  ret i32 1
}}

define internal void @fly.assert(ptr %message, i32 %site) noinline nounwind {{
  %address = ptrtoint ptr %message to i64
  call void @fly.fault(i64 {KINDS.index("assert")}, i64 %address, i64 0, i32 %site)
  unreachable
}}
"""

# A fault for memory that AddressSanitizer knows to be wrong has its report.
_ASK_FOR_BOTH = f"""  %write = icmp ne i64 %kind, {KINDS.index("unmapped")}
  call void @fly.ask(i64 %address, i64 %size, i32 %site, i1 %write)
"""


def look(sanitized: bool) -> str:
    """The search of an access in a table."""
    ask = _ASK_FOR_BOTH if sanitized else ""
    return f"""
; Searches the table for the row of an access, and remembers it.
define internal void @fly.look(i64 %address, i64 %size, i64 %low, i32 %site, ptr %table,
    ptr %rows.at, i64 %kind) noinline nounwind {{
entry:
  %rows = load i64, ptr %rows.at
  %wrong = and i64 %address, %low
  %odd = icmp ne i64 %wrong, 0
  br i1 %odd, label %misaligned, label %empty
empty:
  %nothing = icmp eq i64 %size, 0
  br i1 %nothing, label %done, label %loop
loop:
  %n = phi i64 [ 0, %empty ], [ %n.next, %next ]
  %more = icmp ult i64 %n, %rows
  br i1 %more, label %one, label %none
one:
  %offset = shl i64 %n, 4
  %row = getelementptr i8, ptr %table, i64 %offset
  %start = load i64, ptr %row
  %length.at = getelementptr i8, ptr %row, i64 8
  %length = load i64, ptr %length.at
  %inside = sub i64 %address, %start
  %end = add i64 %inside, %size
  %begins = icmp ule i64 %inside, %length
  %ends = icmp ule i64 %end, %length
  %fits = and i1 %begins, %ends
  br i1 %fits, label %found, label %next
next:
  %n.next = add i64 %n, 1
  br label %loop
found:
  %cache = getelementptr i64, ptr @fly.cache, i32 %site
  store i64 %offset, ptr %cache
  br label %done
none:
{ask}  call void @fly.fault(i64 %kind, i64 %address, i64 %size, i32 %site)
  unreachable
misaligned:
  call void @fly.fault(i64 {KINDS.index("misaligned")}, i64 %address, i64 %size, i32 %site)
  unreachable
done:
  ret void
}}
declare i64 @llvm.umin.i64(i64, i64)
"""


def check(name: str, kind: str, sanitized: bool) -> str:
    """The check of an access: whether it lies within the row of the table that this place in the
    code used last."""
    write = "true" if name == "write" else "false"
    ask = f"  call void @fly.ask(i64 %address, i64 %size, i32 %site, i1 {write})\n"
    ask = ask if sanitized else ""
    return f"""
define internal void @fly.{name}(i64 %address, i64 %size, i64 %low, i32 %site)
    alwaysinline nounwind {{
entry:
  %cache = getelementptr i64, ptr @fly.cache, i32 %site
  %offset = load i64, ptr %cache
  %row = getelementptr i8, ptr @fly_{name}, i64 %offset
  %start = load i64, ptr %row
  %length.at = getelementptr i8, ptr %row, i64 8
  %length = load i64, ptr %length.at
  %inside = sub i64 %address, %start
  %end = add i64 %inside, %size
  %begins = icmp ule i64 %inside, %length
  %ends = icmp ule i64 %end, %length
  %wrong = and i64 %address, %low
  %even = icmp eq i64 %wrong, 0
  %fits = and i1 %begins, %ends
  %good = and i1 %fits, %even
  br i1 %good, label %done, label %look
look:
  call void @fly.look(i64 %address, i64 %size, i64 %low, i32 %site, ptr @fly_{name},
    ptr ${name}s, i64 {KINDS.index(kind)})
  br label %done
done:
{ask}  ret void
}}
"""
