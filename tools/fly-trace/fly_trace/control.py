"""What rewritten Python calls in place of its control flow: `if`, `and`, `not`, calls, …

A condition that is known while tracing means what it means in Python: one branch is traced. A
dynamic one becomes scf.if: both branches are traced, each once, and the variables that are needed
afterwards are carried out.
"""

from __future__ import annotations

import builtins
import functools
import operator
import sys
from collections.abc import Callable
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

from fly_trace import state, tracing
from fly_trace.arithmetic import convert, describe
from fly_trace.decorators import HostFunction
from fly_trace.dtypes import BOOL
from fly_trace.loops import for_, python_range, while_
from fly_trace.places import Position
from fly_trace.state import Mismatch, Undefined
from fly_trace.tensors import Tensor
from fly_trace.values import Scalar

__all__ = ["for_", "python_range", "while_"]

Thunk = Callable[[], Any]
Span = tuple[int, int, int, int]  # line, column, end line, end column


def undefined(name: str) -> Undefined:
    return Undefined(name)


def load(value: Any) -> Any:
    """A local variable that may have no value."""
    if type(value) is Undefined:
        value.refuse()
    return value


def dynamic(value: Any) -> bool:
    """Whether a value's truth is known only when the kernel runs."""
    return isinstance(value, Scalar) and value.number is None


def truth(value: Any) -> bool:
    """The truth of a value that is not dynamic."""
    return bool(value.number) if isinstance(value, Scalar) else bool(value)


# -- branches -----------------------------------------------------------------------------------------


def if_(
    test: Any,
    then: Thunk,
    orelse: Thunk,
    get: Thunk,
    put: Callable[[Any], None],
    names: tuple[str, ...],
    live: int,
) -> None:
    """`if test: … else: …`. `get` and `put` read and write the variables `names` that the branches
    assign; the first `live` of them are needed afterwards."""
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
        f"`{name}` has a value on one way through the dynamic `if` of line {at} only",
        f"give {name} a value before the `if`",
    )


def _dead(name: str) -> Undefined:
    return Undefined(name, f"`{name}` is not carried out of the `if` of line {_line()}")


def _line() -> int:
    from fly_trace import places

    at = places.here(2)
    return at.line if at else 0


def _branch(
    test: Scalar,
    then: Thunk,
    orelse: Thunk,
    join: Callable[[Any, Any, Callable[[str, Any, Any], Any]], Any],
    what: str = "`if`",
) -> Any:
    """Builds scf.if. `join(a, b, merge)` puts together what the branches gave."""
    builder = tracing.current(what)
    if builder.host:
        tracing.refuse(
            f"the host function can't have a dynamic {what}: it is a plan of launches",
            "decide in the kernel, or use fx.where on the grid",
        )
    condition = builder.ssa(convert(test, BOOL))
    draft = builder.op("scf.if", [], [condition], regions=2)
    blocks = [region.blocks.append() for region in draft.regions]
    values = []
    for block, body in zip(blocks, (then, orelse), strict=True):
        with builder.inside(block):
            values.append(body())
    pairs: list[tuple[Any, Any]] = []
    results: list[Scalar] = []

    def leaf(a: Any, b: Any) -> Scalar:
        dtype = state.unify(a, b)
        pairs.append((a, b))
        results.append(Scalar(dtype))
        return results[-1]

    def merge(name: str, a: Any, b: Any) -> Any:
        try:
            return state.merge(a, b, leaf)
        except Mismatch as mismatch:
            state.refuse_mismatch(
                name, mismatch, f"after one way through the {what}", "after the other"
            )

    merged = join(*values, merge)
    for side, block in enumerate(blocks):
        with builder.at_end(block):
            operands = [
                builder.ssa(convert(pair[side], result.dtype))
                for pair, result in zip(pairs, results, strict=True)
            ]
            builder.op("scf.yield", [], operands)
    types = [builder.type(result.dtype.ir) for result in results]
    # The op's results are known only now, so the draft's blocks move to the real one. An else that
    # holds nothing but its yield is left out.
    final = builder.op("scf.if", types, [condition], regions=2)
    blocks[0].append_to(final.regions[0])
    if results or len(blocks[1].operations) > 1:
        blocks[1].append_to(final.regions[1])
    draft.erase()
    for result, value in zip(results, final.results, strict=True):
        result.value = value
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
    """`first and rest`: the rest is computed only where `first` holds."""
    value = first()
    if not rest:
        return value
    if not dynamic(value):
        return and_(*rest) if truth(value) else value
    return _short("and", value, lambda: and_(*rest))


def or_(first: Thunk, *rest: Thunk) -> Any:
    """`first or rest`: the rest is computed only where `first` does not hold."""
    value = first()
    if not rest:
        return value
    if not dynamic(value):
        return value if truth(value) else or_(*rest)
    return _short("or", value, lambda: or_(*rest))


def _short(word: str, value: Scalar, rest: Thunk) -> Any:
    def own() -> Any:
        # The operand that decides: where a bool decides, its value is known.
        return (word == "or") if value.dtype.is_bool else value

    ways = (rest, own) if word == "and" else (own, rest)
    return _branch(
        value, *ways, lambda x, y, merge: merge(f"the result of `{word}`", x, y), f"`{word}`"
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
    """`a < b < c`: each operand is computed once, those after a false comparison not at all."""

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
    """`a is b`, which says nothing about dynamic values: only None can be asked for."""
    for value, other in ((a, b), (b, a)):
        if isinstance(value, Scalar) and other is not None:
            tracing.refuse(
                f"`is` asks for the same object, and {describe(value)} is a value", "use =="
            )
    return a is b


def assert_(test: Any, message: Thunk) -> None:
    if dynamic(test):
        tracing.refuse(
            "an assert on a dynamic value can't stop a kernel",
            "check it on the host, or write the outcome to a tensor",
        )
    if not truth(test):
        raise AssertionError(*([text] if (text := message()) is not None else []))


def static_test(test: Any, word: str, span: Span) -> bool:
    """The test of an `if` or `while` that can be left by `word`, which stands at `span`."""
    if dynamic(test):
        where = "on a dynamic `while`" if word == "else" else "inside a dynamic `if` or `while`"
        tracing.refuse(
            f"`{word}` {where}: work items would part ways here",
            _INSTEAD.get(word, "give the code after it a condition instead"),
            at=Position(sys._getframe(1).f_code.co_filename, *span),
        )
    return truth(test)


_INSTEAD = {
    "return": "put what follows in the `else`, or assign a variable and return it at the end",
    "break": "carry a bool and test it in the loop's condition: `while go and …`",
    "continue": "put what follows it into an `if`",
    "raise": "a kernel can't raise; check on the host",
    "else": "set a bool in the loop and test it afterwards",
}


def static_subject(value: Any) -> Any:
    """The subject of a `match`."""

    def check(leaf: Any) -> Any:
        if isinstance(leaf, Scalar):
            tracing.refuse("`match` on a dynamic value", "use if/elif with ==")
        return leaf

    state.transform(value, check)
    return value


# -- Python objects in dynamic regions ------------------------------------------------------------------


def made(container: Any) -> Any:
    """A list, dictionary, set or iterator that the user's code makes here."""
    builder = tracing.active()
    if builder is not None:
        builder.made[id(container)] = container, builder.region
    return container


def _check_change(container: Any, how: str) -> None:
    """Refuses to change a Python object in a branch or loop that it was not made in: the change
    would happen while tracing, whichever way the kernel goes."""
    builder = tracing.active()
    if builder is None or builder.region == 0:
        return
    known = builder.made.get(id(container))
    if known is None or known[1] != builder.region:
        kind = type(container).__name__
        tracing.refuse(
            f"{how} changes a Python {kind} made outside this dynamic branch or loop",
            "assign a new one to the variable, or keep the values in fx.shared_array",
        )


def target(container: Any) -> Any:
    """The `x` of `x[i] = …`."""
    if not isinstance(container, Tensor):
        _check_change(container, "the assignment")
    return container


def target_attribute(thing: Any) -> Any:
    """The `x` of `x.a = …`."""
    if isinstance(thing, (Tensor, Scalar)):
        tracing.refuse(f"{describe(thing)} has no attribute that can be set")
    _check_change(thing, "the assignment")
    return thing


def augmented(word: str, value: Any, other: Any) -> Any:
    """`value word= other` of a variable; a list would be changed in place."""
    if not state.is_number(value) and hasattr(type(value), f"__{word}__"):
        _check_change(value, "the augmented assignment")
    return getattr(operator, word)(value, other)


def items(iterable: Any) -> Any:
    """What a `for` that Python runs goes through."""
    if hasattr(type(iterable), "__next__"):
        _check_change(iterable, "the loop")
    return iterable


_CHANGES = frozenset(
    "append extend insert remove pop clear sort reverse update setdefault popitem add discard"
    " difference_update intersection_update symmetric_difference_update appendleft popleft"
    " extendleft rotate".split()
)
_MAKES = frozenset((list, dict, set, sorted, zip, map, filter, enumerate, reversed, iter))
_REFUSED = {
    print: ("print() runs while the kernel is traced, not on the GPU", "write to a tensor"),
    input: ("input() has no meaning in a kernel", None),
    locals: ("locals() has no meaning in a kernel", None),
    globals: ("globals() has no meaning in a kernel", None),
    vars: ("vars() has no meaning in a kernel", None),
    dir: ("dir() has no meaning in a kernel", None),
    eval: ("eval() has no meaning in a kernel", "write the expression out"),
    exec: ("exec() has no meaning in a kernel", "write the statements out"),
}
_DEPTH = 64  # of calls: beyond it, a helper calls itself for ever


def call(function: Any, /, *arguments: Any, **named: Any) -> Any:
    """`function(…)`: helpers of the user's are rewritten too."""
    kind = type(function)
    if kind is FunctionType or kind is MethodType:
        return _call_python(function, arguments, named)
    if kind is BuiltinMethodType:
        if function in _REFUSED:
            tracing.refuse(*_REFUSED[function])
        owner = function.__self__
        if owner is not builtins and function.__name__ in _CHANGES:
            _check_change(owner, f"{function.__name__}()")
        if function in (next, setattr, delattr) and arguments:
            _check_change(arguments[0], f"{function.__name__}()")
    if kind is functools.partial:
        return call(function.func, *function.args, *arguments, **{**function.keywords, **named})
    for argument in arguments:
        if hasattr(type(argument), "__next__"):
            _check_change(argument, "the call")
    if isinstance(function, HostFunction):
        return _call_python(function.function, arguments, named)
    result = function(*arguments, **named)
    makes = (kind is type or kind is BuiltinMethodType) and function in _MAKES
    return made(result) if makes else result


def _call_python(function: Any, arguments: Any, named: Any) -> Any:
    from fly_trace.rewrite import is_users, rewritten

    plain = function.__func__ if isinstance(function, MethodType) else function
    if not is_users(plain):
        return function(*arguments, **named)
    builder = tracing.active()
    if builder is None:
        return function(*arguments, **named)
    if isinstance(function, MethodType):
        arguments = (function.__self__, *arguments)
    new = rewritten(plain)
    if len(builder.calls) >= _DEPTH:
        tracing.refuse(
            f"{plain.__name__} calls itself without end: a GPU has no call stack, so every call is"
            " traced",
            "use a loop; a recursion must end on values that are known while tracing",
        )
    builder.calls.append(plain.__code__)
    try:
        return new(*arguments, **named)
    finally:
        builder.calls.pop()
