"""A plan and named values → buffers, launches and the bytes of their arguments.

Nothing here touches a device: `bind` checks everything that can be checked before a kernel runs,
and its result says what to do. The shell and the library both come through here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from fly_common.code_object import CodeObject, Kernel
from fly_common.errors import InputError, UsageError
from fly_common.plan import Launch, Plan, Scalar, Tensor, Word
from fly_common.plan_eval import Extents, evaluate

from fly_run import dtypes
from fly_run.limits import check_launch

if TYPE_CHECKING:
    import numpy as np

Value: TypeAlias = "np.ndarray | int | float | bool"
Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Buffer:
    """The memory of a tensor argument: `nbytes` bytes from host address `host` on; element zero is
    `origin` bytes in (it is not at the start where a stride is negative)."""

    name: str
    host: int
    nbytes: int
    origin: int
    writable: bool


@dataclass(frozen=True)
class BoundLaunch:
    """A launch with all its numbers. `pointers` are the (offset, buffer name) whose addresses go
    into `kernarg` once a device has given them."""

    kernel: str
    grid: Triple
    block: Triple
    dynamic_lds: int
    kernarg: bytes
    pointers: tuple[tuple[int, str], ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to run, because an extent is 0."""
        return 0 in self.grid

    def kernarg_at(self, addresses: Mapping[str, int]) -> bytes:
        """The argument bytes with the buffers' device addresses in them."""
        made = bytearray(self.kernarg)
        for offset, name in self.pointers:
            made[offset : offset + 8] = addresses[name].to_bytes(8, "little")
        return bytes(made)


@dataclass(frozen=True)
class Bound:
    """What a call of a code object's entry does. `arrays` keeps the buffers' memory alive."""

    buffers: tuple[Buffer, ...]
    launches: tuple[BoundLaunch, ...]
    arrays: Mapping[str, np.ndarray]


def bind(plan: Plan, code: CodeObject, values: Mapping[str, Value]) -> Bound:
    """Binds arguments by name: NumPy arrays to tensors, numbers to scalars. A scalar with a
    default may be left out.

    UsageError for names that are missing or unknown; InputError for a value that does not fit its
    parameter, and for a launch the device or the kernel does not allow. Both say which and why.
    """
    check_names(plan, values)
    tensors = {p.name: p for p in plan.parameters if isinstance(p, Tensor)}
    arrays = {name: check_array(tensor, values[name]) for name, tensor in tensors.items()}
    check_symbols(tensors, {name: array.shape for name, array in arrays.items()})
    scalars = {
        p.name: check_scalar(p, values.get(p.name, p.default))
        for p in plan.parameters
        if isinstance(p, Scalar)
    }
    extents = {name: _extents(tensors[name], array) for name, array in arrays.items()}
    integers = {name: int(value) for name, value in scalars.items() if not isinstance(value, float)}
    numbers = evaluate(plan, extents, integers)
    launches = tuple(_bind_launch(plan, code, launch, numbers, scalars) for launch in plan.launches)
    buffers = tuple(
        make_buffer(name, array, tensors[name].access != "r") for name, array in arrays.items()
    )
    return Bound(buffers, launches, arrays)


def check_names(plan: Plan, values: Mapping[str, object]) -> None:
    """UsageError for the first name that is unknown or missing."""
    known = {p.name for p in plan.parameters}
    for name in values:
        if name not in known:
            raise UsageError(f"{plan.entry} has no parameter {name!r}", hint=_suggest(name, plan))
    for parameter in plan.parameters:
        optional = isinstance(parameter, Scalar) and parameter.default is not None
        if parameter.name not in values and not optional:
            raise UsageError(
                f"{plan.entry} needs {parameter.name}, {describe(parameter)}",
                hint=f"add {_example(parameter)}",
            )


def _suggest(name: str, plan: Plan) -> str:
    import difflib

    names = [p.name for p in plan.parameters]
    # A single letter in the other case is too short for difflib to call close.
    near = [known for known in names if known.lower() == name.lower()]
    near += difflib.get_close_matches(name, names, n=1)
    told = ", ".join(f"{p.name}: {describe(p)}" for p in plan.parameters)
    return f"did you mean {near[0]}?  parameters: {told}" if near else f"parameters: {told}"


def describe(parameter: Tensor | Scalar) -> str:
    """`f32[n,4], read only`."""
    if isinstance(parameter, Scalar):
        default = parameter.default
        if default is None:
            return parameter.dtype
        # As the f32 that it is: 1e-05, not its digits as a double.
        shown = f"{default:.7g}" if isinstance(default, float) else str(default).lower()
        return f"{parameter.dtype}, {shown} by default"
    shape = ",".join("?" if extent is None else str(extent) for extent in parameter.shape)
    access = {"r": "read", "w": "written", "rw": "read and written"}[parameter.access]
    return f"{parameter.dtype}[{shape}], {access}"


def _example(parameter: Tensor | Scalar) -> str:
    if isinstance(parameter, Scalar):
        return f"{parameter.name}={'1.5' if parameter.dtype in dtypes.FLOATS else '1'}"
    path = f"{parameter.name.lower()}.npy"
    return f"{parameter.name}={path}" + (f":{path}" if parameter.access == "rw" else "")


# -- tensors -------------------------------------------------------------------------------------


def check_array(tensor: Tensor, value: Value) -> np.ndarray:
    """`value`, if it is an array that fits the parameter. InputError otherwise."""
    import numpy as np

    name, wanted = tensor.name, tensor.dtype
    if not isinstance(value, np.ndarray):
        raise InputError(
            f"{name} is {describe(tensor)}; {value!r} is no array",
            hint=f"for an array of one value: {name}=full({_shape_text(tensor)},{wanted},{value})",
        )
    if not dtypes.holds(value.dtype, wanted):
        raise InputError(
            f"{name} must be {wanted}, the array is {dtypes.name_of(value.dtype)}",
            hint=_conversion(value.dtype, wanted),
        )
    if value.ndim != len(tensor.shape):
        raise InputError(
            f"{name} must have {len(tensor.shape)} dimensions, the array has {value.ndim}:"
            f" shape {value.shape}",
            hint=f"{name} is {describe(tensor)}",
        )
    for dimension, (extent, there) in enumerate(zip(tensor.shape, value.shape, strict=True)):
        if isinstance(extent, int) and extent != there:
            raise InputError(
                f"extent {dimension} of {name} must be {extent}, the array's shape is {value.shape}"
            )
    _check_strides(tensor, value)
    _check_multiples(tensor, value)
    if tensor.access != "r" and not value.flags.writeable:
        raise InputError(
            f"{name} is {describe(tensor)}, and the array is read-only",
            hint="pass a copy: np.array(x)",
        )
    if value.size and not value.flags.aligned:
        raise InputError(
            f"the elements of {name} are not aligned in memory", hint="pass a copy: np.array(x)"
        )
    return value


def _shape_text(tensor: Tensor) -> str:
    extents = [str(extent) if isinstance(extent, int) else "100" for extent in tensor.shape]
    return f"({','.join(extents)}{',' if len(extents) == 1 else ''})"


def _conversion(dtype: np.dtype, wanted: str) -> str:
    if not dtype.isnative and dtypes.holds(dtype.newbyteorder("="), wanted):
        return "its bytes are in the other order; convert it: x.astype(x.dtype.newbyteorder('='))"
    if wanted == "bf16":
        return "bf16 arrays hold their bits as uint16, or are ml_dtypes.bfloat16"
    return f"convert it: x.astype('{dtypes.numpy_dtype(wanted).name}')"


def _check_strides(tensor: Tensor, array: np.ndarray) -> None:
    """Strides matter only where a dimension has more than one element."""
    for dimension, stride in enumerate(array.strides):
        if array.shape[dimension] > 1 and stride % array.itemsize and array.size:
            raise InputError(
                f"stride {dimension} of {tensor.name} is {stride} bytes, no multiple of the"
                f" element's {array.itemsize}",
                hint="pass a copy: np.ascontiguousarray(x)",
            )
    wanted = _canonical(array.shape) if tensor.contiguous else tensor.strides
    found = tuple(stride // array.itemsize for stride in array.strides)
    for dimension, (want, have) in enumerate(zip(wanted, found, strict=True)):
        if want is not None and want != have and array.shape[dimension] > 1 and array.size:
            what = "must be contiguous in C order" if tensor.contiguous else "has fixed strides"
            raise InputError(
                f"{tensor.name} {what}: stride {dimension} must be {want} elements, the array's is"
                f" {have}",
                hint="pass a copy: np.ascontiguousarray(x)",
            )


def _check_multiples(tensor: Tensor, array: np.ndarray) -> None:
    """What the kernel takes for multiples must be."""
    strides = (
        stride // array.itemsize if extent > 1 and array.size else 0
        for extent, stride in zip(array.shape, array.strides, strict=True)
    )
    found = zip(tensor.multiples, (*array.shape, *strides), strict=False)
    for number, (divisor, value) in enumerate(found):
        if value % divisor:
            what = "extent" if number < array.ndim else "stride"
            raise InputError(
                f"{tensor.name}: {what} {number % array.ndim} must be a multiple of {divisor}"
                f" {'elements, ' if what == 'stride' else ''}and is {value}",
                hint="the kernel was compiled for such arrays: pad the array, or compile without"
                " div=",
            )


def _canonical(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a C-contiguous array, in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _extents(tensor: Tensor, array: np.ndarray) -> Extents:
    """What the plan sees of an array. NumPy leaves the stride of a dimension of one element open;
    where the parameter says what it is, the kernel may rely on it."""
    canonical = _canonical(array.shape)
    strides = [stride // array.itemsize for stride in array.strides]
    for dimension, stated in enumerate(tensor.strides):
        if tensor.contiguous:
            strides[dimension] = canonical[dimension]
        elif stated is not None:
            strides[dimension] = stated
        elif array.shape[dimension] < 2 and tensor.multiples:
            strides[dimension] = 0
    return Extents(array.shape, tuple(strides))


def check_symbols(
    tensors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """The extents that symbols stand for. InputError where two arrays disagree. Tensors that
    `shapes` lacks are passed over."""
    known: dict[str, tuple[int, str]] = {}
    for name, shape in shapes.items():
        for symbol, extent in zip(tensors[name].shape, shape, strict=True):
            if not isinstance(symbol, str):
                continue
            before, first = known.setdefault(symbol, (extent, name))
            if before != extent:
                raise InputError(
                    f"extent {symbol} is {before} in {first}, {extent} in {name}",
                    hint=f"{first} has shape {shapes[first]}, {name} {shape}",
                )
    return {symbol: extent for symbol, (extent, _) in known.items()}


def make_buffer(name: str, array: np.ndarray, writable: bool) -> Buffer:
    """The bytes that `array`'s elements cover."""
    start = array.ctypes.data
    if array.size == 0:
        return Buffer(name, start, 0, 0, writable)
    steps = [
        (extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)
    ]
    low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
    return Buffer(name, start + low, high - low + array.itemsize, -low, writable)


# -- scalars -------------------------------------------------------------------------------------


def check_scalar(scalar: Scalar, value: object) -> int | float | bool:
    """`value` as the plain Python number that the parameter's type asks for. InputError where it
    is no number, or does not fit."""
    import numpy as np

    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    dtype = scalar.dtype
    if not isinstance(value, int | float):
        raise InputError(f"{scalar.name} must be one {dtype} number, not {_kind(value)}")
    if dtype in dtypes.FLOATS:
        number: int | float | bool = float(value)
    elif dtype == "bool":
        if value not in (0, 1):
            raise InputError(f"{scalar.name} is bool: true or false, not {value}")
        number = bool(value)
    elif isinstance(value, float):
        raise InputError(
            f"{scalar.name} is {dtype}, {value} is not an integer",
            hint=f"write {scalar.name}={int(value)}" if value.is_integer() else None,
        )
    else:
        number = int(value)
    try:
        dtypes.pack_scalar(number, dtype)
    except OverflowError:
        raise InputError(f"{scalar.name}={value} does not fit {dtype}") from None
    return number


def _kind(value: object) -> str:
    shape = getattr(value, "shape", None)
    return f"an array of shape {shape}" if shape is not None else repr(value)


# -- launches ------------------------------------------------------------------------------------


def _bind_launch(
    plan: Plan,
    code: CodeObject,
    launch: Launch,
    numbers: list[int | None],
    scalars: Mapping[str, int | float | bool],
) -> BoundLaunch:
    kernel = code.kernel(launch.kernel)
    grid, block, lds = (
        _triple(launch.grid, numbers),
        _triple(launch.block, numbers),
        _at(numbers, launch.lds),
    )
    check_launch(code.target, kernel, grid, block, lds)
    explicit = kernel.explicit_args
    if len(explicit) != len(launch.arguments):
        raise InputError(
            f"the launch plan gives {kernel.name} {len(launch.arguments)} arguments, the kernel"
            f" takes {len(explicit)}"
        )
    kernarg = bytearray(kernel.kernarg_size)
    pointers: list[tuple[int, str]] = []
    for number, (argument, words) in enumerate(zip(explicit, launch.arguments, strict=True)):
        at = argument.offset
        for word in words:
            if word.kind == "pointer":
                pointers.append((at, str(word.name)))
                content = bytes(8)
            else:
                content = _word(plan, kernel, word, numbers, scalars)
            kernarg[at : at + len(content)] = content
            at += len(content)
        if at - argument.offset != argument.size:
            raise InputError(
                f"the launch plan gives argument {number} of {kernel.name}"
                f" {at - argument.offset} bytes, the kernel takes {argument.size}"
            )
    return BoundLaunch(kernel.name, grid, block, lds, bytes(kernarg), tuple(pointers))


def _at(numbers: list[int | None], index: int) -> int:
    number = numbers[index]
    assert number is not None  # evaluate() has refused what launches use and has no value
    return number


def _triple(indices: Triple, numbers: list[int | None]) -> Triple:
    x, y, z = (_at(numbers, index) for index in indices)
    return x, y, z


def _word(
    plan: Plan,
    kernel: Kernel,
    word: Word,
    numbers: list[int | None],
    scalars: Mapping[str, int | float | bool],
) -> bytes:
    if word.kind == "scalar":
        parameter = plan.parameter(str(word.name))
        if not isinstance(parameter, Scalar) or parameter.dtype not in dtypes.SIZES:
            raise InputError(f"the launch plan is damaged: {word.name!r} is no scalar")
        return dtypes.pack_scalar(scalars[parameter.name], parameter.dtype)
    assert word.expression is not None  # plan.from_text has checked it
    value = _at(numbers, word.expression)
    try:
        return value.to_bytes(word.size, "little", signed=True)
    except OverflowError:
        raise InputError(
            f"{value} does not fit a {8 * word.size}-bit argument of {kernel.name}",
            hint="declare the kernel's parameter as fx.Int64",
        ) from None
