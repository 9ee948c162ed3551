"""The code of objects: instructions by function, and a comparison of two objects."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LABEL = re.compile(r"^<(?P<name>.+)>:$")
_REGISTER = re.compile(r"\b([vsa])(?:\d+(\.[lh])?|\[(\d+):(\d+)\])")


def functions(obj: bytes) -> dict[str, list[str]]:
    """Maps each function to its instructions in LLVM's syntax, without addresses and encodings."""
    from fly_common.programs import toolchain

    words = ["-d", "--no-show-raw-insn", "--no-leading-addr", "-"]
    done = toolchain.run_program("llvm-objdump", words, obj)
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in done.stdout.decode(errors="replace").splitlines():
        if match := _LABEL.match(line):
            current = found.setdefault(match["name"], [])
        elif line.startswith("\t"):
            current.append(line.partition("//")[0].strip())
    for lines in found.values():
        # Code is padded at its end for the instruction cache.
        while lines and lines[-1] in ("s_nop 0", "s_code_end"):
            lines.pop()
    return found


def without_registers(lines: Iterable[str]) -> list[str]:
    """Replaces registers by their kind: `v_add_f32_e32 v, v, s`. Widths are kept."""
    return [_REGISTER.sub(_kind, line) for line in lines]


def _kind(match: re.Match[str]) -> str:
    bank, half, first, last = match.groups()
    width = int(last) - int(first) + 1 if last else 1
    return f"{bank}{width if width > 1 else ''}{half or ''}"


def likeness(one: bytes, other: bytes) -> str:
    """Returns how similar two objects are: "exact" (the same bytes), "registers" (the same
    instructions in the same order, other registers) or "other"."""
    if one == other:
        return "exact"
    first, second = functions(one), functions(other)
    same = list(first) == list(second) and all(
        without_registers(first[name]) == without_registers(second[name]) for name in first
    )
    return "registers" if same else "other"
