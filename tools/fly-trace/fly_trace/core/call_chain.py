"""The calls of helpers that lead to an error, by the frames of its traceback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, TracebackType
from typing import NamedTuple

from fly_common.errors import Place, Related

from fly_trace.core import locations


class _Frame(NamedTuple):
    code: CodeType
    at: locations.Position


def frames(traceback: TracebackType | None) -> list[_Frame]:
    """The user's frames of a traceback, outermost first."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        at = locations.in_traceback(traceback)
        if at is not None:
            found.append(_Frame(code, at))
        traceback = traceback.tb_next
    return found


def calls(found: Iterable[_Frame], place: Place | None) -> tuple[Related, ...]:
    """The calls on the way to `place`, innermost first: where each function is, except the one that
    `place` is in. `found` are frames, outermost first."""
    functions = list(_functions(found))
    if functions and place is not None and _contains(functions[-1], place):
        functions.pop()
    made = []
    for group in reversed(functions):
        at = locations.place(group[-1].at)
        if at is not None:
            made.append(Related(f"called in {_name(group[0].code)}", at))
    return tuple(made)


def _functions(found: Iterable[_Frame]) -> Iterator[list[_Frame]]:
    """The frames of each function: its own, and those of its branches, loops and comprehensions."""
    group: list[_Frame] = []
    for frame in found:
        if group and not _is_part(frame.code):
            yield group
            group = []
        group.append(frame)
    if group:
        yield group


def _is_part(code: CodeType) -> bool:
    name = code.co_name
    return name.startswith("__fly_") or (name.startswith("<") and name != "<lambda>")


def _name(code: CodeType) -> str:
    return "a lambda" if code.co_name == "<lambda>" else code.co_name


def _contains(group: list[_Frame], place: Place) -> bool:
    """Whether a place is in a function's text."""
    if place.line is None or place.file != locations.shown(group[0].code.co_filename):
        return False
    first, last = group[0].code.co_firstlineno, 0
    waiting = [frame.code for frame in group]
    for code in waiting:
        last = max(last, *(line for *_, line in code.co_lines() if line), code.co_firstlineno)
        waiting += [item for item in code.co_consts if isinstance(item, CodeType)]
    return first <= place.line <= last
