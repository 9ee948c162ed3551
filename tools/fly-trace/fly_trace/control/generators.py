"""Generators whose functions are rewritten, and loops over them that a dynamic condition ends.

Behind such an end, Python would not resume the generator. Here the trace does, under the condition,
so that a variable of the generator may have a value that only this path has. On the other path
nothing reads it again.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import GeneratorType
from typing import Any

from fly_trace.control.branches import dynamic, truth
from fly_trace.control.carried.in_place import Variables
from fly_trace.control.carried.merging import GENERATORS
from fly_trace.core import tracing
from fly_trace.core.locations import Position
from fly_trace.rewrite import is_rewritten
from fly_trace.rewrite.generators import GUARDED, PUT

Span = tuple[int, int, int, int]
_HINT = "yield always, for example a value with a condition"


def register(generator: Any) -> None:
    """Registers a generator that the traced function made or iterates over."""
    builder = tracing.active()
    if builder is None or not is_rewritten(generator.gi_code):
        return
    if not any(known() is generator for known in builder.generators):
        builder.generators.append(weakref.ref(generator))


def suspended() -> list[GeneratorType[Any, Any, Any]]:
    """The registered generators that may be resumed."""
    builder = tracing.active()
    if builder is None or not builder.generators:
        return []
    found = [known() for known in builder.generators]
    alive = [one for one in found if one is not None and one.gi_frame is not None]
    builder.generators[:] = map(weakref.ref, alive)
    return [one for one in alive if not one.gi_running]


def close() -> None:
    """Closes the generators that an error left, whose `finally` is traced."""
    for one in suspended():
        with suppress(Exception):
            one.close()


@contextmanager
def resumed(
    get: Callable[[], Any], put: Callable[[Any], None], names: tuple[str, ...], live: int
) -> Iterator[Variables]:
    """The variables of an iteration under a condition, with those of the generators that it may
    resume."""
    builder = tracing.active()
    found = suspended()
    if builder is None or not found:
        yield Variables(get, put, names, live)
        return

    def put_all(values: Any) -> None:
        state, *own = values
        for setter, held in state:
            setter(held)
        put(tuple(own))

    given = {id(one): one for one in found}
    carried, offered = builder.carried, builder.offered
    builder.carried, builder.offered = {**carried, **given}, {**offered, **given}
    try:
        yield Variables(lambda: (_read(), *get()), put_all, (GENERATORS, *names), live + 1)
    finally:
        builder.carried, builder.offered = carried, offered


def _read() -> list[tuple[Callable[[Any], None], dict[str, Any]]]:
    """For each suspended generator, the function that sets its variables, and their values."""
    found = []
    for one in suspended():
        held = dict(one.gi_frame.f_locals)  # type: ignore[union-attr]
        if (put := held.get(PUT)) is None:
            continue
        if held[GUARDED]:
            tracing.refuse(
                "a loop over a generator ends under a dynamic condition, and the generator has a"
                " `yield` in a `with` or `try`",
                "end the loop by a condition that is known while tracing",
            )
        found.append((put, held))
    return found


def yielding_test(test: Any, span: Span) -> bool:
    """The test of an `if` or loop with a `yield` at `span`."""
    if dynamic(test):
        at = Position(sys._getframe(1).f_code.co_filename, *span)
        tracing.refuse("a `yield` under a dynamic condition", _HINT, at=at)
    return truth(test)


def static_range(range_: Callable[..., Any], given: tuple[Any, ...], span: Span) -> Any:
    """The range of a loop with a `yield` at `span`."""
    if any(map(dynamic, given)):
        at = Position(sys._getframe(1).f_code.co_filename, *span)
        tracing.refuse(
            "a `yield` in a loop over a dynamic range",
            "loop over a range that is known while tracing",
            at=at,
        )
    return range_(*(getattr(one, "number", one) for one in given))
