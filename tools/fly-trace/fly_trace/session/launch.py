"""Kernel calls in the host function: arguments, launches, specialisations."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from fly_common.errors import InputError
from fly_common.quoting import quoted
from fly_common.record import record, replace

from fly_trace.core import locations, tracing
from fly_trace.core.dialect_value import DialectValue
from fly_trace.core.tracing import describe
from fly_trace.host.streams import ssa_of
from fly_trace.layouts.views import linear
from fly_trace.memory.structs import Record
from fly_trace.memory.tensors import Tensor
from fly_trace.session.decorators import KernelFunction
from fly_trace.signatures import signature
from fly_trace.signatures.annotations import Constexpr, MaybeNone, Stream, TensorAnnotation
from fly_trace.signatures.annotations import Tensor as TensorName
from fly_trace.signatures.extents import admits
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import I32, I64, DType
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder
    from fly_trace.session.module_trace import ModuleTrace

MOST_WORK_ITEMS = 1024  # per workgroup, on every target


# Attributes of a kernel's function by name: integers, strings, and True for a unit attribute. Text
# that begins with # or [ is an attribute's own.
Attributes = tuple[tuple[str, int | str], ...]


def attribute_of(value: int | str) -> ir.Attribute:
    """The attribute of MLIR for a value of Attributes."""
    from fly_dialect.bindings import ir

    if value is True:
        return ir.UnitAttr.get()
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)
    return ir.Attribute.parse(value) if value[:1] in "#[" else ir.StringAttr.get(value)


CLUSTER = "fly.cluster_dims"  # of a kernel: "x,y,z", workgroups of a cluster


def cluster_of(attributes: Attributes) -> tuple[int, int, int]:
    """The workgroups of a cluster that a kernel's attributes say; (1, 1, 1) without them."""
    x, y, z = map(int, str(dict(attributes).get(CLUSTER, "1,1,1")).split(","))
    return x, y, z


@record
class Argument:
    """An argument of a kernel call: a tensor or scalar that is passed, or a constant for which the
    kernel is specialised."""

    name: str
    value: Any
    # The name and the value of the struct that has the argument as a field: `p.x` is of `p`.
    struct: tuple[str, Any] | None = None

    @property
    def passed(self) -> bool:
        if isinstance(self.value, DialectValue):
            return not self.value.is_static
        return isinstance(self.value, Scalar)

    @property
    def key(self) -> Any:
        """The key for specialisation: arguments with different keys need different kernels."""
        if self.struct is not None:
            return (self.name, id(type(self.struct[1])), replace(self, struct=None).key)
        value = self.value
        if isinstance(value, Tensor):
            kind = value.dtype.name, value.spec, value.is_array, value.rank, value.is_contiguous
            return ("tensor", *kind)
        if isinstance(value, DialectValue):
            return (type(value), value.spec)
        if isinstance(value, Scalar):
            return ("scalar", value.dtype.name)
        return ("constant", type(value), repr(value) if _plain(value) else id(value))


def _plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_plain, value))
    return isinstance(value, (bool, int, float, str, bytes, type(None), DType))


@record(frozen=False, eq=False)
class KernelCall:
    """`kernel(A, B, n)`: a call that waits for `.launch(grid=…, block=…)`."""

    builder: Builder
    module: ModuleTrace
    kernel: KernelFunction
    arguments: tuple[Argument, ...]
    at: locations.Position | None
    launched: bool = False

    def launch(
        self,
        grid: Any,
        block: Any,
        smem: Any = None,
        stream: Any = None,
        attributes: Attributes = (),
        cluster: Any = None,
        **unknown: Any,
    ) -> None:
        """Launches `grid` workgroups (1 to 3 numbers) of `block` work items each, with `smem` bytes
        of dynamic shared memory, by default those that the kernel's
        fx.SharedAllocator(static=False) takes. `stream` is a stream parameter of the host function;
        without one launches are in the current stream. `attributes` are attributes of MLIR for
        the kernel's function. `cluster` is the number of workgroups of a cluster, 1 to 3 constants,
        of which the grid's sizes must be multiples; InputError on a target without clusters."""
        if unknown:
            tracing.refuse(
                f"launch takes grid, block, smem, stream and cluster, not {', '.join(unknown)}",
            )
        if cluster is not None:
            attributes = (*attributes, *_clustered(cluster))
        self.launched = True
        sizes = _sizes("grid", grid)
        blocks = _sizes("block", block)
        static = _static_block(self.kernel, blocks)
        traced = self.module.kernel(self.kernel, self.arguments, static, attributes)
        for argument in self.arguments:
            access = traced.accesses.get(argument.name)
            held = getattr(argument.value, "access", None)
            if access is not None and held is not None:
                held.reads |= access.reads
                held.writes |= access.writes
        smem = traced.shared if smem is None else smem
        _emit(self.builder, traced.symbol, sizes, blocks, smem, self.arguments, ssa_of(stream))


def prepare(
    builder: Builder,
    module: ModuleTrace,
    kernel: KernelFunction,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
) -> KernelCall:
    """Binds a kernel's arguments, and converts them to the annotated types of its parameters."""
    parameters = signature.parameters_of(kernel.function)
    for parameter in parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InputError(
                f"the kernel {kernel.name} takes *{parameter.name}: its parameters must be named",
                place=locations.place(signature.definition(kernel.function)),
            )
    try:
        bound = inspect.Signature(list(parameters.values())).bind(*arguments, **named)
    except TypeError as error:
        tracing.refuse(
            f"{kernel.name}: {error}", f"its parameters are {', '.join(parameters) or 'none'}"
        )
    bound.apply_defaults()
    made = tuple(
        Argument(name, _as_declared(builder, kernel, parameters[name], value))
        for name, value in bound.arguments.items()
    )
    made = tuple(leaf for one in made for leaf in _leaves(builder, one))
    for one in made:
        if isinstance(one.value, Scalar) and not one.value.dtype.has_arrays:
            tracing.refuse(
                f"{one.name} of {kernel.name} is {one.value.dtype.name}, which launches can't pass",
                "pass its halves as fx.Int64, and join them in the kernel",
            )
    return KernelCall(builder, module, kernel, made, locations.here())


def _leaves(builder: Builder, argument: Argument) -> list[Argument]:
    """A struct's fields as arguments of their own; any other argument alone."""
    value = argument.value
    fields = _fields(value, builder.rules is not None)
    if fields is None:
        if argument.struct is not None and isinstance(value, Scalar) and value.ssa is None:
            return [replace(argument, value=Scalar(value.dtype, builder.ssa(value)))]
        return [argument]
    root = argument.struct or (argument.name, value)
    return [
        leaf
        for name, one in fields.items()
        for leaf in _leaves(builder, Argument(f"{argument.name}.{name}", one, root))
    ]


def _fields(value: Any, opened: bool) -> dict[Any, Any] | None:
    """The parts of an argument that are passed one by one: the fields of a struct; with `opened`
    also the items of a namespace, tuple, list or dictionary with dynamic values. None for another
    argument."""
    if isinstance(value, Record):
        return {name: getattr(value, name) for name in type(value).__fly_fields__}
    found: dict[Any, Any] | None = None
    if type(value) is SimpleNamespace:
        found = vars(value)
    elif isinstance(value, (tuple, list)):
        found = dict(enumerate(value))
    elif type(value) is dict:
        found = value
    if found is None or not opened:
        return None
    is_dynamic = any(
        Argument("", one).passed or _fields(one, True) is not None for one in found.values()
    )
    return found if is_dynamic else None


def in_structs(arguments: Sequence[Argument], given: dict[str, Any]) -> dict[str, Any]:
    """The values of a kernel's parameters, for those of its arguments."""
    found: dict[str, Any] = {}
    for one in arguments:
        if one.struct is None:
            found[one.name] = given[one.name]
        elif one.struct[0] not in found:
            found[one.struct[0]] = _joined(*one.struct, given)
    return found


def _joined(name: str, like: Any, given: dict[str, Any]) -> Any:
    fields = None if name in given else _fields(like, True)
    if fields is None:
        return given[name]
    made = {field: _joined(f"{name}.{field}", one, given) for field, one in fields.items()}
    if isinstance(like, Record):
        return like.with_fields(made)
    if type(like) is SimpleNamespace:
        return SimpleNamespace(**made)
    if isinstance(like, dict):
        return made
    items = list(made.values())
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def _as_declared(
    builder: Builder, kernel: KernelFunction, parameter: inspect.Parameter, value: Any
) -> Any:
    annotation = parameter.annotation
    if value is None and isinstance(parameter, MaybeNone):
        return None
    if annotation is Stream or isinstance(value, Stream):
        return None
    if annotation is Constexpr or isinstance(annotation, Constexpr):
        if isinstance(value, Scalar) and value.number is not None:
            return value.number
        if isinstance(value, (Scalar, Tensor)):
            _mismatch(kernel, parameter, "a compile-time constant", value)
        return value
    if annotation is TensorName:
        if not isinstance(value, Tensor):
            _mismatch(kernel, parameter, "a tensor", value)
        return value
    if isinstance(annotation, TensorAnnotation):
        if not isinstance(value, Tensor) or not _matches(annotation, value):
            _mismatch(kernel, parameter, str(annotation), value)
        return value
    if isinstance(annotation, DType):
        return _as_scalar(builder, kernel, parameter, annotation, value)
    return value


def _matches(annotation: TensorAnnotation, value: Tensor) -> bool:
    if not annotation.admits(value.dtype) or value.alignment % (annotation.align or 1):
        return False
    if annotation.shape is None:
        return True
    shape = linear(value.spec).shape
    modes = shape if isinstance(shape, tuple) else (shape,) * value.rank
    return len(annotation.shape) == len(modes) and all(map(admits, annotation.shape, modes))


def _as_scalar(
    builder: Builder, kernel: KernelFunction, parameter: inspect.Parameter, dtype: DType, value: Any
) -> Scalar:
    """Converts an argument to a scalar. Integers are converted to any width: the launch checks that
    the value fits. Floats must have the exact type, because the host function cannot convert
    them."""
    if isinstance(value, (bool, int, float)):
        converted = convert(value, dtype)
        return Scalar(dtype, builder.ssa(converted))
    if isinstance(value, Scalar):
        if value.number is not None:
            return Scalar(dtype, builder.ssa(convert(value.number, dtype)))
        if value.dtype is dtype or (value.dtype.is_integer and dtype.is_integer):
            return convert(value, dtype)
    _mismatch(kernel, parameter, dtype.name, value)


def _mismatch(
    kernel: KernelFunction, parameter: inspect.Parameter, wanted: str, value: Any
) -> NoReturn:
    tracing.refuse(f"{parameter.name} of {kernel.name} is {wanted}, but got {describe(value)}")


def _sizes(what: str, given: Any) -> tuple[Any, Any, Any]:
    """Converts one to three numbers to x, y, z."""
    sizes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(sizes) <= 3:
        tracing.refuse(f"{what} must have 1 to 3 sizes, not {len(sizes)}")
    made = []
    for size in sizes:
        if isinstance(size, Scalar):
            if not size.dtype.is_integer:
                tracing.refuse(f"a size of {what} must be an integer, not {describe(size)}")
            made.append(size if size.number is None else int(size.number))
            continue
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            tracing.refuse(f"a size of {what} must be an integer, not {describe(size)}")
        number = operator.index(size)
        if number < (1 if what == "block" else 0) or number > 2**31 - 1:
            tracing.refuse(
                f"a size of {what} is {quoted(number)}, which is not a valid launch size"
            )
        made.append(number)
    x, y, z = (*made, 1, 1)[:3]
    return x, y, z


def _clustered(cluster: Any) -> Attributes:
    """The attribute that the lowering reads the size of a cluster from."""
    sizes = _sizes("cluster", cluster)
    if any(isinstance(size, Scalar) for size in sizes):
        tracing.refuse("the sizes of a cluster must be constants")
    if min(sizes) < 1:
        tracing.refuse(f"a size of cluster is {min(sizes)}, which is not a valid launch size")
    return () if sizes == (1, 1, 1) else ((CLUSTER, ",".join(map(str, sizes))),)


def _static_block(kernel: KernelFunction, block: tuple[Any, Any, Any]) -> Any:
    """The block size if it is static, checked against the decorator and the hardware."""
    if any(isinstance(size, Scalar) for size in block):
        if kernel.block is not None:
            tracing.refuse(
                f"{kernel.name} has known_block_size={kernel.block}, but the block is dynamic"
            )
        return None
    if kernel.block is not None and kernel.block != block:
        tracing.refuse(f"{kernel.name} has known_block_size={kernel.block}, not {block}")
    total = block[0] * block[1] * block[2]
    if total > MOST_WORK_ITEMS:
        tracing.refuse(f"the block has {total} work items, but the maximum is {MOST_WORK_ITEMS}")
    return block


def _emit(
    builder: Builder,
    symbol: str,
    grid: tuple[Any, Any, Any],
    block: tuple[Any, Any, Any],
    smem: Any,
    arguments: tuple[Argument, ...],
    stream: Any,
) -> None:
    sizes = [_index(builder, size) for size in (*grid, *block)]
    operands = [*sizes]
    has_shared = 0
    if isinstance(smem, Scalar) and smem.dtype.is_integer:
        operands.append(builder.ssa(convert(smem, I32)))
        has_shared = 1
    elif isinstance(smem, bool) or not hasattr(smem, "__index__"):
        tracing.refuse(f"smem must be a number of bytes, not {describe(smem)}")
    elif operator.index(smem):
        operands.append(builder.ssa(convert(operator.index(smem), I32)))
        has_shared = 1
    passed = [argument.value for argument in arguments if argument.passed]
    operands += [
        value.ssa if isinstance(value, DialectValue) else builder.ssa(value) for value in passed
    ]
    operands += [] if stream is None else [stream]
    streams = int(stream is not None)
    segments = [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, has_shared, len(passed), streams]
    attributes = {
        "kernel": builder.attribute(f"@kernels::@{symbol}"),
        "operandSegmentSizes": builder.attribute(f"array<i32: {', '.join(map(str, segments))}>"),
    }
    builder.op("gpu.launch_func", [], operands, attributes)


def _index(builder: Builder, size: Any) -> Any:
    if not isinstance(size, Scalar):
        return builder.index(size)
    wide = size if size.dtype.ir == I64.ir else convert(size, I64)
    return builder.one("arith.index_cast", "index", builder.ssa(wide))
