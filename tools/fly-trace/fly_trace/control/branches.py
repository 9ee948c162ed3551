"""Branches. A static condition has Python's meaning: one side is traced. A dynamic one becomes
scf.if: both sides are traced once, and the variables that are read afterwards are carried.

A side may leave the function or an iteration (`rewrite.exits`). Then the other side alone decides
what value and type a variable has behind the `if`, which only its paths reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace.control.carried import in_place
from fly_trace.control.carried.carried_values import Undefined
from fly_trace.control.carried.in_place import Roots, Variables
from fly_trace.control.carried.merging import GENERATORS, Merging
from fly_trace.core import locations, tracing
from fly_trace.effects import user_code
from fly_trace.rewrite.exits import RETURNED, SKIP, STATE, VALUE
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import BOOL
from fly_trace.values.scalars import Scalar

Thunk = Callable[[], Any]
Put = Callable[[Any], None]


def dynamic(value: Any) -> bool:
    """Whether a value's truth is only known at run time."""
    return isinstance(value, Scalar) and value.number is None


def truth(value: Any) -> bool:
    """The truth of a static value."""
    return bool(value.number) if isinstance(value, Scalar) else bool(value)


def condition(value: Any) -> Any:
    """What decides whether a value is true: itself, or for an object of the user's what its
    `__bool__` returns, which may be dynamic."""
    kind = type(value)
    if kind in _DECIDE:
        return value
    method = user_code.method_of(kind, "__bool__")
    if method is None:
        return value
    found = method(value)
    is_truth = found.dtype.is_bool if dynamic(found) else type(found) is bool
    return found if is_truth else value


# Types whose values are conditions themselves.
_DECIDE = frozenset((bool, int, float, str, type(None), list, tuple, dict, Scalar))


def if_(
    test: Any,
    then: Thunk,
    orelse: Thunk,
    get: Thunk,
    put: Put,
    names: tuple[str, ...],
    live: int,
    roots: Roots = (),
    only: str | None = None,
) -> None:
    """Builds `if test: … else: …`. `get` and `put` read and write the variables `names` that the
    branches assign. The first `live` of them are read afterwards. `only` is the side that may
    modify objects, if the other one leaves the kernel. For `roots` see `in_place`."""
    if not dynamic(test) and not dynamic(test := condition(test)):
        (then if truth(test) else orelse)()
        return

    def build(all_: Variables) -> None:
        if only is None:
            _dynamic_if(test, then, orelse, all_)
        else:
            _dynamic_if(test, then, orelse, Variables(get, put, names, live), only, all_)

    in_place.retried(roots, get, put, names, live, build, is_loop=False)


def _dynamic_if(
    test: Scalar,
    then: Thunk,
    orelse: Thunk,
    own: Variables,
    only: str | None = None,
    all_: Variables | None = None,
) -> None:
    """Builds scf.if. With `only`, the changes of `all_` on the other side are undone: nothing
    reads them."""
    names, live = own.names, own.live
    before = own.get()

    def side(body: Thunk, undone: Variables | None) -> Thunk:
        def run() -> Any:
            own.put(before)
            contents = undone.get() if undone is not None else None
            body()
            values = own.get()
            if undone is not None:
                undone.put(contents)
            return values

        return run

    def join(a: Any, b: Any, merging: Merging) -> list[Any]:
        leaves = [_leaves(names, x) for x in (a, b)]
        merged = _joined(names[:live], a, b, merging, leaves, own.contents)
        return [*merged, *(_dead(name) for name in names[live:])]

    first = side(then, all_ if only == "else" else None)
    second = side(orelse, all_ if only == "then" else None)
    own.put(branch(test, first, second, join, only=only))


def value_of(test: Scalar, then: Thunk, orelse: Thunk, name: str, what: str) -> Any:
    """The value of one of two expressions, whose functions may change containers."""
    made: Any = None

    def build(own: Variables) -> None:
        nonlocal made
        before = own.get()

        def side(body: Thunk) -> Thunk:
            def run() -> Any:
                own.put(before)
                value = body()
                return value, own.get()

            return run

        def join(a: Any, b: Any, merging: Merging) -> Any:
            contents = [
                x if x is y else merging.merge(one, x, y)
                for one, x, y in zip(own.names, a[1], b[1], strict=True)
            ]
            return merging.merge(name, a[0], b[0]), contents

        made, contents = branch(test, side(then), side(orelse), join, what)
        own.put(contents)

    in_place.retried((), tuple, lambda _: None, (), 0, build)
    return made


def if_exit(
    test: Any,
    then: Thunk,
    orelse: Thunk,
    get: Thunk,
    put: Put,
    names: tuple[str, ...],
    live: int,
    roots: Roots,
    only: str | None,
) -> None:
    """An `if` with an early exit. `only` is the side with all that follows, if the other one always
    returns None. In a kernel or a host function, that side may modify objects."""
    builder = tracing.active()
    if builder is not None and dynamic(test := condition(test)):
        builder.exits += 1
        if builder.calls:
            only = None  # a helper's caller has objects too
    if_(test, then, orelse, get, put, names, live, roots, only)


def _leaves(names: tuple[str, ...], values: Any) -> tuple[bool, bool]:
    """Whether a side of an `if` always returns, and whether it always leaves the iteration."""
    returns = skips = False
    for name, value in zip(names, values, strict=True):
        if value is True:
            returns = returns or name == RETURNED
            skips = skips or name.startswith(SKIP)
    return returns, returns or skips


def _joined(
    names: tuple[str, ...],
    a: Any,
    b: Any,
    merging: Merging,
    leaves: list[tuple[bool, bool]],
    contents: int,
) -> list[Any]:
    """The variables after an `if`. What a variable is on a side that returns does not matter; on
    one that leaves the iteration, it matters if the variable had a value before. The first
    `contents` are those of containers, which a function's caller reads when it has returned."""
    merged: list[Any] = []
    for at, (name, x, y) in enumerate(zip(names, a, b, strict=False)):
        missing = isinstance(x, Undefined), isinstance(y, Undefined)
        own = name.startswith("__fly_") and not name.startswith(STATE)
        unread = [
            (name == VALUE and gone) if own else (returns and at >= contents) or (skips and gone)
            for (returns, skips), gone in zip(leaves, missing, strict=True)
        ]
        if x is y:
            merged.append(x)
        elif name == GENERATORS:
            merged.append(merging.resumed(y))
        elif missing[0] and missing[1]:
            merged.append(_one_sided(name, None))
        elif unread[0] and not missing[1]:
            merged.append(merging.fill(name, y, 1))
        elif unread[1] and not missing[0]:
            merged.append(merging.fill(name, x, 0))
        elif missing[0] or missing[1]:
            merged.append(_one_sided(name, missing[1]))
        elif own and type(x) is type(y) is bool:
            merged.append(merging.test(x))
        else:
            merged.append(merging.merge(name, x, y))
    return merged


def _one_sided(name: str, then: bool | None) -> Undefined:
    at = _line()
    if then is None:
        why = f"`{name}` is not carried out of the dynamic `if` on line {at}"
    else:
        sides = ("true", "false") if then else ("false", "true")
        why = (
            f"`{name}` is assigned where the dynamic `if` on line {at} is {sides[0]}, and has no"
            f" value where it is {sides[1]}"
        )
    return Undefined(name, why, f"assign {name} a value before the `if`")


def _dead(name: str) -> Undefined:
    return Undefined(name, f"`{name}` is not carried out of the `if` on line {_line()}")


def _line() -> int:
    at = locations.here(2)
    return at.line if at else 0


def branch(
    test: Scalar,
    then: Thunk,
    orelse: Thunk,
    join: Callable[[Any, Any, Merging], Any],
    what: str = "`if`",
    only: str | None = None,
) -> Any:
    """Builds scf.if. `join(a, b, merging)` merges the values of the branches. The side `only` may
    modify objects; it is traced last."""
    builder = tracing.current(what)
    if (named := builder.named) is not None:
        then, orelse, join = named.side(then), named.side(orelse), named.join(join, what)
    condition = builder.ssa(convert(test, BOOL))
    draft = builder.op("scf.if", [], [condition], regions=2)
    blocks = [region.blocks.append() for region in draft.regions]
    sides = [(blocks[0], then, "then"), (blocks[1], orelse, "else")]
    values = {}
    for block, body, side in sorted(sides, key=lambda one: one[2] == only):
        with builder.inside(block, free=side == only):
            values[side] = body()
    merging = Merging(builder, what, condition, draft)
    merged = join(values["then"], values["else"], merging)
    types: list[Any] = []
    for side, block in enumerate(blocks):
        with builder.at_end(block):
            operands = merging.operands(side)
            if side == 0:
                types = [operand.type for operand in operands]
            builder.op("scf.yield", [], operands)
    # The result types are only known now, so the blocks are moved to a new op. An else that
    # contains only its yield is omitted.
    final = builder.op("scf.if", types, [condition], regions=2)
    blocks[0].append_to(final.regions[0])
    if merging.results or len(blocks[1].operations) > 1:
        blocks[1].append_to(final.regions[1])
    draft.erase()
    for kind, result, value in zip(merging.kinds, merging.results, final.results, strict=True):
        kind.fill(result, value)
    return merged
