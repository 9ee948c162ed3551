"""Warnings and errors of LLVM about a function's kernels, with lines of the Python file.

Modules are compiled without debug info, so LLVM names no lines. After a warning or an error the
chain runs again with source lines, and what LLVM says then has them. Warnings come from the stages
that run: a result that is taken from the store gives none. Only spilled registers are read from the
image itself.
"""

from __future__ import annotations

import re

from fly_common.diagnostics import Warning, warner
from fly_common.errors import FlyError, InputError, Place
from fly_common.record import replace

from fly.chains import messages
from fly.chains.chain import Chain, Prefetch, run

_told: set[tuple[str, str]] = set()  # printed by this process


def compile(chain: Chain, module: bytes, prefetch: Prefetch) -> bytes:
    """Returns the chain's result, and prints what LLVM says of the kernels."""
    with messages.collected() as warnings:
        try:
            made = run(chain, module, prefetch=prefetch)
        except InputError as error:
            raise located(error, module, chain) from error
    report(warnings, made, module, chain)
    return made


def located(error: InputError, module: bytes, chain: Chain) -> InputError:
    """Returns the error that `chain` raised for `module`, with the line in the Python file if there
    is one."""
    if error.place is not None and not error.place.file.startswith("<"):
        return error
    try:
        with messages.collected():
            run(chain.with_lines(), module)
    except FlyError as again:
        if again.place is not None and again.message == error.message:
            error.place = in_module(again.place, module)
    return error


def report(found: list[Warning], image: bytes, module: bytes, chain: Chain) -> None:
    """Prints the warnings about an image that `chain` made from `module`, each once in a
    process."""
    if any(one.place is None for one in found):
        found = _with_lines(found, module, chain)
    from fly_image import spills

    tell = warner("fly")
    for one in (*found, *spills.warnings(image, lambda name: kernel_line(module, name))):
        key = str(one.place), one.message
        if key not in _told:
            _told.add(key)
            tell(one)


def _with_lines(found: list[Warning], module: bytes, chain: Chain) -> list[Warning]:
    """The warnings of a run with source lines, if it gives the same ones."""
    with messages.collected() as again:
        try:
            run(chain.with_lines(), module)
        except FlyError:
            return found
    again = [replace(one, place=one.place and in_module(one.place, module)) for one in again]
    same = {one.message for one in again} == {one.message for one in found}
    return again if same else found


def in_module(place: Place, module: bytes) -> Place:
    """A place that LLVM names, as the traced module does: LLVM names a file without its folder, and
    omits the calls of helpers that lead there."""
    from fly_image.dwarf import Line

    name, line = re.escape(place.file), place.line
    column = rf":{place.column}\b" if place.column and place.text else r":\d+"
    where = rf'"(?P<file>(?:[^"\n]*/)?{name})":{line}{column}(?: at (?P<calls>[^\n]*))?'
    match = re.search(where, module.decode(errors="replace"))
    if match is None:
        return place
    found = Line(match["file"], line or 0, place.column or 0).place()
    calls = _CALLED.findall(match["calls"] or "")
    made = tuple(Line(file, int(line), int(column)).place() for file, line, column in calls)
    return replace(found, calls=made)


_CALLED = re.compile(r'"([^"\n]*)":(\d+):(\d+)')
_LOCATION = re.compile(r'^    \} loc\("((?:[^"\\]|\\.)*)":(\d+):(\d+)\)$', re.MULTILINE)


def kernel_line(module: bytes, name: str) -> Place | None:
    """The definition of a kernel, by a module as fly-trace prints it."""
    from fly_image.dwarf import Line

    text = module.decode(errors="replace")
    start = text.find(f"    gpu.func @{name}(")
    match = _LOCATION.search(text, start) if start >= 0 else None
    return Line(match[1], int(match[2]), int(match[3])).place() if match else None
