"""The shadow memory, and the functions that the instrumented code calls.

A granule of shared memory has three entries of 64 bits: its last writer, its last reader, and an
earlier reader of another wave. An entry says who accessed it, and when:

    bits 44–63   the block, of those that share this shadow memory
    bits 24–43   the epoch: one more than the barriers that the thread has passed; 0: no access
    bits 14–23   the thread's number in its block
    bits  2–13   the access, of those of its kernel
    bit   1      ALIKE: the store did not change what an earlier one of the epoch had stored
    bit   0      ATOMIC

Two entries conflict if block and epoch are equal, and the waves are not. Each access first puts its
own entry in place and then looks at those of others, in sequentially consistent order: of two
accesses at the same time at least one sees the other.
"""

from __future__ import annotations

ENTRY, PER_GRANULE = 8, 3 * 8
ATOMIC, ALIKE = 1, 2
ACCESS_AT, THREAD_AT, EPOCH_AT, BLOCK_AT = 2, 14, 24, 44
MOST_ACCESSES = 1 << (THREAD_AT - ACCESS_AT)
BLOCKS = (1 << (64 - BLOCK_AT)) - 1
SHADOW = "fly_sanitize_shadow"
LOADED, STORED, UPDATED = "fly_sanitize_loaded", "fly_sanitize_stored", "fly_sanitize_updated"
CHECK = "fly_sanitize_check"
FUNCTIONS = (LOADED, STORED, UPDATED, CHECK)

_ARGUMENTS = "%block: !llvm.ptr<1>, %first: i64, %count: i64, %me: i64, %sites: i32"


def functions(granules: int, nbytes: int, wave: int, scope: str) -> str:
    """The functions, for `granules` granules of `nbytes` bytes in a block and waves of `wave`
    threads. Each takes the block's shadow memory, the first granule, their count, the entry of the
    access, and the number of the kernel's first access among all sites. A store also says
    whether it changes nothing."""
    order = f'syncscope("{scope}") seq_cst'
    load = f"atomic {order} {{alignment = 8 : i64}}"
    wave_at = THREAD_AT + wave.bit_length() - 1
    return f"""
llvm.func @fly_report(i32, i64, i64, i64, i64)
{_check(nbytes, wave_at)}
{
        _loop(
            LOADED,
            _ARGUMENTS,
            granules,
            f'''
  %old = llvm.atomicrmw xchg %at.reader, %me {order} : !llvm.ptr<1>, i64
  %difference = llvm.xor %old, %me : i64
  %when = llvm.lshr %difference, %epoch.at : i64
  %now = llvm.icmp "eq" %when, %zero : i64
  %who = llvm.lshr %difference, %wave.at : i64
  %other = llvm.icmp "ne" %who, %zero : i64
  %keep = llvm.and %now, %other : i1
  llvm.cond_br %keep, ^keep, ^look
^keep:
  llvm.store %old, %at.second {load} : i64, !llvm.ptr<1>
  llvm.br ^look
^look:
  %writer = llvm.load %at.writer {load} : !llvm.ptr<1> -> i64
  %alike.bit = llvm.and %writer, %alike : i64
  %excused = llvm.icmp "ne" %alike.bit, %zero : i64
  llvm.call @{CHECK}(%writer, %me, %n, %sites, %excused) : (i64, i64, i64, i32, i1) -> ()
  llvm.br ^next''',
            wave_at,
        )
    }
{
        _loop(
            STORED,
            _ARGUMENTS + ", %same: i1",
            granules,
            f'''
  %old = llvm.atomicrmw xchg %at.writer, %me {order} : !llvm.ptr<1>, i64
  %difference = llvm.xor %old, %me : i64
  %when = llvm.lshr %difference, %epoch.at : i64
  %now = llvm.icmp "eq" %when, %zero : i64
  %mark = llvm.and %now, %same : i1
  llvm.cond_br %mark, ^mark, ^look
^mark:
  %marked = llvm.or %me, %alike : i64
  llvm.store %marked, %at.writer {load} : i64, !llvm.ptr<1>
  llvm.br ^look
^look:
  llvm.call @{CHECK}(%old, %me, %n, %sites, %same) : (i64, i64, i64, i32, i1) -> ()
  %reader = llvm.load %at.reader {load} : !llvm.ptr<1> -> i64
  llvm.call @{CHECK}(%reader, %me, %n, %sites, %same) : (i64, i64, i64, i32, i1) -> ()
  %second = llvm.load %at.second {load} : !llvm.ptr<1> -> i64
  llvm.call @{CHECK}(%second, %me, %n, %sites, %same) : (i64, i64, i64, i32, i1) -> ()
  llvm.br ^next''',
            wave_at,
        )
    }
{
        _loop(
            UPDATED,
            _ARGUMENTS,
            granules,
            f'''
  %old = llvm.atomicrmw xchg %at.writer, %me {order} : !llvm.ptr<1>, i64
  %atomic.bit = llvm.and %old, %atomic : i64
  %excused = llvm.icmp "ne" %atomic.bit, %zero : i64
  llvm.call @{CHECK}(%old, %me, %n, %sites, %excused) : (i64, i64, i64, i32, i1) -> ()
  %never = llvm.mlir.constant(false) : i1
  %reader = llvm.load %at.reader {load} : !llvm.ptr<1> -> i64
  llvm.call @{CHECK}(%reader, %me, %n, %sites, %never) : (i64, i64, i64, i32, i1) -> ()
  %second = llvm.load %at.second {load} : !llvm.ptr<1> -> i64
  llvm.call @{CHECK}(%second, %me, %n, %sites, %never) : (i64, i64, i64, i32, i1) -> ()
  llvm.br ^next''',
            wave_at,
        )
    }
"""


def _loop(name: str, arguments: str, granules: int, body: str, wave_at: int) -> str:
    """A function that does `body` for each granule of an access that has shadow memory."""
    return f"""
llvm.func internal @{name}({arguments}) attributes {{no_inline}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %atomic = llvm.mlir.constant({ATOMIC} : i64) : i64
  %alike = llvm.mlir.constant({ALIKE} : i64) : i64
  %wave.at = llvm.mlir.constant({wave_at} : i64) : i64
  %epoch.at = llvm.mlir.constant({EPOCH_AT} : i64) : i64
  %size = llvm.mlir.constant({PER_GRANULE} : i64) : i64
  %granules = llvm.mlir.constant({granules} : i64) : i64
  %end = llvm.add %first, %count : i64
  llvm.br ^head(%first : i64)
^head(%n: i64):
  %more = llvm.icmp "slt" %n, %end : i64
  llvm.cond_br %more, ^inside, ^done
^inside:
  %known = llvm.icmp "ult" %n, %granules : i64
  llvm.cond_br %known, ^body, ^next
^body:
  %offset = llvm.mul %n, %size : i64
  %at.writer = llvm.getelementptr %block[%offset] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %at.reader = llvm.getelementptr %at.writer[{ENTRY}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  %at.second = llvm.getelementptr %at.writer[{2 * ENTRY}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
{body}
^next:
  %following = llvm.add %n, %one : i64
  llvm.br ^head(%following : i64)
^done:
  llvm.return
}}"""


def _check(nbytes: int, wave_at: int) -> str:
    """Reports if an entry conflicts with that of the access, unless the access is excused."""
    return f"""
llvm.func internal @{CHECK}(%other: i64, %me: i64, %n: i64, %sites: i32, %excused: i1)
    attributes {{no_inline}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %wave.at = llvm.mlir.constant({wave_at} : i64) : i64
  %epoch.at = llvm.mlir.constant({EPOCH_AT} : i64) : i64
  %difference = llvm.xor %other, %me : i64
  %when = llvm.lshr %difference, %epoch.at : i64
  %now = llvm.icmp "eq" %when, %zero : i64
  %who = llvm.lshr %difference, %wave.at : i64
  %apart = llvm.icmp "ne" %who, %zero : i64
  %conflict = llvm.and %now, %apart : i1
  %true = llvm.mlir.constant(true) : i1
  %counts = llvm.xor %excused, %true : i1
  %race = llvm.and %conflict, %counts : i1
  llvm.cond_br %race, ^report, ^done
^report:
  %access.at = llvm.mlir.constant({ACCESS_AT} : i64) : i64
  %accesses = llvm.mlir.constant({MOST_ACCESSES - 1} : i64) : i64
  %thread.at = llvm.mlir.constant({THREAD_AT} : i64) : i64
  %threads = llvm.mlir.constant({(1 << (EPOCH_AT - THREAD_AT)) - 1} : i64) : i64
  %nbytes = llvm.mlir.constant({nbytes} : i64) : i64
  %my.bits = llvm.lshr %me, %access.at : i64
  %my.access = llvm.and %my.bits, %accesses : i64
  %my.number = llvm.trunc %my.access : i64 to i32
  %my.site = llvm.add %sites, %my.number : i32
  %other.bits = llvm.lshr %other, %access.at : i64
  %other.access = llvm.and %other.bits, %accesses : i64
  %base = llvm.zext %sites : i32 to i64
  %other.site = llvm.add %base, %other.access : i64
  %thread.bits = llvm.lshr %other, %thread.at : i64
  %thread = llvm.and %thread.bits, %threads : i64
  %byte = llvm.mul %n, %nbytes : i64
  llvm.call @fly_report(%my.site, %other.site, %thread, %byte, %zero)
    : (i32, i64, i64, i64, i64) -> ()
  llvm.br ^done
^done:
  llvm.return
}}"""
