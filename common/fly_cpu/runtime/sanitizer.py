"""What the module has in addition if AddressSanitizer's run-time library watches it.

Whether memory is poisoned is asked in the device's own checks, which know the place in the source:
`fly.ask`. LLVM's pass adds redzones to arrays on the stack only. It could check accesses too, and
add redzones to variables, but the latter have the size of a quarter of the variable: too small
for an index that is wrong by a row. Variables are therefore registered here, with redzones of
REDZONE bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from fly_cpu.state import ENDING, REPORT_BYTES, REPORTED, STACK

REDZONE = 4096  # bytes between variables
# Fibers: the run-time library must not allocate frames by what it knows of the host's threads.
PASS = (
    *("-asan-stack", "-asan-use-after-return=never", "-asan-use-after-scope=0"),
    *("-asan-globals=0", "-asan-instrument-reads=0", "-asan-instrument-writes=0"),
    *("-asan-instrument-atomics=0",),
)
_ROW = "{ i64, i64, i64, ptr, ptr, i64, ptr, i64 }"  # __asan_global

SANITIZER = f"""
@fly_report = protected global [{REPORT_BYTES} x i8] zeroinitializer
@fly_reporter = protected global ptr null  ; a word that all libraries share
declare i32 @sched_yield()
declare ptr @__asan_region_is_poisoned(ptr, i64)
declare void @__asan_loadN_noabort(i64, i64)
declare void @__asan_storeN_noabort(i64, i64)
declare void @__asan_set_error_report_callback(ptr)
declare void @__sanitizer_set_death_callback(ptr)
declare void @__sanitizer_start_switch_fiber(ptr, ptr, i64)
declare void @__sanitizer_finish_switch_fiber(ptr, ptr, ptr)

; Has memory reported that is poisoned. It then is a fault. Addresses of the kernel's half of the
; address space are left to the device's checks.
define internal void @fly.ask(i64 %address, i64 %size, i32 %site, i1 %write) noinline nounwind {{
entry:
  %p = inttoptr i64 %address to ptr
  %user = icmp ult i64 %address, {1 << 47}
  br i1 %user, label %ask, label %done
ask:
  %bad = call ptr @__asan_region_is_poisoned(ptr %p, i64 %size)
  %fine = icmp eq ptr %bad, null
  br i1 %fine, label %done, label %poisoned
poisoned:
  ; As in the library's own memcpy: it would not find the kind of error further behind.
  %long = icmp ugt i64 %size, 16
  %bad.64 = ptrtoint ptr %bad to i64
  %from = select i1 %long, i64 %bad.64, i64 %address
  call void @fly.report(i64 %address, i64 %size, i32 %site, i1 %write, i64 %from)
  unreachable
done:
  ret void
}}

define internal void @fly.report(i64 %address, i64 %size, i32 %site, i1 %write, i64 %from)
    noinline noreturn nounwind cold {{
entry:
  %kept = alloca ptr
  %bottom = alloca ptr
  %length = alloca i64
  %lock = load ptr, ptr @fly_reporter
  br label %take
take:
  ; The callbacks are the process's: one thread reports at a time.
  %pair = cmpxchg ptr %lock, i64 0, i64 1 acquire monotonic
  %taken = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %taken, label %begin, label %wait
wait:
  %yielded = call i32 @sched_yield()
  br label %take
begin:
  ; For `fly.ending`.
  store i64 {REPORTED}, ptr $kind
  store i64 %address, ptr $address
  store i64 %size, ptr $size
  %site.64 = zext i32 %site to i64
  store i64 %site.64, ptr $site
  %index = load i64, ptr @fly.index
  store i64 %index, ptr $thread
  store i8 0, ptr @fly_report
  call void @__asan_set_error_report_callback(ptr @fly.keep)
  call void @__sanitizer_set_death_callback(ptr @fly.ending)
  ; The report describes arrays on the fiber's stack if that passes for the host thread's.
  %f = load ptr, ptr @fly.current
  %stack.at = getelementptr i8, ptr %f, i64 $_stack
  %stack = load ptr, ptr %stack.at
  call void @__sanitizer_start_switch_fiber(ptr %kept, ptr %stack, i64 {STACK})
  %fake = load ptr, ptr %kept
  call void @__sanitizer_finish_switch_fiber(ptr %fake, ptr %bottom, ptr %length)
  br i1 %write, label %store, label %load
store:
  call void @__asan_storeN_noabort(i64 %from, i64 %size)
  br label %reported
load:
  call void @__asan_loadN_noabort(i64 %from, i64 %size)
  br label %reported
reported:
  ; Only with halt_on_error=0.
  %host = load ptr, ptr %bottom
  %host.size = load i64, ptr %length
  call void @__sanitizer_start_switch_fiber(ptr %kept, ptr %host, i64 %host.size)
  %fake.1 = load ptr, ptr %kept
  call void @__sanitizer_finish_switch_fiber(ptr %fake.1, ptr null, ptr null)
  call void @__asan_set_error_report_callback(ptr null)
  call void @__sanitizer_set_death_callback(ptr null)
  store atomic i64 0, ptr %lock release, align 8
  call void @fly.fault(i64 {REPORTED}, i64 %address, i64 %size, i32 %site)
  unreachable
}}

; The beginning of a report, in which Python finds the kind of error. The buffer is larger.
define internal void @fly.keep(ptr %text) nounwind {{
  call void @llvm.memcpy.p0.p0.i64(ptr @fly_report, ptr %text, i64 {REPORT_BYTES - 1}, i1 false)
  ret void
}}

; AddressSanitizer ends the process: Python says where the kernel was.
define internal void @fly.ending() nounwind {{
  call void @fly.leave(i64 {ENDING})
  ret void
}}
"""


def padded(kind: str) -> str:
    """The type of a variable with its redzone. Its size is a multiple of 8."""
    return f"{{ {kind}, [{REDZONE} x i8], i64 }}"


def registration(rows: Sequence[tuple[str, str, int]]) -> str:
    """Makes variables known while the library is loaded. Each is a name, its type without the
    redzone, and its address space."""
    if not rows:
        return ""
    texts = []
    names = []
    for number, (name, kind, space) in enumerate(rows):
        label = name[1:].strip('"').encode() + b"\0"
        text = "".join(f"\\{byte:02X}" for byte in label)
        texts.append(f'@fly.name.{number} = internal constant [{len(label)} x i8] c"{text}"')
        sizes = [
            f"i64 ptrtoint (ptr getelementptr ({one}, ptr null, i32 1) to i64)"
            for one in (kind, padded(kind))
        ]
        names.append(
            f"{_ROW} {{ i64 ptrtoint (ptr addrspace({space}) {name} to i64), {', '.join(sizes)},"
            f" ptr @fly.name.{number}, ptr @fly.module, i64 0, ptr null, i64 -1 }}"
        )
    module = b"kernels\0"
    return "\n".join(
        [
            *texts,
            f'@fly.module = internal constant [{len(module)} x i8] c"kernels\\00"',
            f"@fly.globals = internal global [{len(rows)} x {_ROW}] [{', '.join(names)}]",
            "declare void @__asan_register_globals(ptr, i64)",
            "declare void @__asan_unregister_globals(ptr, i64)",
            *(
                f"define internal void @fly.{way}() nounwind {{\n"
                f"  call void @__asan_{way}_globals(ptr @fly.globals, i64 {len(rows)})\n"
                "  ret void\n}\n"
                f"@llvm.global_{when} = appending global [1 x {{ i32, ptr, ptr }}]"
                f" [{{ i32, ptr, ptr }} {{ i32 65535, ptr @fly.{way}, ptr null }}]"
                for way, when in (("register", "ctors"), ("unregister", "dtors"))
            ),
        ]
    )
