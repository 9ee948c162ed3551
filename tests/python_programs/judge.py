"""Runs a program by CPython, as traced by an interpreter of MLIR, and compiled on the emulator."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from fly_common.errors import InputError
from hypothesis import reject

sys.path.insert(0, str(Path(__file__).parents[1] / "fly_trace"))
from both_ways import arguments, check, on_emulator, run_python, scalars, source_of
from trace_helpers import trace_source

from python_programs.programs import TOP

# What the grammar can't avoid without losing programs that run: docs/python.md has it.
REFUSED = "a loop whose iterator computes its items ends under a dynamic condition"

LIMIT = 120  # seconds for one program, which takes about one

Given = tuple[int, int, float, float]


def compare(body: str, runs: Sequence[Given], folder: Path, emulator: bool) -> None:
    """Raises AssertionError if a program's results differ from CPython's, or if it does not end. A
    program that is REFUSED does not count."""
    try:
        with _ended(body):
            _compare(body, runs, folder, emulator)
    except InputError as error:
        if REFUSED not in str(error):
            raise
        reject()


@contextmanager
def _ended(body: str) -> Iterator[None]:
    """Raises AssertionError if it takes longer than LIMIT. For the main thread."""

    def late(*_: Any) -> None:
        raise AssertionError(f"it does not end within {LIMIT} s:\n{body}")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _compare(body: str, runs: Sequence[Given], folder: Path, emulator: bool) -> None:
    source = source_of(body, TOP)
    if emulator:
        for given, found in zip(
            runs, on_emulator(source, [*map(list, runs)], folder / "k.py"), strict=True
        ):
            expected = arguments()
            run_python(body, [*expected, *scalars(*given)], TOP)
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_array_equal(b, a, err_msg=f"{given}\n{body}")
        return
    module = trace_source(source, folder)
    for given in runs:
        check(module, body, *given, top=TOP)
