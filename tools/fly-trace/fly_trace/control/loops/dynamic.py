"""`for … in range(…)` and `while` as scf.for and scf.while.

A `range` loop of a kernel becomes scf.for, even with static bounds, unless its body needs the
number of the iteration (`unrolling`); `range_constexpr` always unrolls. A loop that an iteration
may end (`break`, `return`) becomes scf.while. Variables that the body assigns and that are read
again are carried. Each keeps its type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_trace.control.branches import Put, condition, dynamic
from fly_trace.control.carried import in_place
from fly_trace.control.carried.in_place import Roots, Variables
from fly_trace.control.loops import accumulators, unrolling
from fly_trace.control.loops.trips import (
    RANGES,
    Bounds,
    bounds_of,
    loop_type,
    reversed_range,
    static,
    trips_of,
)
from fly_trace.control.loops.variables import Carried
from fly_trace.core import tracing
from fly_trace.values import integer_ops
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import BOOL, I64
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

_LESS, _UNSIGNED_LESS = 2, 6  # predicates of arith.cmpi
PEELED = 10_000  # maximum number of iterations of a static `while`


def for_(
    range_: Any,
    arguments: tuple[Any, ...],
    body: Callable[[Any], None],
    get: Callable[[], Any],
    put: Put,
    names: tuple[str, ...],
    carried: int,
    targets: tuple[str, ...],
    roots: Roots = (),
    unroll: Any = None,
) -> None:
    """Builds `for target in range(*arguments): body(target)`. For `names` see Carried; `unroll` is
    how many iterations LLVM makes one."""
    builder = tracing.active()
    fixed = not any(map(dynamic, arguments))
    by_python = range_ is reversed_range or builder is None or builder.host
    if range_ not in RANGES or (fixed and by_python):
        for item in range_(*map(static, arguments)):
            body(item)
        return
    assert builder is not None
    if fixed and not len(range(*map(static, arguments))):
        return
    bounds = bounds_of(range_, arguments)
    iterations = range(*map(static, arguments)) if fixed else None
    runs = None if iterations is None else len(iterations)

    def build() -> None:
        in_place.retried(
            *(roots, get, put, names, carried),
            lambda own: _dynamic_for(builder, bounds, runs, body, own, targets, unroll),
        )

    if iterations is None or unroll is not None:
        build()
    else:
        unrolling.attempt(builder, build, iterations, body, get, put)


def _dynamic_for(
    builder: Builder,
    bounds: Bounds,
    runs: int | None,
    body: Callable[[Any], None],
    own: Variables,
    targets: tuple[str, ...],
    unroll: Any,
) -> None:
    """Builds scf.for. `runs` is the number of iterations, if it is known."""
    get, put = own.get, own.put
    dtype = I64 if builder.host else loop_type(bounds)
    held = Carried(builder, own)
    initial = held.initial(builder)
    trips = trips_of(builder, bounds, dtype)
    attributes = _annotations(builder, unroll)
    if trips.unsigned:
        attributes["unsignedCmp"] = builder.attribute("unit")
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
        held.find_late(end, loop, runs is not None, targets)
        outcome = held.outcome(builder, begin, end)
        accumulators.check(held, values, outcome, runs)
        builder.op("scf.yield", [], [*outcome, *held.late_values(builder)])
    if held.late_leaves:
        loop = _extended(builder, loop, operands, held, attributes)
    put(held.after(loop.results, end, "a dynamic loop", targets))


def _annotations(builder: Builder, unroll: Any) -> dict[str, ir.Attribute]:
    """The attributes of a loop, which LLVM's optimizer reads."""
    if unroll is None:
        return {}
    if dynamic(unroll) or type(number := static(unroll)) is not int or number < 1:
        tracing.refuse(
            f"unroll= of a loop is a positive number, not {tracing.describe(unroll)}",
            "1 prevents unrolling",
        )
    if builder.host:
        return {}
    how = "disable = true" if number == 1 else f"count = {number} : i32"
    text = f"#llvm.loop_annotation<unroll = <{how}>>"
    return {"llvm.loop_annotation": builder.attribute(text)}


def _extended(
    builder: Builder,
    loop: ir.Operation,
    operands: list[ir.Value],
    held: Carried,
    attributes: dict[str, ir.Attribute],
) -> ir.Operation:
    """The loop with results for the late variables, which are only known after its body."""
    late = held.late_initial(builder)
    types = [*(result.type for result in loop.results), *(value.type for value in late)]
    regions = list(loop.regions)
    final = builder.op(loop.name, types, [*operands, *late], attributes, regions=len(regions))
    location = builder.locations.here()
    for old, new in zip(regions, final.regions, strict=True):
        block = old.blocks[0]
        for value in late:
            block.add_argument(value.type, location)
        block.append_to(new)
    loop.erase()
    return final


def for_left(
    bounds: Bounds,
    body: Callable[[Any], None],
    get: Callable[[], Any],
    put: Put,
    names: tuple[str, ...],
    carried: int,
    targets: tuple[str, ...],
    roots: Roots,
    left: Callable[[], Any],
    unroll: Any = None,
) -> None:
    """Builds a loop over a range that ends early once `left()` is true, as scf.while."""
    in_place.retried(
        *(roots, get, put, names, carried),
        lambda own: _dynamic_for_left(bounds, body, own, targets, left, unroll),
    )


def _dynamic_for_left(
    bounds: Bounds,
    body: Callable[[Any], None],
    own: Variables,
    targets: tuple[str, ...],
    left: Callable[[], Any],
    unroll: Any,
) -> None:
    get, put = own.get, own.put
    builder = tracing.current("a dynamic loop")
    dtype = I64 if builder.host else loop_type(bounds)
    trips = trips_of(builder, bounds, dtype)
    held = Carried(builder, own)
    initial = [trips.lower, *held.initial(builder)]
    attributes = _annotations(builder, unroll)
    loop, blocks = _while(builder, initial, attributes)
    with builder.inside(blocks[0]):
        counter, *values = blocks[0].arguments
        put(held.inside(values))
        less = _UNSIGNED_LESS if trips.unsigned else _LESS
        goes = integer_ops.test(builder, less, counter, trips.upper)
        true = builder.constant(True, BOOL)
        stays = builder.one("arith.xori", "i1", builder.ssa(convert(left(), BOOL)), true)
        goes = builder.one("arith.andi", "i1", goes, stays)
    with builder.inside(blocks[1]):
        counter, *values = blocks[1].arguments
        begin = held.inside(values)
        put(begin)
        body(Scalar(dtype, trips.item(counter)))
        end = get()
        held.find_late(end, loop)
        after = builder.one("arith.addi", dtype.ir, counter, trips.step)
        outcome = held.outcome(builder, begin, end)
        accumulators.check(held, values, outcome, None)
        builder.op("scf.yield", [], [after, *outcome, *held.late_values(builder)])
    if held.late_leaves:
        loop = _extended(builder, loop, initial, held, attributes)
    _continue_if(builder, loop, goes)
    put(held.after(list(loop.results)[1:], end, "a dynamic loop", targets))


def _while(
    builder: Builder, initial: list[ir.Value], attributes: dict[str, ir.Attribute] | None = None
) -> tuple[ir.Operation, list[ir.Block]]:
    """An scf.while with two empty blocks."""
    types = [value.type for value in initial]
    loop = builder.op("scf.while", types, initial, attributes, regions=2)
    location = builder.locations.here()
    return loop, [
        region.blocks.append(*types, arg_locs=[location] * len(types)) for region in loop.regions
    ]


def _continue_if(builder: Builder, loop: ir.Operation, goes: ir.Value) -> None:
    """Ends the first block of an scf.while."""
    block = loop.regions[0].blocks[0]
    with builder.at_end(block):
        builder.op("scf.condition", [], [goes, *block.arguments])


def while_(
    test: Callable[[], Any],
    body: Callable[[], None],
    get: Callable[[], Any],
    put: Put,
    names: tuple[str, ...],
    carried: int,
    roots: Roots = (),
) -> None:
    """Builds `while test(): body()`. Python runs iterations with a static test. From the first
    dynamic test on, the rest becomes scf.while."""
    for _ in range(PEELED):
        builder = tracing.active()
        value = _tried(builder, test) if builder and not builder.host else condition(test())
        if dynamic(value):
            break
        if not static(value):
            return
        body()
    else:
        tracing.refuse(
            f"the `while` is still true after {PEELED} iterations, all of them static",
            "let its condition depend on a dynamic value",
        )
    in_place.retried(
        *(roots, get, put, names, carried), lambda own: _dynamic_while(test, body, own)
    )


def _dynamic_while(test: Callable[[], Any], body: Callable[[], None], own: Variables) -> None:
    """Builds scf.while."""
    get, put = own.get, own.put
    builder = tracing.current("a dynamic `while`")
    held = Carried(builder, own)
    initial = held.initial(builder)
    loop, blocks = _while(builder, initial)
    with builder.inside(blocks[0]):
        put(held.inside(blocks[0].arguments))
        goes = builder.ssa(convert(condition(test()), BOOL))
    with builder.inside(blocks[1]):
        begin = held.inside(blocks[1].arguments)
        put(begin)
        body()
        end = get()
        held.find_late(end, loop)
        outcome = held.outcome(builder, begin, end)
        accumulators.check(held, blocks[1].arguments, outcome, None)
        builder.op("scf.yield", [], [*outcome, *held.late_values(builder)])
    if held.late_leaves:
        loop = _extended(builder, loop, initial, held, {})
    _continue_if(builder, loop, goes)
    put(held.after(loop.results, end, "a dynamic `while`"))


def _tried(builder: Builder, test: Callable[[], Any]) -> Any:
    """Evaluates the test. Its ops are kept if the value is static, because they may have side
    effects. They are erased if it is dynamic, because the loop builds them again."""
    scratch = builder.op("scf.execute_region", [], [], regions=1)
    block = scratch.regions[0].blocks.append()
    with builder.inside(block):
        value = condition(test())
    if not dynamic(value):
        for op in list(block.operations):
            op.operation.move_before(scratch)
    scratch.erase()
    return value
