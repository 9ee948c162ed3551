"""Compile hints: what they ask of tracing and of LLVM.

| hint | here |
|---|---|
| `waves_per_eu` | the attribute `rocdl.waves_per_eu` of each kernel |
| `maxnreg` | at most so many vector registers: LLVM's attribute `amdgpu-num-vgpr` of each kernel |
| `fast_fp_math`, `unsafe_fp_math` | fast-math flags of all operations |
| `fastmath` | the flags that it names |
| `llvm_options` | options of code generation: `-NAME=VALUE` |
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fly_common.errors import UsageError
from fly_common.record import record
from fly_trace.values.functions.fast_math import FLAGS, FastMathFlags

KNOWN = ("waves_per_eu", "maxnreg", "fast_fp_math", "unsafe_fp_math", "fastmath", "llvm_options")


class _Current(threading.local):
    hints: Mapping[str, Any] = {}


_current = _Current()


@record
class Hints:
    """`fastmath` are flags, separated by commas; `options` are words for code generation."""

    waves_per_eu: int = 0
    registers: int = 0
    fastmath: str | None = None
    options: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Identifies what tracing makes of them."""
        return f"{self.waves_per_eu} {self.registers} {self.fastmath}"


def merged(*all_: Mapping[str, Any]) -> dict[str, Any]:
    """Hints of which later ones replace earlier ones; the options of LLVM one by one."""
    found: dict[str, Any] = {}
    for hints in all_:
        options = {**found.get("llvm_options", {}), **(hints.get("llvm_options") or {})}
        found |= hints
        if options:
            found["llvm_options"] = options
    return found


def current() -> Mapping[str, Any]:
    """The hints of the surrounding `with CompilationContext.compile_hints(…)`."""
    return _current.hints


@contextmanager
def using(hints: Mapping[str, Any]) -> Iterator[None]:
    before = _current.hints
    _current.hints = merged(before, hints or {})
    try:
        yield
    finally:
        _current.hints = before


def _option(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"-{name}={str(value).lower()}"
    if not isinstance(value, (int, str)):
        raise UsageError(f"llvm_options[{name!r}] must be a bool, a number or text, not {value!r}")
    return f"-{name}={value}"


def _flags(given: Any) -> str:
    if isinstance(given, FastMathFlags):
        words = [one.name for one in ([given] if given.name in FLAGS else list(given))]
    elif isinstance(given, str):
        words = given.split(",")
    else:
        words = [word for one in given for word in _flags(one).split(",")]
    return ",".join(str(word) for word in words)


def _count(given: Mapping[str, Any], name: str, what: str) -> int:
    """A hint that is a number; 0 if it is not given."""
    number = given.get(name) or 0
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise UsageError(f"{name} must be a number of {what}, not {number!r}")
    return number


def read(given: Mapping[str, Any]) -> Hints:
    """The hints as this project has them. UsageError for what is unknown."""
    if unknown := sorted(set(given) - set(KNOWN)):
        raise UsageError(
            f"there is no compile hint {', '.join(unknown)}", hint=f"hints: {', '.join(KNOWN)}"
        )
    waves = _count(given, "waves_per_eu", "waves")
    registers = _count(given, "maxnreg", "vector registers")
    fast = given.get("fastmath")
    if fast is None and (given.get("fast_fp_math") or given.get("unsafe_fp_math")):
        fast = "fast"
    options = given.get("llvm_options") or {}
    words = tuple(_option(name, value) for name, value in sorted(options.items()))
    return Hints(waves, registers, None if fast is None else _flags(fast), words)
