"""The warnings of stages, which are printed, or collected for the caller of a chain."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fly_common.diagnostics import Warning, warner


class _Collecting(threading.local):
    found: list[Warning] | None = None


_here = _Collecting()


@contextmanager
def collected() -> Iterator[list[Warning]]:
    """Collects the warnings of the stages that this thread runs, which are printed otherwise."""
    before, _here.found = _here.found, []
    try:
        yield _here.found
    finally:
        _here.found = before


def warn(said: str | Warning) -> None:
    """Takes a warning of a stage."""
    made = Warning(said) if isinstance(said, str) else said
    if _here.found is None:
        warner("fly")(made)
    else:
        _here.found.append(made)


def said_by(program: str, stderr: str) -> str:
    """Takes what one of LLVM's programs printed. Returns the lines that are not warnings."""
    from fly_common.programs import llvm_diagnostics

    found, rest = llvm_diagnostics.warnings(stderr)
    for one in found:
        warn(Warning(f"{program}: {one.message}", place=one.place))
    return rest
