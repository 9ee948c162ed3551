"""Strict mode: races on shared memory, found by what happens before what.

Each warp has a vector clock, and so have barriers and mbarriers. An access is a pair of an *agent*
and its clock. It happened before what a warp does now if the warp's vector clock is that far for
the agent; two accesses to the same bytes, one of them a write, of which neither happened before the
other are a race. Agents are warps; and, since what they started is not done when they go on,

    the copies by cp.async of a warp       done for those that waited for their group
    the stores by TMA of a warp            the same: they read
    the products of a warp group           the same: wgmma reads
    the loads by TMA with an mbarrier      done for those that waited for its phase

An access counts from when it is issued. Eight accesses are kept for each eight bytes, and older
ones make room, so that a race may be missed; none is reported that is none. A cluster's blocks see
each other's accesses, and their mbarriers and the cluster's barrier order those of all of them,
whatever the scope of an arrival (`runtime.vector_clocks`). Threads of a warp count
as one agent: races among them are not found. Atomic operations order everything before them and
after them. Proxies (`fence_async`) are not watched.

Sources: C. Flanagan, S. Freund, "FastTrack" (PLDI 2009); ThreadSanitizer's shadow cells (K.
Serebryany, T. Iskhodzhanov, WBIA 2009); PTX ISA 8.8, "Memory Consistency Model".
"""

from __future__ import annotations

from itertools import product

from fly_cpu.runtime.orders import ORDERS
from fly_cpu.runtime.vector_clocks import VECTOR_CLOCKS
from fly_cpu.state import MOST_THREADS, RACE

_SLOTS, _ROWS = 8, 1 << 16
THREAD_BITS = 10  # of a thread's number in its block, of what a fault tells of the other thread
assert MOST_THREADS <= 1 << THREAD_BITS
_ROW = f"[{2 + 2 * _SLOTS} x i64]"  # key, next victim, slots: clock and place; bytes, kind, agent

# Functions that do nothing unless launches are strict, and the types of their parameters.
_HOOKS = {
    "start": ("void", ""),
    "arrive": ("i32", "i32"),
    "leave": ("void", "i32, i32"),
    "next": ("void", "i32"),
    "mbarrier.arrive": ("void", "i64"),
    "mbarrier.leave": ("void", "i64, i32"),
    "element": ("void", "i64, i32, i32, i32"),
    "elements": ("void", "i32"),
    "tile": ("void", "ptr, i64, i64, i32, i32"),
    "stores": ("void", "i32"),
    "product": ("void", "i64, i64, i32"),
    "commit": ("void", ""),
    "products": ("void", "i32"),
    "atomic": ("void", ""),
    "meet": ("void", "i64"),
    "met": ("void", "i64"),
}

NOT_STRICT = "".join(
    f"define internal {result} @fly.strict.{name}({given}) alwaysinline nounwind {{\n"
    f"  ret {'void' if result == 'void' else 'i32 0'}\n}}\n"
    for name, (result, given) in _HOOKS.items()
)
# Checks of accesses to shared memory, and of those that may be.
_SHARED = """
define internal void @fly.{way}.{name}(i64 %at, i64 %size, i64 %low, i32 %site)
    {inline} nounwind {{
  call void @fly.{way}(i64 %at, i64 %size, i64 %low, i32 %site)
{access}  ret void
}}
"""


def shared_checks(strict: bool) -> str:
    """`fly.read.shared` and `fly.write.shared`; in strict mode the same `.generic`."""
    text = ""
    kinds = {"shared": "plain", "generic": "generic"} if strict else {"shared": ""}
    for way, (name, hook) in product(("read", "write"), kinds.items()):
        flag = "true" if way == "write" else "false"
        access = f"  call void @fly.strict.{hook}(i64 %at, i64 %size, i1 {flag}, i32 %site)\n"
        inline = "noinline" if strict else "alwaysinline"
        text += _SHARED.format(way=way, name=name, access=access if strict else "", inline=inline)
    return text


_ACCESSES = f"""
@fly.strict.rows = internal global [{_ROWS} x {_ROW}] zeroinitializer, align 64

define internal void @fly.strict.plain(i64 %at, i64 %bytes, i1 %write, i32 %site) nounwind {{
  call void @fly.strict.of_warp(i64 %at, i64 %bytes, i1 %write, i32 %site, i64 0)
  ret void
}}

; An access by a pointer that may be one to shared memory, of any block of the cluster.
define internal void @fly.strict.generic(i64 %at, i64 %bytes, i1 %write, i32 %site)
    noinline nounwind {{
entry:
  %rank = call i64 @fly.strict.owner(i64 %at)
  %none = icmp slt i64 %rank, 0
  br i1 %none, label %done, label %shared
shared:
  %far = call i64 @fly.strict.far(i64 %rank)
  call void @fly.strict.of_warp(i64 %at, i64 %bytes, i1 %write, i32 %site, i64 %far)
  br label %done
done:
  ret void
}}

define internal void @fly.strict.of_warp(i64 %at, i64 %bytes, i1 %write, i32 %site, i64 %far)
    nounwind {{
  %warp = call i64 @fly.strict.warp()
  %own = call ptr @fly.strict.own()
  %clock.at = getelementptr i32, ptr %own, i64 %warp
  %clock = load i32, ptr %clock.at
  call void @fly.strict.access(i64 %at, i64 %bytes, i1 %write, i64 %warp, i32 %clock, i32 %site,
    i64 %far)
  ret void
}}

; Compares an access with those before, and keeps it. %far is the distance to the library of the
; block whose memory it is.
define internal void @fly.strict.access(i64 %at, i64 %bytes, i1 %write, i64 %agent, i32 %clock,
    i32 %site, i64 %far) noinline nounwind {{
entry:
  %rows = getelementptr i8, ptr @fly.strict.rows, i64 %far
  %generation.at = getelementptr i8, ptr @fly.strict.generation, i64 %far
  %own = call ptr @fly.strict.own()
  %index = load i64, ptr @fly.index
  %kind = select i1 %write, i64 512, i64 256
  %first = lshr i64 %at, 3
  %end = add i64 %at, %bytes
  %clock.64 = zext i32 %clock to i64
  %site.64 = zext i32 %site to i64
  %site.up = shl i64 %site.64, 32
  %word.0 = or i64 %site.up, %clock.64
  %agent.up = shl i64 %agent, 16
  ; Of this thread in the cluster.
  %rank = load i64, ptr $rank
  %rank.up = shl i64 %rank, {THREAD_BITS}
  %thread = or i64 %rank.up, %index
  %index.up = shl i64 %thread, 32
  %word.a = or i64 %agent.up, %index.up
  %word.b = or i64 %word.a, %kind
  %generation = load i64, ptr %generation.at
  %generation.up = shl i64 %generation, 46
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %done, label %granule
granule:
  %g = phi i64 [ %first, %entry ], [ %g.next, %put ]
  %low = shl i64 %g, 3
  %from = call i64 @llvm.umax.i64(i64 %at, i64 %low)
  %high = add i64 %low, 8
  %to = call i64 @llvm.umin.i64(i64 %end, i64 %high)
  %skipped = sub i64 %from, %low
  %touched = sub i64 %to, %from
  %power = shl i64 1, %touched
  %ones = sub i64 %power, 1
  %mask = shl i64 %ones, %skipped
  %rest = xor i64 %mask, 255
  %place = and i64 %g, {_ROWS - 1}
  %row = getelementptr {_ROW}, ptr %rows, i64 %place
  %key = xor i64 %g, %generation.up
  %held = load i64, ptr %row
  %same = icmp eq i64 %held, %key
  br i1 %same, label %slots, label %fresh
fresh:
  call void @llvm.memset.p0.i64(ptr %row, i8 0, i64 {16 + 16 * _SLOTS}, i1 false)
  store i64 %key, ptr %row
  br label %slots
slots:
  br label %slot
slot:
  %s = phi i64 [ 0, %slots ], [ %s.next, %next ]
  %free = phi i64 [ {_SLOTS}, %slots ], [ %free.next, %next ]
  %s.twice = shl i64 %s, 1
  %s.place = add i64 %s.twice, 2
  %slot.at = getelementptr i64, ptr %row, i64 %s.place
  %slot.at.1 = getelementptr i8, ptr %slot.at, i64 8
  %its.0 = load i64, ptr %slot.at
  %its.1 = load i64, ptr %slot.at.1
  %its.mask = and i64 %its.1, 255
  %empty = icmp eq i64 %its.mask, 0
  br i1 %empty, label %vacant, label %look
look:
  %its.write.bit = and i64 %its.1, 512
  %its.write = icmp ne i64 %its.write.bit, 0
  %its.down = lshr i64 %its.1, 16
  %its.agent = and i64 %its.down, 65535
  %its.clock = trunc i64 %its.0 to i32
  %known.at = getelementptr i32, ptr %own, i64 %its.agent
  %known = load i32, ptr %known.at
  %ordered = icmp ule i32 %its.clock, %known
  %apart = xor i1 %ordered, true
  %common = and i64 %its.mask, %mask
  %meet = icmp ne i64 %common, 0
  %conflict = or i1 %write, %its.write
  %race.1 = and i1 %meet, %conflict
  %race = and i1 %race.1, %apart
  br i1 %race, label %bad, label %replace
replace:
  ; This access stands for one before it, of no more bytes, with which less conflicts.
  %beyond = and i64 %its.mask, %rest
  %covered = icmp eq i64 %beyond, 0
  %its.read = xor i1 %its.write, true
  %stronger = or i1 %write, %its.read
  %gone.1 = and i1 %ordered, %covered
  %gone = and i1 %gone.1, %stronger
  br i1 %gone, label %drop, label %next
drop:
  store i64 0, ptr %slot.at.1
  br label %vacant
vacant:
  br label %next
next:
  %free.next = phi i64 [ %free, %replace ], [ %s, %vacant ]
  %s.next = add i64 %s, 1
  %s.more = icmp ult i64 %s.next, {_SLOTS}
  br i1 %s.more, label %slot, label %choose
choose:
  %full = icmp eq i64 %free.next, {_SLOTS}
  br i1 %full, label %evict, label %put
evict:
  %turn.at = getelementptr i8, ptr %row, i64 8
  %turn = load i64, ptr %turn.at
  %turn.next = add i64 %turn, 1
  store i64 %turn.next, ptr %turn.at
  %victim = and i64 %turn, {_SLOTS - 1}
  br label %put
put:
  %n = phi i64 [ %free.next, %choose ], [ %victim, %evict ]
  %n.twice = shl i64 %n, 1
  %n.place = add i64 %n.twice, 2
  %put.at = getelementptr i64, ptr %row, i64 %n.place
  store i64 %word.0, ptr %put.at
  %put.at.1 = getelementptr i8, ptr %put.at, i64 8
  %word.1 = or i64 %word.b, %mask
  store i64 %word.1, ptr %put.at.1
  %g.next = add i64 %g, 1
  %g.low = shl i64 %g.next, 3
  %more = icmp ult i64 %g.low, %end
  br i1 %more, label %granule, label %done
bad:
  ; What is told of both: bytes, which wrote, the other's thread and place.
  %its.site = lshr i64 %its.0, 32
  store i64 %its.site, ptr $waiting
  %its.index = lshr i64 %its.1, 32
  %its.index.up = shl i64 %its.index, 34
  %write.64 = zext i1 %write to i64
  %write.up = shl i64 %write.64, 32
  %its.write.64 = zext i1 %its.write to i64
  %its.write.up = shl i64 %its.write.64, 33
  %told.1 = or i64 %bytes, %its.index.up
  %told.2 = or i64 %told.1, %write.up
  %told = or i64 %told.2, %its.write.up
  call void @fly.fault(i64 {RACE}, i64 %from, i64 %told, i32 %site)
  unreachable
done:
  ret void
}}
"""

STRICT = VECTOR_CLOCKS + _ACCESSES + ORDERS
