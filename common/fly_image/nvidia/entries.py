"""Kernels as PTX declares them: `.entry`, with parameters and performance directives.

    .visible .entry saxpy(
        .param .u64 .ptr .global .align 16 saxpy_param_0,
        .param .align 16 .b8 saxpy_param_1[16]
    )
    .maxntid 256, 1, 1
    {

Sources: PTX ISA 8.8, "Kernel and Function Directives: .entry", "Kernel Function Parameter
Attribute: .ptr", "Performance-Tuning Directives". Parameters lie one after another, each at a
multiple of its alignment, which is its `.align` or its type's size.

A kernel with a `griddepcontrol.wait` is launched dependently ("griddepcontrol"). Where only
declarations are kept, such a kernel's has a body of that instruction.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from fly_common.errors import InputError

MOST_BYTES = 1 << 16  # of all parameters; PTX allows 32,764
MOST_THREADS = 1024  # of a block
WAIT = "griddepcontrol.wait"

Triple = tuple[int, int, int]

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TARGET = re.compile(r"^[ \t]*\.target[ \t]+(\w+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+(?P<name>[\w$]+)\s*(?:\((?P<parameters>[^)]*)\))?(?P<rest>[^{;]*)")
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d{1,9})\s+)?\.(?P<type>[a-z]+\d{1,3})\s+"
    r"(?P<pointer>\.ptr\s+(?:\.(?P<space>global|const|local|shared)\s+)?(?:\.align\s+\d+\s+)?)?"
    r"(?P<name>[\w$]+)\s*(?:\[(?P<count>\d{0,9})\])?"
)
_LIMIT = re.compile(
    r"\.(maxntid|reqntid|reqnctapercluster)\s+(\d{1,9})(?:\s*,\s*(\d{1,9}))?(?:\s*,\s*(\d{1,9}))?"
)
_SHARED = re.compile(
    r"(\.extern\s+)?\.shared\s+(?:\.align\s+\d+\s+)?\.[a-z]+(\d{1,3})\s+[\w$]+([^;]*);"
)


@dataclass(frozen=True)
class Parameter:
    """`type_name` is PTX's (`u64`, `f32`, `b8`). `pointer` is the address space of a pointer, ""
    for a generic one, None for a value."""

    offset: int
    size: int
    type_name: str
    pointer: str | None = None


@dataclass(frozen=True)
class Entry:
    """A kernel's declaration. `text` is the declaration itself, without comments. `dependent`: see
    the module."""

    name: str
    parameters: tuple[Parameter, ...]
    max_threads: int
    required_block: Triple | None
    text: str
    cluster: Triple | None = None
    dependent: bool = False

    @property
    def argument_bytes(self) -> int:
        return max((one.offset + one.size for one in self.parameters), default=0)


def without_comments(text: str) -> str:
    """Returns the PTX without comments. Lines keep their numbers."""
    return _COMMENTS.sub(lambda match: "\n" * match[0].count("\n"), text)


def target(text: str) -> str | None:
    """Returns the target that PTX without comments names, or None."""
    match = _TARGET.search(text)
    return match[1] if match else None


def entries(text: str) -> tuple[Entry, ...]:
    """Returns the kernels of PTX without comments. Raises InputError for a parameter that it does
    not understand."""
    found = list(_ENTRY.finditer(text))
    ends = (*(match.start() for match in found[1:]), len(text))
    return tuple(
        _entry(match, WAIT in text[match.end() : end])
        for match, end in zip(found, ends, strict=False)
    )


def shared_bytes(text: str) -> int:
    """Returns the bytes of the shared variables that PTX without comments declares."""
    total = 0
    for extern, bits, dimensions in _SHARED.findall(text):
        if not extern:
            counts = re.findall(r"\[\s*(\d{1,9})\s*\]", dimensions)
            total += int(bits) // 8 * math.prod(map(int, counts))
    return total


def _entry(match: re.Match[str], waits: bool) -> Entry:
    name = match["name"]
    limits = {word: sizes for word, *sizes in _LIMIT.findall(match["rest"])}
    required = _triple(limits["reqntid"]) if "reqntid" in limits else None
    bound = required or (_triple(limits["maxntid"]) if "maxntid" in limits else None)
    most = min(MOST_THREADS, math.prod(bound)) if bound else MOST_THREADS
    parameters = tuple(_parameters(name, match["parameters"] or ""))
    cluster = _triple(limits["reqnctapercluster"]) if "reqnctapercluster" in limits else None
    declared = match[0].strip() + (f"\n{{ {WAIT}; }}" if waits else ";")
    return Entry(name, parameters, most, required, declared, cluster, waits)


def _triple(words: list[str]) -> Triple:
    x, y, z = (int(word or "1") for word in words)
    return x, y, z


def _parameters(kernel: str, text: str) -> list[Parameter]:
    made: list[Parameter] = []
    end = 0
    for word in filter(None, map(str.strip, text.split(","))):
        match = _PARAMETER.fullmatch(word)
        if match is None:
            raise InputError(f"the kernel {kernel} has an unknown parameter: {word}")
        width = _width(match["type"])
        size = width * (1 if match["count"] is None else int(match["count"] or 0))
        align = int(match["align"] or width)
        if not align or align & (align - 1):
            raise InputError(f"the kernel {kernel} has a parameter with alignment {align}")
        offset = -(-end // align) * align
        end = offset + size
        if end > MOST_BYTES:
            raise InputError(f"the kernel {kernel} has more than {MOST_BYTES} bytes of parameters")
        pointer = (match["space"] or "") if match["pointer"] else None
        made.append(Parameter(offset, size, match["type"], pointer))
    return made


def _width(type_name: str) -> int:
    return max(1, int(re.sub(r"\D", "", type_name)) // 8)
