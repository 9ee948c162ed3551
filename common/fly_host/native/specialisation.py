"""What native code is made for: a program, the kinds of its arguments, and its way to the device.

A specialisation takes arguments of the kinds that it was made for; any other call is a miss. The
fields here decide about the code. What differs between processes (addresses, objects) does not:
it comes in slots (`fly_host.native.slots`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fly_host.native import probing
from fly_host.native.unavailable import Unavailable
from fly_host.program import Program, Stream, Tensor, Triple

MOST_WORK_ITEMS = (1 << 32) - 1  # a dimension of a grid
CPU = (1, 0)  # DLPack's device type and number


@dataclass(frozen=True)
class Array:
    """A kind of tensor: torch.Tensor ("torch") on a device, or numpy.ndarray ("numpy") with a dtype
    object. `device` is DLPack's pair of device type and number. `order` is the order of dimensions
    in memory from the innermost out, of a written tensor whose order is neither C's nor Fortran's:
    launchers look at these three orders only to see that no two elements are in one place."""

    kind: str
    device: tuple[int, int] = CPU
    dtype: Any = None
    order: tuple[int, ...] | None = None


@dataclass(frozen=True)
class KernelLimits:
    """The interface of the kernel of one launch. `arguments` holds the offset and size of each
    argument in the packed ones, which are `argument_bytes` long. A workgroup has at most
    `max_threads` work items and is `required_block`, if that is not None; `shared` is the most
    dynamic shared memory, in bytes; `grid` the most workgroups in each dimension, which is a
    multiple of `cluster`, if that is not None. `target` and
    `static`, the bytes of static shared memory, are for messages."""

    argument_bytes: int
    arguments: tuple[tuple[int, int], ...]
    max_threads: int
    shared: int
    required_block: Triple | None = None
    grid: Triple | None = None
    target: str = ""
    static: int = 0
    cluster: Triple | None = None


@dataclass(frozen=True)
class Describing:
    """Descriptors of tensors by a C function with cuTensorMapEncodeTiled's signature, at the
    address `function`. `elements` are its numbers of MLIR's element types, `rounded` those of types
    that are rounded as they are loaded, `swizzles` those of rows' bytes, `promotion` that of
    accesses to the L2 cache. The numbers are part of the code."""

    function: int
    elements: tuple[tuple[str, int], ...]
    swizzles: tuple[tuple[int, int], ...]
    promotion: int
    rounded: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class DriverEntry:
    """Launches by a C function with the signature that cuLaunchKernel and hipModuleLaunchKernel
    share. `function` is its address, `kernels` the handle of the kernel of each launch.

    The addresses of tensors are passed as they are: they must be addresses of the device.
    `error(launch, code)` raises for a status that is not 0. `stream()` gives the handle of the
    device's current stream; without it that is 0. `end` is the last word of `extra`: 0 for CUDA, 3
    for HIP. `blocking` releases the GIL around the function. `describing` is None where the driver
    has no descriptors.
    """

    function: int
    kernels: Sequence[int]
    error: Callable[[int, int], object]
    stream: Callable[[], int] | None = None
    end: int = 0
    blocking: bool = False
    describing: Describing | None = None


@dataclass(frozen=True)
class PythonEntry:
    """Launches by a Python callable: `run(batch, buffers, launches, *streams)`. See `Batch`."""

    run: Callable[..., object]


Entry = DriverEntry | PythonEntry


@dataclass(frozen=True)
class Batch:
    """Launches that a PythonEntry gets in one call: numbers into `Program.launches`.

    `buffers` holds for each of `tensors` three 64-bit integers: the host address of the first byte
    that its elements cover, how many bytes they cover (0 for a tensor without elements), and how
    far into them element zero is. `launches` holds for each launch `sizes[i]` bytes: eight 64-bit
    integers (its number; grid; block; dynamic shared memory), the packed arguments, and what fills
    up the last eight bytes. In each place of `pointers[i]`, (offset into these bytes, position in
    `tensors`), there is an offset in bytes, to which the address of element zero has to be added.
    A launch whose grid has a 0 is to be passed over. `streams` are the arguments of the program's
    stream parameters, in their order.
    """

    launches: tuple[int, ...]
    tensors: tuple[str, ...]
    sizes: tuple[int, ...]
    pointers: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True)
class Specialisation:
    """`arrays` tells the kind of each tensor parameter by name, `made` that of the tensors that the
    program allocates, `dtypes` the NumPy dtype objects of these by element type. `limits` belong
    to `program.launches`."""

    program: Program
    arrays: Mapping[str, Array]
    limits: Sequence[KernelLimits]
    made: Array = field(default_factory=lambda: Array("numpy"))
    dtypes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """`opt_level` is LLVM's, but for 1, which stands for a few passes that take little time;
    `num_threads` how many launchers may be compiled at once; `in_process`
    whether llvmlite is used where it can be imported."""

    opt_level: int = 1
    num_threads: int = 2
    in_process: bool = True


def specialise(
    program: Program, arguments: Sequence[object], limits: Sequence[KernelLimits]
) -> Specialisation:
    """The specialisation for calls like this one. Unavailable where arguments are neither torch
    tensors nor NumPy arrays, or lie on several devices."""
    arrays = {
        parameter.name: array_kind(parameter, value)
        for parameter, value in zip(program.parameters, arguments, strict=False)
        if isinstance(parameter, Tensor)
    }
    kinds = list(arrays.values())
    if len({(array.kind, array.device) for array in kinds if array.kind == "torch"}) > 1:
        raise Unavailable("the tensors lie on several devices")
    made = next((array for array in kinds if array.kind == "torch"), Array("numpy"))
    dtypes = {
        parameter.dtype: arrays[parameter.name].dtype
        for parameter in program.parameters
        if isinstance(parameter, Tensor)
        if parameter.name in arrays and arrays[parameter.name].kind == "numpy"
    }
    return Specialisation(program, arrays, limits, made, dtypes)


def array_kind(parameter: Tensor, value: object) -> Array:
    """The kind of one argument."""
    name = parameter.name
    torch: Any = sys.modules.get("torch")
    if torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter):
        tensor: Any = value
        try:
            device = probing.device_of(tensor)
            strides = tensor.stride()
        except RuntimeError as error:  # meta tensors, sparse ones, those on unknown devices
            raise Unavailable(f"{name} can't be read: {error}".splitlines()[0]) from None
        return Array("torch", device, None, _order(parameter, strides))
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and type(value) is numpy.ndarray:
        array: Any = value
        return Array("numpy", CPU, array.dtype, _order(parameter, array.strides))
    raise Unavailable(f"{name} is neither a torch.Tensor nor a numpy.ndarray")


def _order(parameter: Tensor, strides: Sequence[int]) -> tuple[int, ...] | None:
    """See `Array.order`."""
    if parameter.access == "r" or parameter.contiguous or len(strides) != len(parameter.shape):
        return None
    usual = tuple(reversed(range(len(strides))))
    found = tuple(sorted(usual, key=lambda dimension: abs(strides[dimension])))
    return None if found in (usual, usual[::-1]) else found


def streams(program: Program) -> tuple[str, ...]:
    """The names of the stream parameters."""
    return tuple(p.name for p in program.parameters if isinstance(p, Stream))
