"""Loops that Python runs, with early exits: over any iterable, and over static ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from types import GeneratorType
from typing import Any, NoReturn

from fly_trace.control import generators
from fly_trace.control.branches import Put, dynamic, if_, truth
from fly_trace.control.carried.carried_values import Undefined
from fly_trace.control.carried.in_place import Roots
from fly_trace.control.loops.dynamic import for_, for_left
from fly_trace.control.loops.trips import RANGES, bounds_of, static
from fly_trace.core import tracing
from fly_trace.rewrite.exits import SKIP

Left = Callable[[], Any] | None  # whether the loop has ended; None if nothing ends it early

UNROLLED = 16  # a static range with a dynamic exit has at most as many iterations in Python


def each(
    iterable: Any,
    body: Callable[[Any], None],
    get: Callable[[], Any],
    put: Put,
    names: tuple[str, ...],
    live: int,
    targets: tuple[str, ...],
    roots: Roots,
    left: Left,
) -> None:
    """Runs `for target in iterable: body(target)`. Once `left()` is true the loop ends; if it is
    dynamic, the following iterations are under a condition."""
    iterator = iter(iterable)
    if type(iterator) is GeneratorType:  # an object's
        generators.register(iterator)
    ran = True
    while ran:
        ran = _iterate(iterator, body, get, put, names, live, targets, roots, left)


def _gone(left: Left) -> Any:
    return left is not None and left()


def _iterate(
    iterator: Iterator[Any],
    body: Callable[[Any], None],
    get: Callable[[], Any],
    put: Put,
    names: tuple[str, ...],
    live: int,
    targets: tuple[str, ...],
    roots: Roots,
    left: Left,
) -> bool:
    """Runs one iteration. Returns whether the iterator had an item."""
    gone = _gone(left)
    if not dynamic(gone) and truth(gone):
        return False
    before = get()
    ran = True

    drawn: list[Any] = []

    def run() -> None:
        nonlocal ran
        if drawn and _computes(iterator):
            _refuse_again()
        # An iterator of the user's moves in here, so that a change under a condition is found. The
        # iteration may be traced twice, with the same item (`in_place.retried`).
        if not drawn:
            drawn.extend(islice(iterator, 1))
        ran = bool(drawn)
        if drawn:
            body(drawn[0])

    if dynamic(gone):
        with generators.resumed(get, put, names, live) as own:
            if_(gone, lambda: None, run, own.get, own.put, own.names, own.live, roots)
    else:
        run()
    if ran:
        put(_end_of_iteration(names, targets, before, get(), _gone(left)))
    return ran


def _computes(iterator: Iterator[Any]) -> bool:
    """Whether an iterator may run code of the program's."""
    kind = type(iterator)
    return kind in (GeneratorType, map, filter) or kind.__module__ != "builtins"


def _refuse_again() -> NoReturn:
    tracing.refuse(
        "a loop whose iterator computes its items ends under a dynamic condition, and an iteration"
        " changes a list, dictionary or object from before the loop",
        "compute the items before: for item in [*items]",
    )


def _end_of_iteration(
    names: tuple[str, ...],
    targets: tuple[str, ...],
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    gone: Any,
) -> list[Any]:
    """The variables after an iteration. A variable that had no value before it may have none on a
    path that left it early, except for the loop's variable."""
    early = dynamic(gone) or any(
        name.startswith(SKIP) and dynamic(value) for name, value in zip(names, after, strict=True)
    )
    if not early:
        return list(after)
    held = list(after)
    for index, name in enumerate(names):
        if name in targets or name.startswith("__fly_") or not isinstance(before[index], Undefined):
            continue
        if not isinstance(after[index], Undefined):
            held[index] = Undefined(
                name,
                f"`{name}` gets its value in a loop, which a dynamic condition may leave before",
                f"assign {name} a value before the loop",
            )
    return held


def for_exit(
    range_: Any,
    arguments: tuple[Any, ...],
    body: Callable[[Any], None],
    get: Callable[[], Any],
    put: Put,
    names: tuple[str, ...],
    live: int,
    targets: tuple[str, ...],
    roots: Roots,
    left: Left,
    unroll: Any = None,
) -> None:
    """Builds a loop over a range with an early exit. Python runs it over a static range, so that
    conditions on its variable are static. If an exit turns out to be dynamic and the range is long,
    the rest becomes a dynamic loop."""
    builder = tracing.active()
    rest = (body, get, put, names, live, targets, roots)
    if range_ not in RANGES or builder is None or not any(map(dynamic, arguments)):
        given = range_(*map(static, arguments))
        is_long = isinstance(given, range) and len(given) > UNROLLED
        if builder is None or builder.host or not is_long:
            each(given, body, get, put, names, live, targets, roots, left)
            return
        iterator, exits, ran = iter(given), builder.exits, True
        done = 0
        while ran and builder.exits == exits:
            ran = _iterate(iterator, *rest, left)
            done += ran
        remaining = given[done:]
        if not ran or not remaining:
            return
        arguments = remaining.start, remaining.stop, remaining.step
    gone = _gone(left)
    if not dynamic(gone) and truth(gone):
        return
    if left is None:
        for_(range_, arguments, *rest, unroll)
    else:
        for_left(bounds_of(range_, arguments), *rest, left, unroll)
