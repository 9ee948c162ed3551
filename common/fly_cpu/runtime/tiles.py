"""Copies of tiles by TMA. A load is put off until the threads of the block wait or give way, and a
store until its thread waits for its group (`runtime.groups`), so that code that reads a tile too
early, or writes one again too early, has other results.

Source: PTX ISA 8.8, "Tensors", "cp.async.bulk.tensor". The form of a map is that of
`fly_cpu.tensor_maps`.
"""

from __future__ import annotations

from fly_cpu import tensor_maps as form
from fly_cpu.state import KINDS, MOST_COPIES

# A copy that waits: the map, which may be a parameter on the thread's stack, and behind it shared
# memory, mbarrier, place in the code, thread, group of stores, coordinates.
COPY_BYTES = 256
_SHARED, _BARRIER, _SITE, THREAD, GROUP, _AT = 128, 136, 144, 152, 156, 160


def _field(name: str, offset: int, kind: str) -> str:
    return (
        f"  %{name}.at = getelementptr i8, ptr %map, i64 {offset}\n"
        f"  %{name} = load {kind}, ptr %{name}.at, align 1\n"
    )


def _element() -> str:
    """Splits the number of an element of the box into coordinates, and finds its address."""
    text = ""
    rest = "%e"
    for mode in range(form.MOST_MODES):
        text += f"""  %i{mode} = urem i64 {rest}, %box{mode}.64
  %r{mode} = udiv i64 {rest}, %box{mode}.64
  %x{mode} = add i64 %i{mode}, %c{mode}.64
  %in{mode} = icmp ult i64 %x{mode}, %extent{mode}
"""
        rest = f"%r{mode}"
    text += "  %far0 = mul i64 %x0, %size.64\n"
    for mode in range(1, form.MOST_MODES):
        text += f"""  %step{mode} = mul i64 %x{mode}, %stride{mode}
  %far{mode} = add i64 %far{mode - 1}, %step{mode}
  %all{mode} = and i1 %{"in0" if mode == 1 else f"all{mode - 1}"}, %in{mode}
"""
    return text


_LAST = form.MOST_MODES - 1
_COORDINATES = ", ".join(f"i32 %c{mode}" for mode in range(form.MOST_MODES))

_MODES = range(form.MOST_MODES)
# Stores, and loads, the coordinates of a copy that waits.
_PUT = "".join(
    f"""  %at.c{mode} = getelementptr i8, ptr %record, i64 {_AT + 4 * mode}
  store i32 %c{mode}, ptr %at.c{mode}
"""
    for mode in _MODES
)
_GET = "".join(
    f"""  %c{mode}.at = getelementptr i8, ptr %map, i64 {_AT + 4 * mode}
  %c{mode} = load i32, ptr %c{mode}.at
  %c{mode}.64 = sext i32 %c{mode} to i64
"""
    for mode in _MODES
)
_MAP = "".join(
    (
        _field("mark", form.MARK, "i32"),
        _field("base", form.ADDRESS, "i64"),
        _field("size", form.SIZE, "i32"),
        _field("swizzle", form.SWIZZLE, "i32"),
        _field("rounded", form.ROUNDED, "i32"),
        *(_field(f"extent{mode}", form.EXTENTS + 8 * mode, "i64") for mode in _MODES),
        *(_field(f"stride{mode}", form.STRIDES + 8 * (mode - 1), "i64") for mode in _MODES[1:]),
        *(_field(f"box{mode}", form.BOX + 4 * mode, "i32") for mode in _MODES),
    )
)
_BOXES = "".join(f"  %box{mode}.64 = zext i32 %box{mode} to i64\n" for mode in _MODES)

TILES = f"""
@fly.copies = internal global [{MOST_COPIES} x [{COPY_BYTES} x i8]] zeroinitializer, align 64
@fly.copies.waiting = internal global i64 0

; Puts off a copy. %barrier is 0 for one to global memory.
define internal void @fly.tile(ptr %map, i64 %shared, {_COORDINATES}, i64 %barrier, i32 %site)
    noinline nounwind {{
entry:
  %stores = icmp eq i64 %barrier, 0
  %queue = select i1 %stores, ptr @fly.stores, ptr @fly.copies
  %waiting = select i1 %stores, ptr @fly.stores.waiting, ptr @fly.copies.waiting
  %before = load i64, ptr %waiting
  %full = icmp uge i64 %before, {MOST_COPIES}
  br i1 %full, label %flush, label %put
flush:
  call void @fly.finish_copies()
  br label %put
put:
  %number = load i64, ptr %waiting
  %record = getelementptr [{COPY_BYTES} x i8], ptr %queue, i64 %number
  call void @llvm.memcpy.p0.p0.i64(ptr %record, ptr %map, i64 {form.BYTES}, i1 false)
  %at.1 = getelementptr i8, ptr %record, i64 {_SHARED}
  store i64 %shared, ptr %at.1
  %at.2 = getelementptr i8, ptr %record, i64 {_BARRIER}
  store i64 %barrier, ptr %at.2
  %at.3 = getelementptr i8, ptr %record, i64 {_SITE}
  store i32 %site, ptr %at.3
  %index = load i64, ptr @fly.index
  %index.32 = trunc i64 %index to i32
  %at.4 = getelementptr i8, ptr %record, i64 {THREAD}
  store i32 %index.32, ptr %at.4
  %group = call i32 @fly.store_group()
  %at.5 = getelementptr i8, ptr %record, i64 {GROUP}
  store i32 %group, ptr %at.5
  call void @fly.strict.tile(ptr %map, i64 %shared, i64 %barrier, i32 %group, i32 %site)
{_PUT}  %after = add i64 %number, 1
  store i64 %after, ptr %waiting
  ret void
}}

; Makes the loads that were put off, in their order. Whether there were any.
define internal i1 @fly.make_copies() noinline nounwind {{
entry:
  %index = load i64, ptr @fly.index
  %count = load i64, ptr @fly.copies.waiting
  %some = icmp ne i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %n = phi i64 [ 0, %entry ], [ %n.next, %loop ]
  %record = getelementptr [{COPY_BYTES} x i8], ptr @fly.copies, i64 %n
  call void @fly.copy_tile(ptr %record)
  %n.next = add i64 %n, 1
  %more = icmp ult i64 %n.next, %count
  br i1 %more, label %loop, label %clear
clear:
  store i64 0, ptr @fly.copies.waiting
  store i64 %index, ptr @fly.index
  br label %done
done:
  ret i1 %some
}}

define internal void @fly.finish_copies() nounwind {{
  %any = call i1 @fly.make_copies()
  call void @fly.finish_stores()
  ret void
}}

; Rounds to a fraction of 10 bits, to nearest even. Infinity stays, and NaN becomes one NaN: what an
; H200 made of these.
define internal void @fly.round_to_tf32(ptr %at) nounwind {{
  %x = load i32, ptr %at
  %last.13 = lshr i32 %x, 13
  %last = and i32 %last.13, 1
  %half = add i32 %x, 4095
  %more = add i32 %half, %last
  %kept = and i32 %more, -8192
  %magnitude = and i32 %x, 2147483647
  %finite = icmp ult i32 %magnitude, 2139095040
  %nan = icmp ugt i32 %magnitude, 2139095040
  %special = select i1 %nan, i32 2147475456, i32 %x
  %made = select i1 %finite, i32 %kept, i32 %special
  store i32 %made, ptr %at
  ret void
}}

define internal void @fly.copy_tile(ptr %map) noinline nounwind {{
entry:
  %shared.at = getelementptr i8, ptr %map, i64 {_SHARED}
  %shared = load i64, ptr %shared.at
  %barrier.at = getelementptr i8, ptr %map, i64 {_BARRIER}
  %barrier = load i64, ptr %barrier.at
  %site.at = getelementptr i8, ptr %map, i64 {_SITE}
  %site = load i32, ptr %site.at
  %thread.at = getelementptr i8, ptr %map, i64 {THREAD}
  %thread = load i32, ptr %thread.at
  %thread.64 = zext i32 %thread to i64
  store i64 %thread.64, ptr @fly.index
{_GET}{_MAP}  %is.map = icmp eq i32 %mark, {form.MAGIC}
  br i1 %is.map, label %known, label %unknown
unknown:
  %map.64 = ptrtoint ptr %map to i64
  call void @fly.fault(i64 {KINDS.index("map")}, i64 %map.64, i64 0, i32 %site)
  unreachable
known:
{_BOXES}  %n1 = mul i64 %box0.64, %box1.64
  %n2 = mul i64 %n1, %box2.64
  %n3 = mul i64 %n2, %box3.64
  %total = mul i64 %n3, %box4.64
  %size.64 = zext i32 %size to i64
  %bytes = mul i64 %total, %size.64
  %swizzle.64 = zext i32 %swizzle to i64
  %swizzles = icmp ne i32 %swizzle, 0
  %row = select i1 %swizzles, i64 %swizzle.64, i64 16
  %below = sub i64 %row, 1
  %mask = and i64 %below, -16
  %loads = icmp ne i64 %barrier, 0
  %rounds = icmp ne i32 %rounded, 0
  ; Shared memory begins at a multiple of 128 bytes.
  br i1 %loads, label %check.write, label %check.read
check.write:
  call void @fly.write(i64 %shared, i64 %bytes, i64 127, i32 %site)
  br label %loop
check.read:
  call void @fly.read(i64 %shared, i64 %bytes, i64 127, i32 %site)
  br label %loop
loop:
  %e = phi i64 [ 0, %check.write ], [ 0, %check.read ], [ %e.next, %next ]
{_element()}  %address = add i64 %base, %far{_LAST}
  %place = mul i64 %e, %size.64
  %plain = add i64 %shared, %place
  %moved = lshr i64 %plain, 3
  %bits = and i64 %moved, %mask
  %there = xor i64 %plain, %bits
  %s = inttoptr i64 %there to ptr
  %g = inttoptr i64 %address to ptr
  br i1 %all{_LAST}, label %inside, label %outside
inside:
  br i1 %loads, label %load, label %store
load:
  call void @fly.read(i64 %address, i64 %size.64, i64 0, i32 %site)
  call void @llvm.memcpy.p0.p0.i64(ptr %s, ptr %g, i64 %size.64, i1 false)
  br i1 %rounds, label %round, label %next
round:
  call void @fly.round_to_tf32(ptr %s)
  br label %next
store:
  call void @fly.write(i64 %address, i64 %size.64, i64 0, i32 %site)
  call void @llvm.memcpy.p0.p0.i64(ptr %g, ptr %s, i64 %size.64, i1 false)
  br label %next
outside:
  br i1 %loads, label %zero, label %next
zero:
  call void @llvm.memset.p0.i64(ptr %s, i8 0, i64 %size.64, i1 false)
  br label %next
next:
  %e.next = add i64 %e, 1
  %more = icmp ult i64 %e.next, %total
  br i1 %more, label %loop, label %end
end:
  br i1 %loads, label %tell, label %done
tell:
  %came = sub i64 0, %bytes
  %unused = call i64 @fly.mbarrier.count(i64 %barrier, i64 0, i64 %came, i32 %site)
  br label %done
done:
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
