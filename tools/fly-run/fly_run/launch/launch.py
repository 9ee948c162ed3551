"""Launches any kernel by its own arguments, in order, without a program.

launch(image, "vadd", 4, 256, [a, b, c, np.int32(1000)])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from fly_common.errors import InputError, UsageError
from fly_common.quoting import quoted
from fly_image.image import POINTER, SHARED, VALUE, Argument, Image

from fly_run.devices.protocol import Device, Module
from fly_run.launch import runtime
from fly_run.launch.arrays.memory import Memory, place_of, span_of
from fly_run.launch.completed import Ran, launch_packed
from fly_run.launch.limits import check_launch

if TYPE_CHECKING:
    import numpy as np

Triple = tuple[int, int, int]

LDS_ALIGNMENT = 16  # bytes, between dynamic LDS arrays: the widest access is 16 bytes


@dataclass(frozen=True)
class Lds:
    """A dynamic LDS array of `nbytes` bytes, for a pointer argument in address space local."""

    nbytes: int

    def __str__(self) -> str:
        return f"lds:{self.nbytes}"


@dataclass(frozen=True)
class Address:
    """An array whose address is the value of an argument of 8 bytes."""

    array: np.ndarray


class KernelCall(NamedTuple):
    """A launch of one kernel. The addresses of `arrays`, by name, go to the offsets `pointers` of
    the packed arguments."""

    kernel: str
    grid: Triple
    block: Triple
    shared: int
    packed: bytes
    pointers: tuple[tuple[int, str], ...]
    arrays: Mapping[str, np.ndarray]
    cluster: Triple | None = None

    def run(self, module: Module, device: Device) -> list[Ran]:
        """Runs it; the arrays that are writable hold the results when it returns."""
        wait = place_of(self.arrays) is None
        memory = Memory(device)
        try:
            packed = bytearray(self.packed)
            arrays = [(name, self.arrays[name]) for _, name in self.pointers]
            spans = [(name, span_of(one), bool(one.flags.writeable)) for name, one in arrays]
            for (offset, _), address in zip(self.pointers, memory.adopt_all(spans), strict=True):
                packed[offset : offset + 8] = address.to_bytes(8, "little")
            function = module.function(self.kernel)
            launched = (self.grid, self.block, self.shared, bytes(packed))
            ran = launch_packed(
                device, function, self.kernel, *launched, wait=wait, cluster=self.cluster
            )
            if wait:
                memory.to_host()
            return [ran]
        finally:
            memory.close()


def launch(
    image: Image,
    kernel: str | None,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Sequence[Any],
    *,
    dynamic_lds: int = 0,
    device: Device | None = None,
    names: Sequence[str] | None = None,
    cluster: int | tuple[int, ...] | None = None,
) -> list[Ran]:
    """Launches a kernel by its own argument list, as its metadata describes it.

    `args` are, in order: NumPy arrays for buffers (written if they are writable); NumPy scalars
    (`np.int32(5)`) or `bytes` of the argument's size for values; `Lds(n)` for a local pointer.
    `grid` counts workgroups, `block` work items, and `cluster` the workgroups of a cluster, for a
    kernel that does not say them itself. `names` are the arguments' names in errors.
    Without a `device` it runs on the process's `auto` device.
    """
    call = bind_arguments(image, kernel, grid, block, args, dynamic_lds, names, cluster)
    if device is None:
        with runtime.device("auto", image.target) as opened:
            return opened.run_kernel(call, image)
    module = device.load(image)
    try:
        return call.run(module, device)
    finally:
        module.unload()


def bind_arguments(
    image: Image,
    kernel: str | None,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Sequence[Any],
    dynamic_lds: int = 0,
    names: Sequence[str] | None = None,
    cluster: int | tuple[int, ...] | None = None,
) -> KernelCall:
    """What `launch` will do, checked against the kernel's arguments. UsageError for a wrong count,
    InputError for a value that does not fit."""
    import numpy as np

    found = image.kernel(kernel)
    explicit = found.arguments
    if len(args) != len(explicit):
        raise UsageError(
            f"{found.name} takes {len(explicit)} arguments, got {len(args)}",
            hint="they are: " + (", ".join(one.description for one in explicit) or "none"),
        )
    kernarg = bytearray(found.argument_bytes)
    pointers: list[tuple[int, str]] = []
    arrays: dict[str, np.ndarray] = {}
    for number, (argument, value) in enumerate(zip(explicit, args, strict=True)):
        name = names[number] if names else argument.name or f"argument {number}"
        what = f"{name} of {found.name} is {argument.description}"
        content = b""
        if argument.kind == SHARED:
            if not isinstance(value, Lds):
                raise InputError(f"{what}: expected an amount of LDS", hint="write lds:BYTES")
            offset = -(-(found.shared_bytes + dynamic_lds) // LDS_ALIGNMENT)
            content = (offset * LDS_ALIGNMENT).to_bytes(argument.size, "little")
            dynamic_lds = offset * LDS_ALIGNMENT + value.nbytes - found.shared_bytes
        elif argument.kind == POINTER:
            if not isinstance(value, np.ndarray) or value.ndim == 0:
                raise InputError(f"{what}: expected an array")
            pointers.append((argument.offset, name))
            arrays[name] = value
        elif argument.kind == VALUE and isinstance(value, Address):
            if argument.size != 8:
                raise InputError(f"{what}: an address has 8 bytes")
            pointers.append((argument.offset, name))
            arrays[name] = value.array
        elif argument.kind == VALUE:
            content = _by_value(what, argument, value)
        else:
            raise InputError(f"{what}: fly-run can't pass such an argument")
        kernarg[argument.offset : argument.offset + len(content)] = content
    x, y = _triple(grid, "grid"), _triple(block, "block")
    joint = None if cluster is None else _triple(cluster, "cluster")
    check_launch(image.target, found, x, y, dynamic_lds, joint)
    packed = bytes(kernarg)
    return KernelCall(found.name, x, y, dynamic_lds, packed, tuple(pointers), arrays, joint)


def _by_value(what: str, argument: Argument, value: Any) -> bytes:
    import numpy as np

    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.tobytes()
    if not isinstance(value, bytes | bytearray):
        raise InputError(
            f"{what}: its type is not known, so {quoted(value)} has no size",
            hint="give a type: i32:5 or f32:2.5; np.int32(5) from Python; or bytes",
        )
    if len(value) != argument.size:
        raise InputError(f"{what}: got {len(value)} bytes")
    return bytes(value)


def _triple(size: int | tuple[int, ...], what: str) -> Triple:
    sizes = (size,) if isinstance(size, int) else tuple(size)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int) for n in sizes):
        raise UsageError(f"{what} {quoted(size)}: expected one to three integers")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
