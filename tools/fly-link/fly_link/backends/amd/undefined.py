"""Undefined symbols: which they are, what uses them, and what would define them."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from fly_common.errors import InputError, MissingError, Place

from fly_link.backends.amd.inputs import GLOBAL, LOCAL, UNDEFINED, Input

# What defines symbols, by pattern. The first match is used.
_DEFINERS = (
    (
        r"__(?:ocml|ockl|oclc)_\w+",
        "ROCm's device libraries define it: fly-opt-py --target links them into the IR",
    ),
    (
        r"f?printf|puts|putchar|__printf\w*|__hostcall\w*|hipHostcall\w*",
        "printing from a kernel needs support on the host, which fly-run does not have",
    ),
    (
        r"malloc|free|_Zn[aw][jm]\w*|_Zd[al]Pv\w*",
        "a kernel can't allocate memory: pass it a buffer",
    ),
    (r"__assert_fail|abort|exit|__cxa_\w+|_Unwind_\w+", "a kernel can't stop the program or throw"),
    (r"mem(?:cpy|set|move|cmp)|str\w+", "no C library exists on a GPU: write it as a loop"),
    (
        r"__(?:u?(?:div|mod)|mul|add|sub|fix|float|trunc|extend|ash|lsh|neg|cmp|powi)\w*[sdtx][if]\w*",
        "it is part of compiler-rt, which does not support this GPU: use a narrower type",
    ),
    (
        r"l?l?(?:a?(?:sin|cos|tan)h?|atan2|exp(?:2|10|m1)?|log(?:2|10|1p|b)?|pow|fmod|erfc?|hypot"
        r"|[lt]gamma|cbrt|sqrt|floor|ceil|round|rint|fma)[fl]?",
        "no C math library exists on a GPU: call LLVM's intrinsic, or __ocml_… of ROCm's libraries",
    ),
)  # fmt: skip
_ELSEWHERE = "name the object that defines it on fly-link's command line"

_RELOCATION = struct.Struct("<QQq")
_RELA = 4  # section type SHT_RELA
_FUNCTION = 2


def check(inputs: Sequence[Input]) -> None:
    """Raises InputError for the first symbol that is used but not defined by any object."""
    defined = {
        symbol.name
        for item in inputs
        for symbol in item.symbols
        if symbol.section != UNDEFINED and symbol.bind != LOCAL
    }
    missing: dict[str, tuple[Input, int]] = {}
    for item in inputs:
        for index, symbol in enumerate(item.symbols):
            needed = symbol.section == UNDEFINED and symbol.bind == GLOBAL
            if needed and symbol.name not in defined:
                missing.setdefault(symbol.name, (item, index))
    if not missing:
        return
    names = _demangled(list(missing))
    (name, (item, index)), *others = missing.items()
    user = _user(item, index)
    what = f"undefined symbol {names[name]}" + (f", used in {user}" if user else "")
    if others:
        what += f"; and {', '.join(names[other] for other, _ in others)}"
    raise InputError(what, place=Place(item.name), hint=definer(name))


def definer(name: str) -> str:
    """Returns what would define the symbol `name`."""
    return next((who for sign, who in _DEFINERS if re.fullmatch(sign, name)), _ELSEWHERE)


def _user(item: Input, index: int) -> str | None:
    """Returns the function in `item` whose code refers to its symbol number `index`."""
    for section in item.elf.sections:
        if section.type != _RELA or len(section.data) % _RELOCATION.size:
            continue
        for offset, info, _ in _RELOCATION.iter_unpack(section.data):
            if info >> 32 != index:
                continue
            for symbol in item.symbols:
                inside = symbol.value <= offset < symbol.value + symbol.size
                if symbol.type == _FUNCTION and symbol.section == section.info and inside:
                    return symbol.name
    return None


def _demangled(names: list[str]) -> dict[str, str]:
    """Maps each name to its C++ form, if it has one and LLVM's demangler is installed."""
    from fly_common.programs import toolchain

    if not any(name.startswith("_Z") for name in names):
        return dict(zip(names, names, strict=True))
    try:
        done = toolchain.run_program("llvm-cxxfilt", [], "\n".join(names).encode())
    except MissingError:
        return dict(zip(names, names, strict=True))
    demangled = done.stdout.decode(errors="replace").splitlines()
    return dict(zip(names, demangled if len(demangled) == len(names) else names, strict=True))
