"""The variables of a kernel's module on the device `cpu`, and what the library has for those in
shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fly_cpu.state import KINDS, POISON, expanded

SHARED, DYNAMIC, READABLE, WRITABLE = "shared", "dynamic", "constant", "global"  # of variables


@dataclass(frozen=True)
class Variable:
    """A variable of the module. `kind` as above."""

    name: str
    kind: str
    size: str
    space: int = 3


def table(variables: Sequence[Variable]) -> str:
    """Address and size of each variable."""
    words = ", ".join(
        f"i64 ptrtoint (ptr addrspace({one.space}) {one.name} to i64), i64 {one.size}"
        for one in variables
    )
    return f"@fly_variables = protected global [{2 * len(variables)} x i64] [{words}]"


def is_shared(variables: Sequence[Variable]) -> str:
    """Whether an address is in the block's shared memory."""
    lines, last = [], "false"
    for n, one in enumerate(variables):
        if one.kind in (SHARED, DYNAMIC):
            size = one.size
            if one.kind == DYNAMIC:
                lines.append(f"  %size.{n} = load i64, ptr $dynamic")
                size = f"%size.{n}"
            lines += [
                f"  %low.{n} = ptrtoint ptr addrspace(3) {one.name} to i64",
                f"  %inside.{n} = sub i64 %at, %low.{n}",
                f"  %in.{n} = icmp ult i64 %inside.{n}, {size}",
                f"  %any.{n} = or i1 {last}, %in.{n}",
            ]
            last = f"%any.{n}"
    body = "\n".join([*lines, f"  ret i1 {last}"])
    return f"define internal i1 @fly.is_shared(i64 %at) nounwind {{\n{body}\n}}\n"


def fill(variables: Sequence[Variable]) -> str:
    """Shared memory holds a pattern when a block begins."""
    calls = []
    for n, one in enumerate(variables):
        if one.kind in (SHARED, DYNAMIC):
            size = one.size
            if one.kind == DYNAMIC:
                calls.append(f"  %size.{n} = load i64, ptr $dynamic")
                size = f"%size.{n}"
            calls.append(f"  call void @fly.pattern(ptr addrspace(3) {one.name}, i64 {size})")
    fills = "\n".join(calls)
    return f"""
define internal void @fly.pattern(ptr addrspace(3) %to, i64 %size) noinline nounwind {{
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %store ]
  %next = add i64 %n, 4
  %more = icmp ule i64 %next, %size
  br i1 %more, label %store, label %done
store:
  %at = getelementptr i8, ptr addrspace(3) %to, i64 %n
  store i32 {POISON}, ptr addrspace(3) %at, align 1
  br label %loop
done:
  ret void
}}
define internal void @fly.fill() noinline nounwind {{
{fills}
  ret void
}}
"""


def shared_at(variables: Sequence[Variable]) -> str:
    """A function that finds the address of shared memory whose lower 18 bits a descriptor has."""
    text = """
define internal i64 @fly.shared_at(i64 %low, i64 %size, i32 %site) noinline nounwind {
entry:
  br label %try.0
"""
    shared = [one for one in variables if one.kind in (SHARED, DYNAMIC)]
    for n, one in enumerate(shared):
        size = one.size if one.kind == SHARED else "%length." + str(n)
        length = "" if one.kind == SHARED else f"  %length.{n} = load i64, ptr $dynamic\n"
        text += f"""try.{n}:
{length}  %base.{n} = ptrtoint ptr addrspace(3) {one.name} to i64
  %far.{n} = sub i64 %low, %base.{n}
  %offset.{n} = and i64 %far.{n}, 262143
  %end.{n} = add i64 %offset.{n}, %size
  %in.{n} = icmp ule i64 %end.{n}, {size}
  br i1 %in.{n}, label %found.{n}, label %try.{n + 1}
found.{n}:
  %at.{n} = add i64 %base.{n}, %offset.{n}
  ret i64 %at.{n}
"""
    text += f"""try.{len(shared)}:
  call void @fly.fault(i64 {KINDS.index("unmapped")}, i64 %low, i64 %size, i32 %site)
  unreachable
}}
"""
    return expanded(text)
