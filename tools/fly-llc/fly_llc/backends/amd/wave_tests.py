"""Tests for a workgroup's first wave, on a scalar register: `v_readfirstlane`, `s_cmp`.

The first wave of a workgroup often does what is left of a reduction: `if tid // 64 == 0`. LLVM
knows that all lanes of a wave go one way there, but computes the test of LLVM IR as it stands:

    %wave = lshr i32 %tid, 6
    %first = icmp eq i32 %wave, 0

The number of the wave then keeps a vector register up to the test, also where its other users, such
as the addresses of partial sums, need it no more. Here the number of the first lane's thread is
compared instead. This costs no vector register where `%tid` is needed later anyway, and at most one
instruction where the test decides branches only:

    %lane = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %tid)
    %first = icmp ult i32 %lane, 64

If the shift has no other users, `opt` has made it `icmp ult i32 %tid, 64` already.
"""

from __future__ import annotations

import re

from fly_llc.codegen import ir_text
from fly_llc.codegen.ir_text import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_llc.codegen.target import Target

_READ = "@llvm.amdgcn.readfirstlane.i32"
_DECLARATION = f"\ndeclare i32 {_READ}(i32) #{{}}\n"
_ATTRIBUTES = (
    "attributes #{} = {{ convergent nocallback nofree nounwind willreturn memory(none) }}\n"
)
_GROUP = re.compile(r"^attributes #(\d+) =", re.MULTILINE)
_THREAD = re.compile(
    rf"^  ({NAME}) = (?:tail |notail )?call [^@\n]*i32 @llvm\.amdgcn\.workitem\.id\.x\(\)",
    re.MULTILINE,
)
_SHIFT = re.compile(rf"^  ({NAME}) = lshr (?:exact )?i32 ({NAME}), (\d+)", re.MULTILINE)
_TEST = re.compile(rf"^  ({NAME}) = icmp (?:samesign )?(eq|ne) i32 ({NAME}), 0\b", re.MULTILINE)
_SIZE = re.compile(r"!reqd_work_group_size !(\d+)")
_PREDICATES = {"eq": "ult", "ne": "uge"}


def scalar(module: str, target: Target, flags: tuple[str, ...]) -> str | None:
    """Returns the module with tests for the first wave on scalar registers, or None if there are
    none. Tests are replaced in kernels of a known block size, whose waves are consecutive threads
    of the x axis."""
    if not _THREAD.search(module) or not _SHIFT.search(module) or not _TEST.search(module):
        return None
    lanes = _lanes(module, target, flags)
    changed = lanes and ir_text.rewritten(module, lambda text: _changed(text, module, lanes))
    if not changed or f" {_READ}(" in module:
        return changed or None
    group = max((int(number) for number in _GROUP.findall(module)), default=-1) + 1
    return f"{changed}{_DECLARATION.format(group)}{_ATTRIBUTES.format(group)}"


def _lanes(module: str, target: Target, flags: tuple[str, ...]) -> int:
    """The lanes of a wave, or 0 for an unknown processor."""
    from fly_target import registry

    row = registry.BUILT_IN.get(target.cpu)
    if row is None or row.amd is None:
        return 0
    is_said = "wavefrontsize64" in module or any("wavefrontsize64" in one for one in flags)
    return max(row.wave_sizes) if is_said else min(row.wave_sizes)


def _changed(function: str, module: str, lanes: int) -> str | None:
    threads = {found[1] for found in _THREAD.finditer(function)}
    shifts = {
        name: (value, 1 << int(count))
        for name, value, count in _SHIFT.findall(function)
        if value in threads and lanes <= 1 << int(count) <= 1 << 16
    }
    if not shifts or not _is_consecutive(function.partition("\n")[0], module, lanes):
        return None
    parts: list[str] = []
    end = 0
    for number, test in enumerate(_TEST.finditer(function)):
        thread, size = shifts.get(test[3], ("", 0))
        if not thread or not _is_used(thread, function, test.end()) or _selects(test[1], function):
            continue
        lane = f"%fly.wave.{number}"
        parts += [
            function[end : test.start()],
            f"  {lane} = call i32 {_READ}(i32 {thread})\n",
            f"  {test[1]} = icmp {_PREDICATES[test[2]]} i32 {lane}, {size}",
        ]
        end = test.end()
    return "".join([*parts, function[end:]]) if parts else None


def _is_used(value: str, function: str, start: int) -> bool:
    return re.compile(rf"{re.escape(value)}(?![-$.\w])").search(function, start) is not None


def _selects(test: str, function: str) -> bool:
    """Whether a test has a user that needs it in lanes: all but branches."""
    users = rf"^(?!  {re.escape(test)} = |  br i1 ).*{re.escape(test)}(?![-$.\w])"
    return re.search(users, function, re.MULTILINE) is not None


def _is_consecutive(head: str, module: str, lanes: int) -> bool:
    """Whether the threads of a wave differ in x only, and x does not start anew within it."""
    size = _SIZE.search(head)
    found = size and re.search(
        rf"^!{size[1]} = !\{{i32 (\d+), i32 (\d+), i32 (\d+)\}}", module, re.MULTILINE
    )
    if not found:
        return False
    x, y, z = (int(number) for number in found.groups())
    return x % lanes == 0 or y * z == 1
