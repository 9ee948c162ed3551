"""The module of a trace: a host function and its kernels, run once each on symbolic values."""

from __future__ import annotations

from collections.abc import Mapping
from types import GeneratorType
from typing import Any, NamedTuple

from fly_common.errors import FlyError, InputError
from fly_common.record import field, record
from fly_dialect.bindings import ir

import fly_trace.control.runtime  # noqa: F401  rewritten functions call it
from fly_trace.control import generators, objects
from fly_trace.core import locations as places
from fly_trace.core import tracing
from fly_trace.core.target import Target
from fly_trace.effects import snapshots
from fly_trace.effects.snapshots import Snapshot
from fly_trace.host.results import describe_results
from fly_trace.memory.tensors import Access, Tensor
from fly_trace.rewrite import return_of, rewritten, yield_of
from fly_trace.session.builder import Builder
from fly_trace.session.decorators import KernelFunction
from fly_trace.session.launch import (
    Argument,
    Attributes,
    KernelCall,
    attribute_of,
    cluster_of,
    in_structs,
    prepare,
)
from fly_trace.session.op_locations import Locations
from fly_trace.session.parameters import (
    description,
    ir_type,
    passed_type,
    symbolic,
    symbolic_tensor,
)
from fly_trace.session.raised import raised, with_calls
from fly_trace.signatures.signature import Constant, ParameterType, definition
from fly_trace.values.scalars import Scalar

KERNELS = "kernels"  # the symbol of the gpu.module


class TracedKernel(NamedTuple):
    """A kernel's symbol, its access to each tensor, and a snapshot of the Python objects it can
    reach."""

    symbol: str
    accesses: dict[str, Access]
    seen: Snapshot
    shared: int  # bytes of dynamic shared memory that it allocates


@record(frozen=False)
class ModuleTrace:
    """The module that is being built."""

    context: ir.Context
    entry: str
    target: Target
    rules: Any = None  # of the host function
    module: ir.Module = field(init=False)
    kernels: ir.Block = field(init=False)  # the gpu.module's block
    known: dict[Any, TracedKernel] = field(default_factory=dict)
    world: Snapshot | None = None  # everything the host function can reach
    symbols: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.module = ir.Module.create()
        attributes = self.module.operation.attributes
        attributes["gpu.container_module"] = ir.UnitAttr.get()
        attributes["fly.entry"] = ir.StringAttr.get(self.entry)
        self.locations = Locations(self.context)
        holder = ir.Operation.create(
            "gpu.module",
            attributes={"sym_name": ir.StringAttr.get(KERNELS)},
            regions=1,
            ip=ir.InsertionPoint(self.module.body),
        )
        self.kernels = holder.regions[0].blocks.append()

    # -- the host function

    def host(self, function: Any, types: Mapping[str, ParameterType]) -> None:
        at = self.locations.at(definition(function))
        passed = {name: kind for name, kind in types.items() if not isinstance(kind, Constant)}
        kinds = [ir_type(kind) for kind in passed.values()]
        op, block = self._function(
            "func.func", self.module.body, self.entry, list(passed), kinds, at, {}
        )
        constants = [kind.value for kind in types.values() if isinstance(kind, Constant)]
        self.world = self._reached(function, constants, None)
        builder = Builder(
            self.context,
            block,
            host=True,
            locations=self.locations,
            target=self.target,
            frozen=self.world,
            rules=self.rules,
        )
        calls: list[KernelCall] = []

        def call_kernel(kernel: KernelFunction, given: Any, named: Any) -> KernelCall:
            calls.append(prepare(builder, self, kernel, given, named))
            return calls[-1]

        builder.call_kernel = call_kernel
        arguments: dict[str, Any] = {}
        values = iter(block.arguments)
        for name, kind in types.items():
            arguments[name] = (
                kind.value if isinstance(kind, Constant) else symbolic(name, kind, next(values))
            )
        try:
            result = _run(builder, function, arguments)
        finally:
            builder.call_kernel = None  # a cycle, in which the module would wait for the collector
        results: list[Any] = []
        if result is not None:
            form, results = describe_results(builder, result, return_of(function))
            op.attributes["fly.results"] = form
        for call in calls:
            if not call.launched:
                raise InputError(
                    f"{call.kernel.name}(…) is not launched",
                    place=places.place(call.at),
                    hint="add .launch(grid=…, block=…)",
                )
        if not calls and result is None and not _calls_library(op) and self.rules is None:
            raise InputError(
                f"the host function {function.__name__} does nothing: it launches no kernel, calls"
                " no library function and returns nothing",
                place=places.place(definition(function)),
            )
        ends = builder.locations.at(return_of(function)) if results else at
        ir.Operation.create("func.return", [], results, loc=ends, ip=ir.InsertionPoint(block))
        given = [value.type for value in results]
        op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, given))
        op.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [description(name, kind, arguments[name]) for name, kind in passed.items()]
        )

    def _reached(self, function: Any, constants: Any, parent: Any) -> snapshots.Snapshot:
        """What the function must not change."""
        if self.rules is not None and self.rules.is_free:
            return snapshots.Snapshot(snapshots.Origin.OUTSIDE, parent)
        return snapshots.of_function(function, constants, parent)

    # -- kernels

    def kernel(
        self,
        kernel: KernelFunction,
        arguments: tuple[Argument, ...],
        block: Any,
        attributes: Attributes = (),
    ) -> TracedKernel:
        """The kernel for these arguments. A kernel is traced once for each combination of
        types, constants, static block size and attributes."""
        key = (id(kernel), block, tuple(argument.key for argument in arguments), attributes)
        known = self.known.get(key)
        # Objects it can reach may have changed, such as the host function's variables.
        if known is None or any(known.seen.changed()):
            constants = [argument.value for argument in arguments if not argument.passed]
            seen = self._reached(kernel.function, constants, self.world)
            symbol = self._symbol(kernel.name)
            accesses, shared = self._trace_kernel(
                symbol, kernel, arguments, block, attributes, seen
            )
            known = self.known[key] = TracedKernel(symbol, accesses, seen, shared)
        return known

    def _symbol(self, name: str) -> str:
        count, symbol = 0, name
        while symbol in self.symbols:
            count += 1
            symbol = f"{name}_{count}"
        self.symbols.add(symbol)
        return symbol

    def _trace_kernel(
        self,
        symbol: str,
        kernel: KernelFunction,
        arguments: tuple[Argument, ...],
        block: Any,
        extra: Attributes,
        seen: Snapshot,
    ) -> tuple[dict[str, Access], int]:
        at = self.locations.at(definition(kernel.function))
        passed = [argument for argument in arguments if argument.passed]
        kinds = [passed_type(argument.value) for argument in passed]
        attributes: dict[str, ir.Attribute] = {"kernel": ir.UnitAttr.get()}
        if block is not None:
            attributes["known_block_size"] = ir.DenseI32ArrayAttr.get(list(block))
        attributes |= {name: attribute_of(value) for name, value in extra}
        names = [argument.name for argument in passed]
        _, body = self._function("gpu.func", self.kernels, symbol, names, kinds, at, attributes)
        builder = Builder(
            self.context,
            body,
            host=False,
            locations=self.locations,
            target=self.target,
            frozen=seen,
            rules=kernel.rules,
        )
        builder.known_block, builder.known_cluster = block, cluster_of(extra)
        values = iter(body.arguments)
        given: dict[str, Any] = {}
        accesses: dict[str, Access] = {}
        for argument in arguments:
            value = argument.value
            if isinstance(value, Tensor):
                tensor = symbolic_tensor(argument.name, value, next(values))
                given[argument.name], accesses[argument.name] = tensor, tensor.access
            elif isinstance(value, Scalar):
                given[argument.name] = Scalar(value.dtype, next(values))
            elif argument.passed:
                held = given[argument.name] = value.in_kernel(builder, next(values))
                if isinstance(access := getattr(held, "access", None), Access):
                    accesses[argument.name] = access
            else:
                given[argument.name] = value
        result = _run(builder, kernel.function, in_structs(arguments, given))
        if result is not None:
            error = InputError(
                f"the kernel {kernel.name} returns a value",
                place=places.place(return_of(kernel.function)),
                hint="write the results to tensors",
            )
            error.related = ()  # not the launch, as for other errors in a kernel
            raise error
        ir.Operation.create("gpu.return", loc=at, ip=ir.InsertionPoint(body))
        return accesses, max((one.allocated_bytes for one in builder.arenas), default=0)

    def _function(
        self,
        op: str,
        parent: ir.Block,
        symbol: str,
        names: list[str],
        types: list[ir.Type],
        at: ir.Location,
        attributes: Mapping[str, ir.Attribute],
    ) -> tuple[ir.Operation, ir.Block]:
        made = ir.Operation.create(
            op,
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                **attributes,
            },
            regions=1,
            loc=at,
            ip=ir.InsertionPoint(parent),
        )
        named = [ir.Location.name(name, at) for name in names]
        return made, made.regions[0].blocks.append(*types, arg_locs=named)


def _run(builder: Builder, function: Any, arguments: dict[str, Any]) -> Any:
    """Runs a function on symbolic values. Errors are reported at the user's line."""
    before = tracing.enter(builder)
    builder.entry = _run.__code__
    if builder.rules is not None:
        builder.rules.begin(builder)
    try:
        with objects.preserved(builder, function):
            builder.python_calls.reach(builder.frozen, arguments.values())
            new = rewritten(function)
            result = new(**arguments)
            if isinstance(result, GeneratorType) and result.gi_code is new.__code__:
                raise InputError(
                    f"{function.__name__} is a generator, which has no meaning on the GPU",
                    place=places.place(yield_of(function)),
                    hint="write the results to tensors; helper functions may yield",
                )
            return result
    except FlyError as error:
        with_calls(error)
        raise
    except Exception as error:
        raise with_calls(raised(error)) from error
    finally:
        generators.close()
        if before is None:
            builder.python_calls.restore()
        for region in builder.discarded:  # they use values of the module
            region.erase()
        tracing.enter(before)


def _calls_library(host: ir.Operation) -> bool:
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = found or op.name == "fly.call"
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    host.walk(visit)
    return found
