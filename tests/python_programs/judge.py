"""Runs programs by CPython, as traced by an interpreter of MLIR, and compiled on the emulator.

Several programs are compiled at once, as kernels of one file.
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fly_common.errors import InputError
from fly_trace.session.load import find_entry, load_file

sys.path.insert(0, str(Path(__file__).parents[1] / "fly_trace"))
from both_ways import arguments, check, indented, run_python, scalars, source_of
from trace_helpers import trace_source

from python_programs.surroundings import TOP

# What the grammar can't avoid without losing programs that run: docs/python.md has it.
REFUSED = "a loop whose iterator computes its items ends under a dynamic condition"

LIMIT = 120  # seconds for one program, which takes less than one

Scalars = tuple[int, int, float, float]

_files = itertools.count()


@dataclass(frozen=True)
class Case:
    """A kernel's body, and the scalars of its runs."""

    body: str
    runs: tuple[Scalars, ...]


@dataclass(frozen=True)
class Difference:
    """`kind` is the same for cases that differ for the same reason."""

    case: Case
    kind: str
    text: str


def differences(cases: Sequence[Case], folder: Path, emulator: bool = True) -> list[Difference]:
    """The cases whose results differ from CPython's, that are refused, or that do not end; of those
    that are REFUSED none. All cases have the same number of runs."""
    if not emulator:
        return [found for case in cases if (found := difference(case, folder, False))]
    try:
        with _ended(LIMIT * len(cases)):
            _compare(cases, folder)
        return []
    except Exception:
        return [found for case in cases if (found := difference(case, folder))]


def is_refused(case: Case, folder: Path) -> bool:
    """Whether a case is REFUSED."""
    try:
        trace_source(source_of(case.body, TOP), folder)
    except InputError as error:
        return REFUSED in str(error)
    return False


def difference(case: Case, folder: Path, emulator: bool = True) -> Difference | None:
    """What is wrong with one case."""
    try:
        with _ended(LIMIT):
            if emulator:
                _compare([case], folder)
            else:
                module = trace_source(source_of(case.body, TOP), folder)
                for given in case.runs:
                    with contextlib.suppress(OverflowError):  # Python's: see _compare
                        check(module, case.body, *given, top=TOP)
    except AssertionError as error:
        return Difference(case, "differs", str(error))
    except InputError as error:
        if REFUSED in str(error):
            return None
        return Difference(case, f"refused: {error.message}", error.render("fly-trace"))
    except Exception as error:
        return Difference(case, f"{type(error).__name__}: {error}", repr(error))
    return None


class _Late(BaseException):
    """Not an Exception, which tracing would take for one of the program's."""


@contextmanager
def _ended(seconds: int) -> Iterator[None]:
    """Raises AssertionError if it takes longer. For the main thread."""

    def late(*_: Any) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    except _Late:
        raise AssertionError(f"it does not end within {seconds} s") from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _compare(cases: Sequence[Case], folder: Path) -> None:
    """Compiles the cases together. Raises AssertionError if one differs."""
    file = folder / f"programs_{next(_files)}.py"
    file.write_text(_source(cases))
    linecache.checkcache(str(file))
    entry = find_entry(load_file(str(file)), str(file), None)
    for runs in zip(*(case.runs for case in cases), strict=True):
        found = [arguments() for _ in cases]
        entry(*itertools.chain(*found), *itertools.chain(*runs))
        for case, given, memory in zip(cases, runs, found, strict=True):
            expected = arguments()
            try:
                run_python(case.body, [*expected, *scalars(*given)], TOP)
            except OverflowError:
                # A Python int that outgrows i32, where a kernel's wraps around (docs/language.md).
                continue
            for a, b in zip(expected, memory, strict=True):
                np.testing.assert_array_equal(b, a, err_msg=f"{given}\n{case.body}")
    file.unlink()


def _source(cases: Sequence[Case]) -> str:
    """A file with a kernel for each case, which all are launched by one function."""
    parts = [f"import fly\nimport fly.expr as fx\n{TOP}"]
    arrays, numbers, launches = [], [], []
    for n, case in enumerate(cases):
        parts.append(
            f"@fly.kernel\ndef kernel{n}(I: fx.Tensor, F: fx.Tensor, a: fx.Int32, b: fx.Int32,\n"
            f"            u: fx.Float64, v: fx.Float64):\n{indented(case.body)}\n"
        )
        arrays.append(f"I{n}: fx.Tensor[fx.Int32, 8], F{n}: fx.Tensor[fx.Float64, 8]")
        numbers.append(f"a{n}: fx.Int32, b{n}: fx.Int32, u{n}: fx.Float64, v{n}: fx.Float64")
        given = f"I{n}, F{n}, a{n}, b{n}, u{n}, v{n}"
        launches.append(f"    kernel{n}({given}).launch(grid=1, block=1)")
    parameters = ",\n          ".join([*arrays, *numbers])
    parts.append(f"@fly.jit\ndef entry({parameters}):\n" + "\n".join(launches) + "\n")
    return "\n".join(parts)
