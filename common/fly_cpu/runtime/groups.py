"""Groups of asynchronous copies: stores by TMA, and the copies of elements of `cp.async`.

A copy is put off until its thread waits for its group, so that what uses a result before such a
wait, or writes again what is still to be read, has other results. Hardware may copy at any moment
before. Stores that nothing waits for are made when the block ends; what `cp.async` would bring by
then, nobody can read.

Source: PTX ISA 8.8, "cp.async.commit_group", "cp.async.wait_group", "cp.async.bulk.commit_group",
"cp.async.bulk.wait_group". A copy belongs to the group that its thread commits next; a wait is for
all groups but the last ones, and not for copies that no group has.
"""

from __future__ import annotations

from fly_cpu.runtime.tiles import COPY_BYTES, GROUP, THREAD
from fly_cpu.state import MOST_COPIES, MOST_THREADS

# Copies of elements of a thread: as many as it has at once. Before another one the first is made.
_ELEMENTS = 128
_ELEMENT = "{ i64, i64, i32, i32, i32, i32 }"  # to, from, bytes, place in the code, group, unused
_RING = f"[{_ELEMENTS} x {_ELEMENT}]"
_COUNTS = f"[{MOST_THREADS} x [4 x i32]]"
_STORED, _COPIED, _FIRST, _END = range(4)  # groups of both kinds; the ring's copies

_SIZES = (4, 8, 16)


def _count(name: str, which: int) -> str:
    return f"  %{name} = getelementptr {_COUNTS}, ptr @fly.groups, i64 0, i64 %index, i64 {which}\n"


def _commit(name: str, which: int) -> str:
    return f"""
define internal void @fly.commit.{name}() nounwind {{
  %index = load i64, ptr @fly.index
{_count("at", which)}  %before = load i32, ptr %at
  %after = add i32 %before, 1
  store i32 %after, ptr %at
  ret void
}}
"""


def _upto(which: int) -> str:
    """The number of the first group of the thread that a wait leaves."""
    return f"""  %index = load i64, ptr @fly.index
{_count("made.at", which)}  %made = load i32, ptr %made.at
  %upto = sub i32 %made, %left
"""


_MOVES = "".join(
    f"""bytes{size}:
  %value{size} = load i{8 * size}, ptr %source, align {size}
  store i{8 * size} %value{size}, ptr %target, align {size}
  ret void
"""
    for size in _SIZES
)

GROUPS = f"""
@fly.stores = internal global [{MOST_COPIES} x [{COPY_BYTES} x i8]] zeroinitializer, align 64
@fly.stores.waiting = internal global i64 0
@fly.elements = internal global [{MOST_THREADS} x {_RING}] zeroinitializer, align 64
@fly.groups = internal global {_COUNTS} zeroinitializer, align 64
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @fly.start_groups() nounwind {{
  %threads = load i64, ptr $threads
  %bytes = mul i64 %threads, 16
  call void @llvm.memset.p0.i64(ptr align 64 @fly.groups, i8 0, i64 %bytes, i1 false)
  store i64 0, ptr @fly.stores.waiting
  ret void
}}

; The number of the group that the thread's next store belongs to.
define internal i32 @fly.store_group() nounwind {{
  %index = load i64, ptr @fly.index
{_count("at", _STORED)}  %group = load i32, ptr %at
  ret i32 %group
}}
{_commit("stores", _STORED)}{_commit("elements", _COPIED)}
; Makes the thread's stores but for the last groups.
define internal void @fly.wait.stores(i32 %left) noinline nounwind {{
entry:
{_upto(_STORED)}  call void @fly.strict.stores(i32 %upto)
  %count = load i64, ptr @fly.stores.waiting
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %n.next, %next ]
  %kept = phi i64 [ 0, %entry ], [ %kept.next, %next ]
  %more = icmp ult i64 %n, %count
  br i1 %more, label %look, label %done
look:
  %record = getelementptr [{COPY_BYTES} x i8], ptr @fly.stores, i64 %n
  %thread.at = getelementptr i8, ptr %record, i64 {THREAD}
  %thread = load i32, ptr %thread.at
  %thread.64 = zext i32 %thread to i64
  %own = icmp eq i64 %thread.64, %index
  %group.at = getelementptr i8, ptr %record, i64 {GROUP}
  %group = load i32, ptr %group.at
  %old = icmp slt i32 %group, %upto
  %ready = and i1 %own, %old
  br i1 %ready, label %make, label %keep
make:
  call void @fly.copy_tile(ptr %record)
  br label %next
keep:
  %to = getelementptr [{COPY_BYTES} x i8], ptr @fly.stores, i64 %kept
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %record, i64 {COPY_BYTES}, i1 false)
  %kept.1 = add i64 %kept, 1
  br label %next
next:
  %kept.next = phi i64 [ %kept, %make ], [ %kept.1, %keep ]
  %n.next = add i64 %n, 1
  br label %loop
done:
  store i64 %kept, ptr @fly.stores.waiting
  ret void
}}

; Makes all stores of the block, in their order.
define internal void @fly.finish_stores() noinline nounwind {{
entry:
  %index = load i64, ptr @fly.index
  %count = load i64, ptr @fly.stores.waiting
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %n.next, %make ]
  %more = icmp ult i64 %n, %count
  br i1 %more, label %make, label %done
make:
  %record = getelementptr [{COPY_BYTES} x i8], ptr @fly.stores, i64 %n
  call void @fly.copy_tile(ptr %record)
  %n.next = add i64 %n, 1
  br label %loop
done:
  store i64 0, ptr @fly.stores.waiting
  store i64 %index, ptr @fly.index
  ret void
}}

; Puts off a copy of elements.
define internal void @fly.element(i64 %to, i64 %from, i32 %bytes, i32 %site) noinline nounwind {{
entry:
  %index = load i64, ptr @fly.index
{_count("group.at", _COPIED)}{_count("first.at", _FIRST)}{_count("end.at", _END)}\
  %group = load i32, ptr %group.at
  %first = load i32, ptr %first.at
  %end = load i32, ptr %end.at
  %held = sub i32 %end, %first
  %full = icmp uge i32 %held, {_ELEMENTS}
  br i1 %full, label %make, label %put
make:
  call void @fly.copy_element(i64 %index, i32 %first)
  %first.1 = add i32 %first, 1
  store i32 %first.1, ptr %first.at
  br label %put
put:
  %n = urem i32 %end, {_ELEMENTS}
  call void @fly.strict.element(i64 %to, i32 %bytes, i32 %group, i32 %site)
  %record = getelementptr {_RING}, ptr @fly.elements, i64 %index, i32 %n
  %a.0 = insertvalue {_ELEMENT} poison, i64 %to, 0
  %a.1 = insertvalue {_ELEMENT} %a.0, i64 %from, 1
  %a.2 = insertvalue {_ELEMENT} %a.1, i32 %bytes, 2
  %a.3 = insertvalue {_ELEMENT} %a.2, i32 %site, 3
  %a.4 = insertvalue {_ELEMENT} %a.3, i32 %group, 4
  store {_ELEMENT} %a.4, ptr %record
  %end.1 = add i32 %end, 1
  store i32 %end.1, ptr %end.at
  ret void
}}

define internal void @fly.copy_element(i64 %index, i32 %number) noinline nounwind {{
entry:
  %n = urem i32 %number, {_ELEMENTS}
  %record = getelementptr {_RING}, ptr @fly.elements, i64 %index, i32 %n
  %all = load {_ELEMENT}, ptr %record
  %to = extractvalue {_ELEMENT} %all, 0
  %from = extractvalue {_ELEMENT} %all, 1
  %bytes = extractvalue {_ELEMENT} %all, 2
  %site = extractvalue {_ELEMENT} %all, 3
  %bytes.64 = zext i32 %bytes to i64
  %below = sub i64 %bytes.64, 1
  call void @fly.write(i64 %to, i64 %bytes.64, i64 %below, i32 %site)
  call void @fly.read(i64 %from, i64 %bytes.64, i64 %below, i32 %site)
  %target = inttoptr i64 %to to ptr
  %source = inttoptr i64 %from to ptr
  switch i32 %bytes, label %bytes16 [ i32 4, label %bytes4
                                      i32 8, label %bytes8 ]
{_MOVES}}}

; Makes the thread's copies of elements but for the last groups.
define internal void @fly.wait.elements(i32 %left) noinline nounwind {{
entry:
{_upto(_COPIED)}{_count("first.at", _FIRST)}{_count("end.at", _END)}\
  call void @fly.strict.elements(i32 %upto)
  %start = load i32, ptr %first.at
  %end = load i32, ptr %end.at
  br label %loop
loop:
  %number = phi i32 [ %start, %entry ], [ %number.next, %make ]
  %more = icmp ne i32 %number, %end
  br i1 %more, label %look, label %done
look:
  %n = urem i32 %number, {_ELEMENTS}
  %group.at = getelementptr {_RING}, ptr @fly.elements, i64 %index, i32 %n, i32 4
  %group = load i32, ptr %group.at
  %old = icmp slt i32 %group, %upto
  br i1 %old, label %make, label %done
make:
  call void @fly.copy_element(i64 %index, i32 %number)
  %number.next = add i32 %number, 1
  br label %loop
done:
  store i32 %number, ptr %first.at
  ret void
}}
"""
