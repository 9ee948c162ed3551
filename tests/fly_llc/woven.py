"""Compiles the repository's examples with machine passes inserted into their code generation."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

from fly_run.devices.options import Options
from fly_trace.session.load import find_entry, load_file

import fly

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "examples"))
from example_cases import WIDELY as CASES  # noqa: E402
from example_cases import Case, check  # noqa: E402

__all__ = ["CASES", "Case", "compiled", "ir", "run"]


@functools.cache
def compiled(case: Case, target: str, **llc: Any) -> fly.call.compiled.Compiled:
    """Compiles an example with these options of fly-llc, for the signature of its annotations."""
    path = str(ROOT / "examples" / case.file)
    function = find_entry(load_file(path), path, case.entry)
    function.options["chain"] = fly.chain(target, llc=tuple(llc.items()))
    return function.compile()


def ir(case: Case, target: str) -> bytes:
    """Returns the optimised LLVM IR, the input of fly-llc."""
    text = compiled(case, target).ir("opt.ll")
    return text.encode() if isinstance(text, str) else text


def run(case: Case, made: fly.call.compiled.Compiled, *, strict: bool = False) -> None:
    """Runs it on the emulator. AssertionError if the results differ from NumPy's, and Fault if
    `strict` finds a register that is used before its wait."""
    arguments = case.make()
    expected = case.expect(arguments)
    returned = made.run(arguments, device="emulator", options=Options(strict=strict)).results
    check(case, case.after(arguments, returned), expected)
