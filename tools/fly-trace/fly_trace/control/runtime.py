"""The functions that rewritten Python calls for its control flow: `if`, `and`, `not`, calls, …"""

from __future__ import annotations

import sys
from typing import Any

from fly_common.errors import FlyError

from fly_trace.control.branches import (
    Thunk,
    condition,
    dynamic,
    if_,
    if_exit,
    truth,
    value_of,
)
from fly_trace.control.calls import foreign_functions as foreign_functions
from fly_trace.control.calls import sorting as sorting
from fly_trace.control.calls.builtin_functions import contains
from fly_trace.control.calls.call import call, item
from fly_trace.control.calls.filtered import filtered, kept
from fly_trace.control.calls.sequences import compared
from fly_trace.control.carried.carried_values import Undefined
from fly_trace.control.carried.named_values import carrying
from fly_trace.control.generators import static_range, yielding_test
from fly_trace.control.loops.dynamic import for_, while_
from fly_trace.control.loops.iterations import each, for_exit
from fly_trace.control.loops.trips import ranged
from fly_trace.control.matching import match
from fly_trace.control.messages import call_printf, require
from fly_trace.control.objects import (
    augmented,
    deleted_from,
    items,
    target,
    target_attribute,
)
from fly_trace.control.roles import entered, members
from fly_trace.core import rules, tracing
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
    "call_printf",
    "carrying",
    "compared",
    "deleted_from",
    "each",
    "entered",
    "filtered",
    "for_",
    "for_exit",
    "if_",
    "if_exit",
    "item",
    "items",
    "kept",
    "match",
    "members",
    "ranged",
    "static_range",
    "target",
    "target_attribute",
    "while_",
    "yielding_test",
]

Span = tuple[int, int, int, int]  # line, column, end line, end column


def undefined(name: str) -> Undefined:
    return Undefined(name)


def deleted(name: str) -> Undefined:
    return Undefined(name, f"`{name}` is deleted")


def variables(holder: Any) -> None:
    """Notes the variables of the calling function, which are those of its function `holder`."""
    builder = tracing.active()
    if builder is not None:
        frame, code = sys._getframe(1), holder.__code__
        builder.variables[id(frame)] = frame.f_code, code.co_freevars, holder.__closure__ or ()


def load(value: Any) -> Any:
    """Loads a local variable that may be unassigned."""
    if type(value) is Undefined:
        value.refuse()
    return value


def ifexp(test: Any, a: Thunk, b: Thunk) -> Any:
    """`a if test else b`."""
    if not dynamic(test) and not dynamic(test := condition(test)):
        return a() if truth(test) else b()
    return value_of(test, a, b, "the conditional expression", "conditional expression")


def and_(first: Thunk, *rest: Thunk) -> Any:
    """`first and rest`: the rest is only evaluated if `first` is true."""
    value = first()
    if not rest:
        return value
    if not dynamic(test := condition(value)):
        return and_(*rest) if truth(test) else value
    return _short("and", test, value, lambda: and_(*rest))


def or_(first: Thunk, *rest: Thunk) -> Any:
    """`first or rest`: the rest is only evaluated if `first` is false."""
    value = first()
    if not rest:
        return value
    if not dynamic(test := condition(value)):
        return value if truth(test) else or_(*rest)
    return _short("or", test, value, lambda: or_(*rest))


def _short(word: str, test: Scalar, value: Any, rest: Thunk) -> Any:
    def own() -> Any:
        # The value of the operand that decides; for a bool it is known.
        return (word == "or") if test is value and test.dtype.is_bool else value

    ways = (rest, own) if word == "and" else (own, rest)
    return value_of(test, *ways, f"the result of `{word}`", f"`{word}`")


def not_(value: Any) -> Any:
    if not dynamic(value) and not dynamic(value := condition(value)):
        return not truth(value)
    builder = tracing.current("`not`")
    test = builder.ssa(convert(value, BOOL))
    true = builder.constant(True, BOOL)
    return Scalar(BOOL, builder.one("arith.xori", "i1", test, true))


def in_(item: Any, container: Any) -> Any:
    return contains(container, item)


def chain(words: tuple[str, ...], *operands: Thunk) -> Any:
    """`a < b < c`: each operand is evaluated once, and none after a false comparison."""

    def rest(index: int, left: Any) -> Any:
        right = operands[index + 1]()
        word = words[index]
        if word in ("Is", "IsNot"):
            result = is_(left, right) is (word == "Is")
        elif word in ("In", "NotIn"):
            found = contains(right, left)
            result = found if word == "In" else not_(found)
        else:
            result = compared(word, left, right)
        if index + 1 == len(words):
            return result
        return and_(lambda: result, lambda: rest(index + 1, right))

    return rest(0, operands[0]())


def is_(a: Any, b: Any) -> bool:
    """`a is b`. For dynamic values, only `is None` is allowed; by the rules of another language,
    which asks so for an argument that is not given, `is True` and `is False` too."""
    own = rules.current()
    for value, other in ((a, b), (b, a)):
        is_plain = other is None or (own is not None and (own.is_free or isinstance(other, bool)))
        if isinstance(value, Scalar) and not is_plain:
            tracing.refuse(
                f"`is` compares object identity, but {describe(value)} is a value", "use =="
            )
    return a is b


def assert_(test: Any, message: Thunk) -> None:
    if dynamic(test) or dynamic(test := condition(test)):
        builder = tracing.current("an assert")
        if builder.host:
            checks.check(builder, test, message)
        else:
            require(test, message)
        return
    if not truth(test):
        raise AssertionError(*([text] if (text := message()) is not None else []))


def static_test(test: Any, span: Span) -> bool:
    """The test of an `if` with a `raise` at `span`."""
    if dynamic(test := condition(test)):
        tracing.refuse(
            "`raise` inside a dynamic `if`: a kernel can't raise an exception",
            "check it on the host",
            at=Position(sys._getframe(1).f_code.co_filename, *span),
        )
    return truth(test)


def refusals() -> tuple[type[BaseException], ...]:
    """The errors that a program can't catch: the kernel's own, and those under a dynamic
    condition. They end the trace."""
    own = rules.current()
    return () if own is not None and own.is_free else (FlyError,)


class context:
    """The context manager of a `with`: `__enter__` and `__exit__` are traced, and an error of the
    kernel is not suppressed."""

    def __init__(self, manager: Any):
        self.manager = manager

    def __enter__(self) -> Any:
        return call(self.manager.__enter__)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        suppressed = call(self.manager.__exit__, kind, error, traceback)
        if dynamic(suppressed):
            tracing.refuse("__exit__ returns a dynamic value")
        return truth(suppressed) and not isinstance(error, refusals())


def returned(value: Any, names: Any) -> Any:
    """The value of `return value`, where a plain name stands in it. `names` has the names in the
    form of the value, None for what is written otherwise. The last one that a host function's trace
    comes to is the host function's own."""
    builder = tracing.active()
    if builder is not None and builder.host:
        builder.returned = value, names
    return value


RUNTIME.cell_contents = sys.modules[__name__]
