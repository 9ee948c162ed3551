"""The functions that rewritten Python calls for its control flow: `if`, `and`, `not`, calls, …

A static condition has Python's meaning: one branch is traced. A dynamic one becomes scf.if: both
branches are traced once, and the variables that are read afterwards are carried.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

from fly_trace.control import carried_values
from fly_trace.control.carried_values import Mismatch, Undefined
from fly_trace.control.loops import for_, python_range, while_
from fly_trace.control.objects import augmented, call, item, items, target, target_attribute
from fly_trace.core import locations, tracing
from fly_trace.core.locations import Position
from fly_trace.core.tracing import describe
from fly_trace.host import checks
from fly_trace.rewrite import RUNTIME
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import BOOL
from fly_trace.values.scalars import Scalar

# Re-exported for rewritten code.
__all__ = [
    "augmented",
    "call",
    "for_",
    "item",
    "items",
    "python_range",
    "target",
    "target_attribute",
    "while_",
]

Thunk = Callable[[], Any]
Span = tuple[int, int, int, int]  # line, column, end line, end column


def undefined(name: str) -> Undefined:
    return Undefined(name)


def load(value: Any) -> Any:
    """Loads a local variable that may be unassigned."""
    if type(value) is Undefined:
        value.refuse()
    return value


def dynamic(value: Any) -> bool:
    """Whether a value's truth is only known at run time."""
    return isinstance(value, Scalar) and value.number is None


def truth(value: Any) -> bool:
    """The truth of a static value."""
    return bool(value.number) if isinstance(value, Scalar) else bool(value)


# -- branches --------------------------------------------------------------------------------------


def if_(
    test: Any,
    then: Thunk,
    orelse: Thunk,
    get: Thunk,
    put: Callable[[Any], None],
    names: tuple[str, ...],
    live: int,
) -> None:
    """Builds `if test: … else: …`. `get` and `put` read and write the variables `names` that the
    branches assign. The first `live` of them are read afterwards."""
    if not dynamic(test):
        (then if truth(test) else orelse)()
        return
    before = get()

    def branch(body: Thunk) -> Thunk:
        def run() -> Any:
            put(before)
            body()
            return get()

        return run

    def join(a: Any, b: Any, merge: Callable[[str, Any, Any], Any]) -> list[Any]:
        merged: list[Any] = []
        for name, x, y in zip(names[:live], a, b, strict=False):
            if isinstance(x, Undefined) or isinstance(y, Undefined):
                merged.append(x if x is y else _one_sided(name))
            else:
                merged.append(merge(name, x, y))
        merged += [_dead(name) for name in names[live:]]
        return merged

    put(_branch(test, branch(then), branch(orelse), join))


def _one_sided(name: str) -> Undefined:
    at = _line()
    return Undefined(
        name,
        f"`{name}` is assigned on only one side of the dynamic `if` on line {at}",
        f"assign {name} a value before the `if`",
    )


def _dead(name: str) -> Undefined:
    return Undefined(name, f"`{name}` is not carried out of the `if` on line {_line()}")


def _line() -> int:
    at = locations.here(2)
    return at.line if at else 0


def _branch(
    test: Scalar,
    then: Thunk,
    orelse: Thunk,
    join: Callable[[Any, Any, Callable[[str, Any, Any], Any]], Any],
    what: str = "`if`",
) -> Any:
    """Builds scf.if. `join(a, b, merge)` merges the values of the branches."""
    builder = tracing.current(what)
    condition = builder.ssa(convert(test, BOOL))
    draft = builder.op("scf.if", [], [condition], regions=2)
    blocks = [region.blocks.append() for region in draft.regions]
    values = []
    for block, body in zip(blocks, (then, orelse), strict=True):
        with builder.inside(block):
            values.append(body())
    pairs: list[tuple[Any, Any]] = []
    results: list[Any] = []
    kinds: list[carried_values.Carried] = []
    types: list[Any] = []

    def leaf(a: Any, b: Any) -> Any:
        kinds.append(carried_values.unify(a, b))
        pairs.append((a, b))
        results.append(kinds[-1].made(None))
        return results[-1]

    def merge(name: str, a: Any, b: Any) -> Any:
        try:
            return carried_values.merge(a, b, leaf)
        except Mismatch as mismatch:
            carried_values.refuse_mismatch(
                name, mismatch, f"on one side of the {what}", "on the other side"
            )

    merged = join(values[0], values[1], merge)
    for side, block in enumerate(blocks):
        with builder.at_end(block):
            operands = [
                kind.ssa(builder, pair[side]) for pair, kind in zip(pairs, kinds, strict=True)
            ]
            if side == 0:
                types = [operand.type for operand in operands]
            builder.op("scf.yield", [], operands)
    # The result types are only known now, so the blocks are moved to a new op. An else that
    # contains only its yield is omitted.
    final = builder.op("scf.if", types, [condition], regions=2)
    blocks[0].append_to(final.regions[0])
    if results or len(blocks[1].operations) > 1:
        blocks[1].append_to(final.regions[1])
    draft.erase()
    for kind, result, value in zip(kinds, results, final.results, strict=True):
        kind.fill(result, value)
    return merged


def ifexp(test: Any, a: Thunk, b: Thunk) -> Any:
    """`a if test else b`."""
    if not dynamic(test):
        return a() if truth(test) else b()
    return _branch(
        test,
        a,
        b,
        lambda x, y, merge: merge("the conditional expression", x, y),
        "conditional expression",
    )


def and_(first: Thunk, *rest: Thunk) -> Any:
    """`first and rest`: the rest is only evaluated if `first` is true."""
    value = first()
    if not rest:
        return value
    if not dynamic(value):
        return and_(*rest) if truth(value) else value
    return _short("and", value, lambda: and_(*rest))


def or_(first: Thunk, *rest: Thunk) -> Any:
    """`first or rest`: the rest is only evaluated if `first` is false."""
    value = first()
    if not rest:
        return value
    if not dynamic(value):
        return value if truth(value) else or_(*rest)
    return _short("or", value, lambda: or_(*rest))


def _short(word: str, value: Scalar, rest: Thunk) -> Any:
    def own() -> Any:
        # The value of the operand that decides; for a bool it is known.
        return (word == "or") if value.dtype.is_bool else value

    ways = (rest, own) if word == "and" else (own, rest)
    return _branch(
        value,
        ways[0],
        ways[1],
        lambda x, y, merge: merge(f"the result of `{word}`", x, y),
        f"`{word}`",
    )


def not_(value: Any) -> Any:
    if not dynamic(value):
        return not truth(value)
    builder = tracing.current("`not`")
    condition = builder.ssa(convert(value, BOOL))
    true = builder.constant(True, BOOL)
    return Scalar(BOOL, builder.one("arith.xori", "i1", condition, true))


_COMPARE = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


def chain(words: tuple[str, ...], *operands: Thunk) -> Any:
    """`a < b < c`: each operand is evaluated once, and none after a false comparison."""

    def rest(index: int, left: Any) -> Any:
        right = operands[index + 1]()
        if words[index] in ("Is", "IsNot"):
            result = is_(left, right) is (words[index] == "Is")
        else:
            result = _COMPARE[words[index]](left, right)
        if index + 1 == len(words):
            return result
        return and_(lambda: result, lambda: rest(index + 1, right))

    return rest(0, operands[0]())


def is_(a: Any, b: Any) -> bool:
    """`a is b`. For dynamic values, only `is None` is allowed."""
    for value, other in ((a, b), (b, a)):
        if isinstance(value, Scalar) and other is not None:
            tracing.refuse(
                f"`is` compares object identity, but {describe(value)} is a value", "use =="
            )
    return a is b


def assert_(test: Any, message: Thunk) -> None:
    if dynamic(test):
        builder = tracing.current("an assert")
        if builder.host:
            checks.check(builder, test, message)
            return
        tracing.refuse(
            "an assert on a dynamic value can't stop a kernel",
            "check it on the host, or write the result to a tensor",
        )
    if not truth(test):
        raise AssertionError(*([text] if (text := message()) is not None else []))


def static_test(test: Any, word: str, span: Span) -> bool:
    """The test of an `if` or `while` that contains `word` (such as `break`) at `span`."""
    if dynamic(test):
        where = "on a dynamic `while`" if word == "else" else "inside a dynamic `if` or `while`"
        tracing.refuse(
            f"`{word}` {where}: the work items would diverge here",
            _INSTEAD.get(word, "put the code after it under a condition instead"),
            at=Position(sys._getframe(1).f_code.co_filename, *span),
        )
    return truth(test)


_INSTEAD = {
    "return": "put the following code in the `else`, or assign a variable and return it at the end",
    "break": "carry a bool and test it in the loop's condition: `while go and …`",
    "continue": "put the following code in an `if`",
    "raise": "a kernel can't raise; check on the host",
    "else": "set a bool in the loop and test it afterwards",
}


def returned(value: Any, names: Any) -> Any:
    """The value of `return value`, where a plain name stands in it. `names` has the names in the
    form of the value, None for what is written otherwise. The last one that a host function's trace
    comes to is the host function's own."""
    builder = tracing.active()
    if builder is not None and builder.host:
        builder.returned = value, names
    return value


def static_subject(value: Any) -> Any:
    """The subject of a `match`."""

    def check(leaf: Any) -> Any:
        if isinstance(leaf, Scalar):
            tracing.refuse("`match` on a dynamic value", "use if/elif with ==")
        return leaf

    carried_values.transform(value, check)
    return value


RUNTIME.cell_contents = sys.modules[__name__]
