"""`for … in range(…)` and `while` as scf.for and scf.while.

A `range` loop of a kernel always becomes scf.for, even with static bounds; `range_constexpr`
unrolls. Variables that the body assigns and that are read again are carried. Each keeps its type.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_common.quoting import quoted
from fly_common.record import record

from fly_trace.control import carried_values
from fly_trace.control.carried_values import Mismatch, Undefined
from fly_trace.core import locations, tracing
from fly_trace.core.tracing import describe
from fly_trace.values import integer_ops
from fly_trace.values.arithmetic import compare
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import BOOL, I64, DType, default, promote
from fly_trace.values.math_functions import meet
from fly_trace.values.scalars import Scalar
from fly_trace.values.value_ranges import Interval, interval

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

Put = Callable[[Any], None]
PEELED = 10_000  # maximum number of iterations of a static `while`


def python_range(range_: Any, arguments: tuple[Any, ...], word: str, span: Any) -> Any:
    """A `range` loop with an early exit `word`. Python runs it, so its bounds must be static."""
    if range_ is builtins.range and any(_is_dynamic(argument) for argument in arguments):
        tracing.refuse(
            f"`{word}` {'on' if word == 'else' else 'in'} a loop over a dynamic range",
            "use `while` with a condition that ends the loop, or fx.range_constexpr",
            at=locations.Position(sys._getframe(1).f_code.co_filename, *span),
        )
    return range_(*map(_static, arguments))


def _is_dynamic(value: Any) -> bool:
    return isinstance(value, Scalar) and value.number is None


def _static(value: Any) -> Any:
    return value.number if isinstance(value, Scalar) and value.number is not None else value


class Carried:
    """The variables that a loop carries. `names` are those that its body assigns; the first `count`
    are read again. Those with a value before the loop are carried, leaf by leaf."""

    def __init__(self, names: tuple[str, ...], count: int, before: tuple[Any, ...]):
        self.names = names
        self.before = before
        self.slots = [index for index in range(count) if not isinstance(before[index], Undefined)]
        self.leaves = [
            leaf for index in self.slots for leaf in carried_values.leaves(before[index])
        ]
        self.kinds = [carried_values.kind_of(leaf) for leaf in self.leaves]

    def initial(self, builder: Builder) -> list[Any]:
        pairs = zip(self.leaves, self.kinds, strict=True)
        return [kind.ssa(builder, leaf) for leaf, kind in pairs]

    def inside(self, values: Any) -> list[Any]:
        """The variables at the start of an iteration, from a block's arguments."""
        given = iter(zip(values, self.kinds, strict=True))

        def leaf(_: Any) -> Any:
            value, kind = next(given)
            return kind.made(value)

        held: list[Any] = [Undefined(name) for name in self.names]
        for index in self.slots:
            held[index] = carried_values.transform(self.before[index], leaf)
        return held

    def outcome(self, builder: Builder, start: list[Any], after: tuple[Any, ...]) -> list[Any]:
        """The values that an iteration passes to the next, converted to the variables' types."""
        given: list[Any] = []

        def leaf(_: Any, now: Any) -> Any:
            given.append(now)
            return now

        for index in self.slots:
            name = self.names[index]
            try:
                _pair(start[index], after[index], leaf)
            except Mismatch as mismatch:
                before = self.before[index]
                mismatch.a = before if not mismatch.path else mismatch.a
                carried_values.refuse_mismatch(
                    name, mismatch, "before the loop", "at the end of an iteration"
                )
        values = []
        for now, kind, before in zip(given, self.kinds, self.leaves, strict=True):
            try:
                values.append(kind.ssa(builder, now))
            except Mismatch:
                carried_values.refuse_mismatch(
                    self._name_of(before),
                    Mismatch(before, now),
                    "before the loop",
                    "at the end of an iteration",
                )
        return values

    def _name_of(self, wanted: Any) -> str:
        for index in self.slots:
            if any(leaf is wanted for leaf in carried_values.leaves(self.before[index])):
                return self.names[index]
        return "a variable"

    def after(
        self, results: Any, end: tuple[Any, ...], what: str, targets: tuple[str, ...] = ()
    ) -> list[Any]:
        """The variables after the loop."""
        held = self.inside(results)
        for index, name in enumerate(self.names):
            if index in self.slots:
                continue
            if end[index] is self.before[index]:
                held[index] = end[index]
            elif name in targets:
                held[index] = Undefined(
                    name,
                    f"`{name}` is the variable of {what}, and has no value after it",
                    "keep it in another variable inside the loop",
                )
            else:
                held[index] = Undefined(
                    name,
                    f"`{name}` gets its value in {what}, which may not run at all",
                    f"assign {name} a value before the loop",
                )
        return held


def _pair(before: Any, after: Any, leaf: Callable[[Any, Any], Any], path: str = "") -> None:
    """Walks two trees in parallel. Raises Mismatch if their structures differ."""
    if carried_values.is_leaf(before) and carried_values.is_leaf(after):
        leaf(before, after)
    elif (
        carried_values.is_leaf(before)
        or carried_values.is_leaf(after)
        or type(before) is not type(after)
    ):
        raise Mismatch(before, after, path)
    elif isinstance(before, (tuple, list)) and len(before) == len(after):
        for index, (x, y) in enumerate(zip(before, after, strict=True)):
            _pair(x, y, leaf, f"{path}[{index}]")
    elif isinstance(before, dict) and list(before) == list(after):
        for key in before:
            _pair(before[key], after[key], leaf, f"{path}[{quoted(key, 40)}]")
    elif (fields := carried_values.fields_of(before)) is not None:
        for name in fields:
            _pair(getattr(before, name), getattr(after, name), leaf, f"{path}.{name}")
    elif before is not after and not (
        not isinstance(before, (tuple, list, dict)) and carried_values._equal(before, after)
    ):
        raise Mismatch(before, after, path)


# -- for -------------------------------------------------------------------------------------------


def for_(
    range_: Any,
    arguments: tuple[Any, ...],
    body: Callable[[Any], None],
    get: Callable[[], Any],
    put: Put,
    names: tuple[str, ...],
    carried: int,
    targets: tuple[str, ...],
) -> None:
    """Builds `for target in range(*arguments): body(target)`. For `names` see Carried."""
    builder = tracing.active()
    static = not any(_is_dynamic(argument) for argument in arguments)
    if range_ is not builtins.range or (static and (builder is None or builder.host)):
        for item in range_(*map(_static, arguments)):
            body(item)
        return
    assert builder is not None
    if static and not len(range(*map(_static, arguments))):
        return
    start, stop, step = _bounds(arguments)
    dtype = I64 if builder.host else _loop_type(start, stop, step)
    held = Carried(names, carried, get())
    initial = held.initial(builder)
    trips = _trips(builder, start, stop, step, dtype)
    attributes = {"unsignedCmp": builder.attribute("unit")} if trips.unsigned else {}
    operands = [trips.lower, trips.upper, trips.step, *initial]
    types = [value.type for value in initial]
    loop = builder.op("scf.for", types, operands, attributes, regions=1)
    location = builder.locations.here()
    kinds = [trips.lower.type, *types]
    block = loop.regions[0].blocks.append(*kinds, arg_locs=[location] * len(kinds))
    with builder.inside(block):
        counter, *values = block.arguments
        begin = held.inside(values)
        put(begin)
        body(Scalar(dtype, trips.item(counter)))
        end = get()
        builder.op("scf.yield", [], held.outcome(builder, begin, end))
    put(held.after(loop.results, end, "a dynamic loop", targets))


def _bounds(arguments: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    if not 1 <= len(arguments) <= 3:
        raise TypeError(f"range expected 1 to 3 arguments, got {len(arguments)}")
    for argument in arguments:
        ok = (
            argument.dtype.is_integer
            if isinstance(argument, Scalar)
            else hasattr(argument, "__index__")
        )
        if not ok:
            tracing.refuse(f"range takes integers, not {describe(argument)}")
    given = [
        argument if isinstance(argument, Scalar) else operator.index(argument)
        for argument in arguments
    ]
    start, stop = (0, given[0]) if len(given) == 1 else given[:2]
    step = given[2] if len(given) == 3 else 1
    if not _is_dynamic(step) and _static(step) == 0:
        raise ValueError("range() arg 3 must not be zero")
    return start, stop, step


def _loop_type(start: Any, stop: Any, step: Any) -> DType:
    """The loop variable's type: the promotion of the bounds. A static step only has to fit."""
    if isinstance(step, Scalar):
        return meet("range", start, stop, step)
    if isinstance(start, Scalar) or isinstance(stop, Scalar):
        return meet("range", start, stop)
    return promote(default(start), default(stop))


@record
class Trips:
    """The parameters of scf.for: bounds and step, whether it compares them as unsigned, and the
    function from its counter to the loop variable."""

    lower: Any
    upper: Any
    step: Any
    unsigned: bool
    item: Callable[[Any], Any] = lambda counter: counter


def _trips(builder: Builder, start: Any, stop: Any, step: Any, dtype: DType) -> Trips:
    """Computes the parameters of scf.for for a range.

    scf.for adds the step once more after the last iteration, and this must not overflow. If it
    could, a loop over non-negative numbers uses unsigned comparison, which has enough range. Other
    loops count iterations, and compute the variable from the count.
    """

    def ssa(value: Any) -> Any:
        return builder.ssa(convert(value, dtype))

    first, end = ssa(start), ssa(stop)
    size = _static(step)
    if not _is_dynamic(step) and size > 0:
        plain = Trips(first, end, ssa(size), unsigned=not dtype.is_signed)
        if size == 1 or dtype.bits == 64:  # with 64 bits, the program guarantees that the sum fits
            return plain
        ends = _numbers(builder, stop, end, dtype)
        if ends[1] + size - 1 <= dtype.range[1]:
            return plain
        if dtype.is_signed and _numbers(builder, start, first, dtype)[0] >= 0:
            if ends[0] < 0:
                end = builder.one("arith.maxsi", dtype.ir, end, builder.constant(0, dtype))
            return Trips(first, end, plain.step, unsigned=True)

    def make(name: str, *operands: Any) -> Any:
        return builder.one(f"arith.{name}", dtype.ir, *operands)

    zero, one = builder.constant(0, dtype), builder.constant(1, dtype)
    up = builder.ssa(compare(builder, "lt", Scalar(dtype, first), Scalar(dtype, end), dtype))
    down = builder.ssa(compare(builder, "lt", Scalar(dtype, end), Scalar(dtype, first), dtype))
    if _is_dynamic(step):
        by = ssa(step)
        is_forward = compare(builder, "gt", Scalar(dtype, by), Scalar(dtype, zero), dtype)
        forward = builder.ssa(is_forward)
        runs = builder.one("arith.select", "i1", forward, up, down)
        # Python raises an error for a step of zero; here the loop does not run.
        moves = integer_ops.test(builder, 1, by, zero)
        runs = builder.one("arith.andi", "i1", runs, moves)
        span = make("select", forward, make("subi", end, first), make("subi", first, end))
        pace = make("maxui", make("select", forward, by, make("subi", zero, by)), one)
    else:
        runs = up if size > 0 else down
        ends = (end, first) if size > 0 else (first, end)
        span, pace = make("subi", *ends), builder.constant(abs(size), dtype)
        by = builder.constant(
            size if dtype.is_signed or size > 0 else size + dtype.range[1] + 1, dtype
        )
    count = make("addi", make("divui", make("subi", span, one), pace), one)
    count = make("select", runs, count, zero)

    def item(counter: Any) -> Any:
        return make("addi", first, make("muli", counter, by))

    return Trips(zero, count, one, unsigned=True, item=item)


def _numbers(builder: Builder, bound: Any, ssa: Any, dtype: DType) -> Interval:
    """The interval of a bound with the SSA value `ssa`."""
    if not _is_dynamic(bound):
        return _static(bound), _static(bound)
    found = interval(builder, ssa)
    return found if dtype.is_signed or found[0] >= 0 else dtype.range


# -- while -----------------------------------------------------------------------------------------


def while_(
    test: Callable[[], Any],
    body: Callable[[], None],
    get: Callable[[], Any],
    put: Put,
    names: tuple[str, ...],
    carried: int,
) -> None:
    """Builds `while test(): body()`. Python runs iterations with a static test. From the first
    dynamic test on, the rest becomes scf.while."""
    for _ in range(PEELED):
        builder = tracing.active()
        value = _tried(builder, test) if builder and not builder.host else test()
        if _is_dynamic(value):
            break
        if not _static(value):
            return
        body()
    else:
        tracing.refuse(
            f"the `while` is still true after {PEELED} iterations, all of them static",
            "let its condition depend on a dynamic value",
        )
    builder = tracing.current("a dynamic `while`")
    held = Carried(names, carried, get())
    initial = held.initial(builder)
    types = [value.type for value in initial]
    loop = builder.op("scf.while", types, initial, regions=2)
    location = builder.locations.here()
    blocks = [
        region.blocks.append(*types, arg_locs=[location] * len(types)) for region in loop.regions
    ]
    with builder.inside(blocks[0]):
        put(held.inside(blocks[0].arguments))
        condition = builder.ssa(convert(test(), BOOL))
        builder.op("scf.condition", [], [condition, *blocks[0].arguments])
    with builder.inside(blocks[1]):
        begin = held.inside(blocks[1].arguments)
        put(begin)
        body()
        end = get()
        builder.op("scf.yield", [], held.outcome(builder, begin, end))
    put(held.after(loop.results, end, "a dynamic `while`"))


def _tried(builder: Builder, test: Callable[[], Any]) -> Any:
    """Evaluates the test. Its ops are kept if the value is static, because they may have side
    effects. They are erased if it is dynamic, because the loop builds them again."""
    scratch = builder.op("scf.execute_region", [], [], regions=1)
    block = scratch.regions[0].blocks.append()
    with builder.inside(block):
        value = test()
    if not _is_dynamic(value):
        for op in list(block.operations):
            op.operation.move_before(scratch)
    scratch.erase()
    return value
