"""Undefined symbols of PTX: which they are, what uses them, and what would define them."""

from __future__ import annotations

import re

from fly_common.errors import InputError, Place

from fly_link.backends.nvidia.module import Module

# What the driver defines ("System calls" of the PTX interoperability guide, and device printf).
SYSTEM = frozenset({"vprintf", "malloc", "free", "__assertfail"})

# What defines symbols, by pattern. The first match is used.
_DEFINERS = (
    (
        r"__nv_\w+",
        "libdevice defines it: fly-opt-py links it into the IR (pip install nvidia-nvvm)",
    ),
    (
        r"llvm\.\S+|llvm_\w+",
        "it is an intrinsic that this LLVM does not know for NVIDIA's GPUs: use a newer LLVM",
    ),
    (r"f?printf|puts|putchar", "printing from a kernel is vprintf in PTX"),
    (r"_Zn[aw][jm]\w*|_Zd[al]Pv\w*|calloc|realloc", "allocate by malloc, or pass a buffer"),
    (r"abort|exit|__cxa_\w+|_Unwind_\w+", "a kernel can't stop the program or throw"),
    (r"mem(?:cpy|set|move|cmp)|str\w+", "no C library exists on a GPU: write it as a loop"),
    (
        r"l?l?(?:a?(?:sin|cos|tan)h?|atan2|exp(?:2|10|m1)?|log(?:2|10|1p|b)?|pow|fmod|erfc?|hypot"
        r"|[lt]gamma|cbrt|sqrt|floor|ceil|round|rint|fma)[fl]?",
        "no C math library exists on a GPU: call libdevice's function, __nv_…",
    ),
)
_ELSEWHERE = "link the LLVM IR that defines it before code generation, with llvm-link"

_DECLARED = re.compile(
    r"\.extern\s+\.func\s+(?:\.noreturn\s+)?(?:\([^)]*\)\s*)?(?P<function>[\w$.]+)"
    r"|\.extern\s+\.(?:global|const)\s+(?:\.align\s+\d+\s+)?\.\w+\s+(?P<variable>[\w$.]+)"
)
_DEFINED = re.compile(r"(?:\.visible|\.weak)?\s*\.func\s+(?:\([^)]*\)\s*)?([\w$.]+)[^;{]*\{")
_BODY = re.compile(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)\s*(?:\([^)]*\))?[^{;]*\{")


def check(module: Module) -> None:
    """Raises InputError for the first symbol that is used but not defined."""
    defined = set(_DEFINED.findall(module.code)) | SYSTEM
    declared = (match["function"] or match["variable"] for match in _DECLARED.finditer(module.code))
    missing = list(dict.fromkeys(name for name in declared if name not in defined))
    used = [name for name in missing if _user(module.code, name) is not None]
    if not used:
        return
    first, *others = used
    what = f"undefined symbol {first}, used in {_user(module.code, first)}"
    if others:
        what += f"; and {', '.join(others)}"
    raise InputError(what, place=Place(module.name), hint=definer(first))


def definer(name: str) -> str:
    """Returns what would define the symbol `name`."""
    return next((who for sign, who in _DEFINERS if re.fullmatch(sign, name)), _ELSEWHERE)


def _user(code: str, name: str) -> str | None:
    """Returns the function whose body names a symbol."""
    bodies = list(_BODY.finditer(code))
    ends = [body.start() for body in bodies[1:]] + [len(code)]
    for body, end in zip(bodies, ends, strict=True):
        if re.search(rf"(?<![\w$.]){re.escape(name)}(?![\w$])", code[body.end() : end]):
            return body[1]
    return None
