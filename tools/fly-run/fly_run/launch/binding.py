"""Binds named values to a plan: computes buffers, launches and their argument bytes.

Nothing here touches a device: `bind` checks everything that can be checked before a kernel runs,
and its result describes what to run. The shell uses it directly, and the library through `binder`,
which caches results by the arrays' shapes and is much faster.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fly_common.errors import InputError
from fly_common.quoting import quoted
from fly_host.evaluation import evaluate
from fly_host.plan import Launch, Plan, Scalar, Tensor, Word
from fly_image.image import Image, KernelInterface

from fly_run.launch import dtypes
from fly_run.launch.limits import check_launch
from fly_run.launch.parameters import check_names, check_scalar
from fly_run.launch.tensors import check_array, check_symbols, extents_of

if TYPE_CHECKING:
    import numpy as np

Value: TypeAlias = "np.ndarray | int | float | bool"
Triple = tuple[int, int, int]
_ADDRESS = struct.Struct("<Q")


class Buffer(NamedTuple):
    """The memory of a tensor argument: `nbytes` bytes starting at host address `host`; element zero
    is at offset `origin`, which is not 0 if a stride is negative."""

    name: str
    host: int
    nbytes: int
    origin: int
    writable: bool


class BoundLaunch(NamedTuple):
    """A launch with all its numbers. `pointers` are (offset, buffer name) pairs; the buffer's
    address goes into `kernarg` once a device has assigned it."""

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
        """Returns the argument bytes with the buffers' device addresses."""
        made = bytearray(self.kernarg)
        for offset, name in self.pointers:
            _ADDRESS.pack_into(made, offset, addresses[name])
        return bytes(made)


class Bound(NamedTuple):
    """The work of one call of an image's entry. `arrays` keeps the buffers' memory alive."""

    buffers: tuple[Buffer, ...]
    launches: tuple[BoundLaunch, ...]
    arrays: Mapping[str, np.ndarray]


def bind(plan: Plan, image: Image, values: Mapping[str, Value]) -> Bound:
    """Binds arguments by name: NumPy arrays to tensors, numbers to scalars. A scalar with a default
    may be omitted.

    UsageError for missing or unknown names; InputError for a value that does not fit its parameter,
    and for a launch that the device or the kernel does not allow. Both say which and why.
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
    extents = {name: extents_of(tensors[name], array) for name, array in arrays.items()}
    integers = {name: int(value) for name, value in scalars.items() if not isinstance(value, float)}
    numbers = evaluate(plan, extents, integers)
    launches = tuple(
        _bind_launch(plan, image, launch, numbers, scalars) for launch in plan.launches
    )
    buffers = tuple(
        make_buffer(name, array, tensors[name].access != "r") for name, array in arrays.items()
    )
    return Bound(buffers, launches, arrays)


def make_buffer(name: str, array: np.ndarray, writable: bool) -> Buffer:
    """Returns the memory that `array`'s elements cover."""
    start = array.ctypes.data
    if array.size == 0:
        return Buffer(name, start, 0, 0, writable)
    steps = [
        (extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)
    ]
    low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
    return Buffer(name, start + low, high - low + array.itemsize, -low, writable)


def _bind_launch(
    plan: Plan,
    image: Image,
    launch: Launch,
    numbers: list[int | None],
    scalars: Mapping[str, int | float | bool],
) -> BoundLaunch:
    kernel = image.kernel(launch.kernel)
    grid, block, lds = (
        _triple(launch.grid, numbers),
        _triple(launch.block, numbers),
        _at(numbers, launch.lds),
    )
    check_launch(image.target, kernel, grid, block, lds)
    explicit = kernel.arguments
    if len(explicit) != len(launch.arguments):
        raise InputError(
            f"the launch plan passes {len(launch.arguments)} arguments to {kernel.name}, but the"
            " kernel"
            f" takes {len(explicit)}"
        )
    kernarg = bytearray(kernel.argument_bytes)
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
                f"the launch plan passes argument {number} of {kernel.name} with"
                f" {at - argument.offset} bytes, but the kernel takes {argument.size}"
            )
    return BoundLaunch(kernel.name, grid, block, lds, bytes(kernarg), tuple(pointers))


def _at(numbers: list[int | None], index: int) -> int:
    number = numbers[index]
    assert number is not None  # evaluate() has rejected launches that use it without a value
    return number


def _triple(indices: Triple, numbers: list[int | None]) -> Triple:
    x, y, z = (_at(numbers, index) for index in indices)
    return x, y, z


def _word(
    plan: Plan,
    kernel: KernelInterface,
    word: Word,
    numbers: list[int | None],
    scalars: Mapping[str, int | float | bool],
) -> bytes:
    if word.kind == "scalar":
        parameter = plan.parameter(str(word.name))
        if not isinstance(parameter, Scalar) or parameter.dtype not in dtypes.SIZES:
            raise InputError(f"the launch plan is damaged: {quoted(word.name)} is not a scalar")
        return dtypes.pack_scalar(scalars[parameter.name], parameter.dtype)
    assert word.expression is not None  # plan.from_text has checked it
    value = _at(numbers, word.expression)
    try:
        return value.to_bytes(word.size, "little", signed=True)
    except OverflowError:
        raise InputError(
            f"{value} does not fit in a {8 * word.size}-bit argument of {kernel.name}",
            hint="declare it with 64 bits: fx.Int64 for a kernel's number, fx.sym_int64 for an"
            " extent",
        ) from None
