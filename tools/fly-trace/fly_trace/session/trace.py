"""Python → MLIR: runs a host function and its kernels once on symbolic values.

The library calls `trace_function`, the command `trace_file`. Both return the module's text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

from fly_common.errors import FlyError, InputError
from fly_dialect import dialect as fly
from fly_dialect import text
from fly_dialect.bindings import ir
from fly_dialect.layouts.layout import Int, Layout
from fly_dialect.types import MemRefSpec

import fly_trace.control.runtime  # noqa: F401  rewritten functions call it
from fly_trace.control import objects
from fly_trace.core import locations as places
from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue
from fly_trace.core.target import Target
from fly_trace.effects import snapshots
from fly_trace.effects.snapshots import Snapshot
from fly_trace.host import streams
from fly_trace.host.results import describe_results
from fly_trace.host.streams import StreamValue
from fly_trace.memory.tensors import Access, Tensor
from fly_trace.rewrite import return_of, rewritten
from fly_trace.session.builder import Builder, Locations
from fly_trace.session.decorators import HostFunction, KernelFunction
from fly_trace.session.launch import Argument, KernelCall, prepare
from fly_trace.signatures.extents import Extent, symbol_of
from fly_trace.signatures.signature import (
    Constant,
    ParameterType,
    ScalarType,
    StreamType,
    TensorType,
    definition,
    resolve,
)
from fly_trace.values.scalars import Scalar

KERNELS = "kernels"  # the symbol of the gpu.module


def trace_function(
    function: Callable[..., Any] | HostFunction,
    signature: Mapping[str, ParameterType],
    *,
    locations: bool = True,
    name: str | None = None,
    target: str | None = None,
) -> str:
    """Traces a host function, and returns a module with its kernels and itself.

    `signature` maps parameter names to types; annotations and defaults give the others. `locations`
    prints `loc(…)`. `target` is the GPU for programs that query it; only their modules name it.
    Raises InputError at the user's line, or UsageError for `signature` and `target`.
    """
    if isinstance(function, HostFunction):
        name = name or function.name
        function = function.function
    assert isinstance(function, FunctionType)
    types = resolve(function, signature)
    chosen = Target(target)
    try:
        return _traced(function, types, name or function.__name__, chosen, locations)
    except objects.ChangedSomewhere as error:
        if not error.is_undone:
            raise
        from fly_trace.control.effect_location import relocate

        again = Target(target)
        relocate(error, lambda: _traced(function, types, function.__name__, again, locations))


def _traced(
    function: FunctionType,
    types: Mapping[str, ParameterType],
    name: str,
    chosen: Target,
    locations: bool,
) -> str:
    context = fly.new_context()
    with context, ir.Location.unknown(context):
        module = ModuleTrace(context, name, chosen)
        module.host(function, types)
        if chosen.asked and chosen.chip is not None:
            attributes = module.module.operation.attributes
            attributes["fly.target"] = ir.StringAttr.get(chosen.chip)
        try:
            module.module.operation.verify()
        except ir.MLIRError as error:
            raise _invalid(error) from None
        return text.write(module.module, locations)


def _invalid(error: ir.MLIRError) -> InputError:
    """Converts an error of MLIR's verifier. If the user's program caused it, the message uses the
    language's terms."""
    first = error.error_diagnostics[0]
    where = fly.place_of(first.location)
    if "using value defined outside the region" in first.message:
        return InputError(
            "this uses a value that was computed by another kernel or by the host function",
            place=where,
            hint="pass each value of the host function to the kernel as a separate argument,"
            " not in a list and not through a closure",
        )
    return InputError(f"the module that was traced is not valid: {first.message}", place=where)


class TracedKernel(NamedTuple):
    """A kernel's symbol, its access to each tensor, and a snapshot of the Python objects it can
    reach."""

    symbol: str
    accesses: dict[str, Access]
    seen: Snapshot


@dataclass
class ModuleTrace:
    """The module that is being built."""

    context: ir.Context
    entry: str
    target: Target
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
        kinds = [_ir_type(kind) for kind in passed.values()]
        op, block = self._function(
            "func.func", self.module.body, self.entry, list(passed), kinds, at, {}
        )
        constants = [kind.value for kind in types.values() if isinstance(kind, Constant)]
        self.world = snapshots.of_function(function, constants)
        builder = Builder(
            self.context,
            block,
            host=True,
            locations=self.locations,
            target=self.target,
            frozen=self.world,
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
                kind.value if isinstance(kind, Constant) else _symbolic(name, kind, next(values))
            )
        result = _run(builder, function, arguments)
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
        if not calls and result is None and not _calls_library(op):
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
            [_describe(name, kind, arguments[name]) for name, kind in passed.items()]
        )

    # -- kernels

    def kernel(
        self, kernel: KernelFunction, arguments: tuple[Argument, ...], block: Any
    ) -> tuple[str, dict[str, Access]]:
        """The symbol of a kernel for these arguments, and its access to each tensor. A kernel is
        traced once for each combination of types, constants and static block size."""
        key = (id(kernel), block, tuple(argument.key for argument in arguments))
        known = self.known.get(key)
        # Objects it can reach may have changed, such as the host function's variables.
        if known is None or any(known.seen.changed()):
            constants = [argument.value for argument in arguments if not argument.passed]
            seen = snapshots.of_function(kernel.function, constants, self.world)
            symbol = self._symbol(kernel.name)
            accesses = self._trace_kernel(symbol, kernel, arguments, block, seen)
            known = self.known[key] = TracedKernel(symbol, accesses, seen)
        return known.symbol, known.accesses

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
        seen: Snapshot,
    ) -> dict[str, Access]:
        at = self.locations.at(definition(kernel.function))
        passed = [argument for argument in arguments if argument.passed]
        kinds = [_type_of(argument.value) for argument in passed]
        attributes: dict[str, ir.Attribute] = {"kernel": ir.UnitAttr.get()}
        if block is not None:
            attributes["known_block_size"] = ir.DenseI32ArrayAttr.get(list(block))
        names = [argument.name for argument in passed]
        _, body = self._function("gpu.func", self.kernels, symbol, names, kinds, at, attributes)
        builder = Builder(
            self.context,
            body,
            host=False,
            locations=self.locations,
            target=self.target,
            frozen=seen,
        )
        builder.known_block = block
        values = iter(body.arguments)
        given: dict[str, Any] = {}
        accesses: dict[str, Access] = {}
        for argument in arguments:
            value = argument.value
            if isinstance(value, Tensor):
                tensor = _symbolic_tensor(argument.name, value, next(values))
                given[argument.name], accesses[argument.name] = tensor, tensor.access
            elif isinstance(value, Scalar):
                given[argument.name] = Scalar(value.dtype, next(values))
            elif argument.passed:
                given[argument.name] = value.with_ssa(next(values))
            else:
                given[argument.name] = value
        result = _run(builder, kernel.function, given)
        if result is not None:
            raise InputError(
                f"the kernel {kernel.name} returns a value",
                place=places.place(return_of(kernel.function)),
                hint="write the results to tensors",
            )
        ir.Operation.create("gpu.return", loc=at, ip=ir.InsertionPoint(body))
        return accesses

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
    try:
        with objects.preserved(builder, function):
            return rewritten(function)(**arguments)
    except FlyError:
        raise
    except RecursionError as error:
        raise InputError(
            "the program is nested too deeply, or recurses endlessly",
            place=places.place(places.of_traceback(error.__traceback__)),
        ) from error
    except Exception as error:
        at = places.of_traceback(error.__traceback__)
        message = str(error) or "no message"
        raise InputError(f"{type(error).__name__}: {message}", place=places.place(at)) from error
    finally:
        tracing.enter(before)


def _calls_library(host: ir.Operation) -> bool:
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = found or op.name == "fly.call"
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    host.walk(visit)
    return found


def _ir_type(kind: ParameterType) -> ir.Type:
    if isinstance(kind, ScalarType):
        return fly.type_of(kind.dtype.ir)
    if isinstance(kind, StreamType):
        return fly.type_of(streams.TYPE)
    assert isinstance(kind, TensorType)
    if not kind.shape:  # a tuple needs leaves: one element at offset 0, with any stride
        one = Layout(Int(1), Int(0))
        return fly.memref_type(MemRefSpec(kind.dtype.memory, "global", one))
    shape, stride = ((leaf[0] if len(leaf) == 1 else leaf) for leaf in kind.leaves)
    return fly.memref_type(MemRefSpec(kind.dtype.memory, "global", Layout(shape, stride)))


def _type_of(value: DialectValue | Scalar) -> ir.Type:
    """The type of what is passed to a kernel."""
    if isinstance(value, DialectValue):
        assert value.ssa is not None, "what is static is not passed"
        return value.ssa.type
    return fly.type_of(value.dtype.ir)


def _symbolic(name: str, kind: ParameterType, value: Any) -> Tensor | Scalar | StreamValue:
    if isinstance(kind, TensorType):
        spec = fly.memref_of(value)
        return Tensor(spec, value, kind.dtype, name, is_array=True, rank=len(kind.shape))
    if isinstance(kind, StreamType):
        return StreamValue(name, value)
    assert isinstance(kind, ScalarType)
    return Scalar(kind.dtype, value)


def _symbolic_tensor(name: str, like: Tensor, value: ir.Value) -> Tensor:
    """The kernel's tensor for the argument `like`."""
    return Tensor(like.spec, value, like.dtype, name, is_array=like.is_array, rank=like.rank)


def _describe(name: str, kind: ParameterType, value: Any) -> ir.DictAttr:
    """The attributes of a host argument, for the host program."""
    found: dict[str, ir.Attribute] = {"fly.name": ir.StringAttr.get(name)}
    assert not isinstance(kind, Constant)
    if isinstance(kind, StreamType):
        return ir.DictAttr.get(found)
    found["fly.dtype"] = ir.StringAttr.get(kind.dtype.name)
    if isinstance(kind, TensorType):
        found["fly.shape"] = ir.ArrayAttr.get([_extent(extent) for extent in kind.shape])
        found["fly.access"] = ir.StringAttr.get(value.access.text)
        if kind.contiguous:
            found["fly.contiguous"] = ir.UnitAttr.get()
    elif kind.default is not None:
        attribute = fly.type_of(kind.dtype.ir)
        if kind.dtype.is_float:
            found["fly.default"] = ir.FloatAttr.get(attribute, float(kind.default))
        elif kind.dtype.is_bool:
            found["fly.default"] = ir.BoolAttr.get(bool(kind.default))
        else:
            number = int(kind.default)
            low, high = kind.dtype.range
            number = number - (1 << kind.dtype.bits) if low == 0 and number > high >> 1 else number
            found["fly.default"] = ir.IntegerAttr.get(attribute, number)
    return ir.DictAttr.get(found)


def _extent(extent: Extent) -> ir.Attribute:
    symbol = symbol_of(extent)
    if symbol is not None:
        return ir.StringAttr.get(symbol)
    if isinstance(extent, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), extent)
    return ir.UnitAttr.get()


def trace_file(
    path: str,
    entry: str | None = None,
    signature: Mapping[str, ParameterType] | None = None,
    *,
    locations: bool = True,
    target: str | None = None,
) -> str:
    """Traces the host function `entry` of a Python file, or with None its only one."""
    from fly_trace.session.load import find_entry, load_file

    return trace_function(
        find_entry(load_file(path), path, entry),
        signature or {},
        locations=locations,
        target=target,
    )
