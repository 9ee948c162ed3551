"""Running what is bound on a device, and the launch of a kernel that has no plan.

run(bound, code, device)                        a plan's launches
launch(code, "vadd", 4, 256, [a, b, c, np.int32(1000)])    any kernel, arguments in order
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError, UsageError
from fly_common.quoting import quoted
from fly_image.amd.code_object import Argument, CodeObject

from fly_run.device import Device, open_device
from fly_run.launch.binding import Bound, BoundLaunch, Buffer, make_buffer
from fly_run.launch.limits import check_launch

if TYPE_CHECKING:
    import numpy as np

Triple = tuple[int, int, int]

DYNAMIC_LDS = "dynamic_shared_pointer"
LDS_ALIGNMENT = 16  # bytes, between dynamic LDS arrays: the widest access is 16 bytes


@dataclass(frozen=True)
class Ran:
    """A launch that ended. `instructions` counts wave instructions, None where a device can't;
    `seconds` is wall-clock time with `synchronize`."""

    launch: BoundLaunch
    seconds: float
    instructions: int | None


@dataclass(frozen=True)
class Lds:
    """A dynamic LDS array of `nbytes` bytes, for a pointer argument in address space local."""

    nbytes: int

    def __str__(self) -> str:
        return f"lds:{self.nbytes}"


def run(bound: Bound, code: CodeObject, device: Device) -> list[Ran]:
    """Runs the launches in order; the host arrays hold the results when it returns. Launches over
    an empty grid are passed over."""
    addresses = {
        buffer.name: device.bind(buffer.name, buffer.host, buffer.nbytes, buffer.writable)
        + buffer.origin
        for buffer in bound.buffers
        if buffer.nbytes
    }
    # A buffer without elements has no memory; a null address faults where a kernel uses it.
    addresses |= {buffer.name: 0 for buffer in bound.buffers if not buffer.nbytes}
    ran = []
    for item in bound.launches:
        before, start = device.instructions, time.perf_counter()
        if not item.empty:
            kernarg = item.kernarg_at(addresses)
            device.launch(code, item.kernel, item.grid, item.block, kernarg, item.dynamic_lds)
            device.synchronize()
        after = device.instructions
        count = None if before is None or after is None else after - before
        ran.append(Ran(item, time.perf_counter() - start, count))
    return ran


def launch(
    code: CodeObject,
    kernel: str | None,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Sequence[Any],
    *,
    dynamic_lds: int = 0,
    device: Device | None = None,
    names: Sequence[str] | None = None,
) -> list[Ran]:
    """Launches a kernel by its own argument list, as its metadata describes it.

    `args` in order: NumPy arrays for buffers (written where they are writable); NumPy scalars
    (`np.int32(5)`) or `bytes` for what is passed by value, of the argument's size; `Lds(n)` for a
    local pointer. `grid` counts workgroups, `block` work items. `names` are what errors call the
    arguments. Without a `device` it opens the one that `auto` stands for.
    """
    bound = bind_arguments(code, kernel, grid, block, args, dynamic_lds, names)
    opened = open_device("auto", code.target) if device is None else device
    try:
        return run(bound, code, opened)
    finally:
        if device is None:
            opened.close()


def bind_arguments(
    code: CodeObject,
    kernel: str | None,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Sequence[Any],
    dynamic_lds: int = 0,
    names: Sequence[str] | None = None,
) -> Bound:
    """What `launch` will do, checked against the kernel's `.args`. UsageError for a wrong count,
    InputError for a value that does not fit."""
    import numpy as np

    found = code.kernel(kernel)
    explicit = found.explicit_args
    if len(args) != len(explicit):
        raise UsageError(
            f"{found.name} takes {len(explicit)} arguments, {len(args)} are given",
            hint="they are: " + (", ".join(map(describe, explicit)) or "none"),
        )
    kernarg = bytearray(found.kernarg_size)
    buffers: list[Buffer] = []
    pointers: list[tuple[int, str]] = []
    arrays: dict[str, np.ndarray] = {}
    for number, (argument, value) in enumerate(zip(explicit, args, strict=True)):
        name = names[number] if names else argument.name or f"argument {number}"
        what = f"{name} of {found.name} is {describe(argument)}"
        content = b""
        if argument.value_kind == DYNAMIC_LDS:
            if not isinstance(value, Lds):
                raise InputError(f"{what}: an amount of LDS is wanted", hint="write lds:BYTES")
            offset = -(-(found.group_segment_fixed_size + dynamic_lds) // LDS_ALIGNMENT)
            content = (offset * LDS_ALIGNMENT).to_bytes(argument.size, "little")
            dynamic_lds = offset * LDS_ALIGNMENT + value.nbytes - found.group_segment_fixed_size
        elif argument.value_kind == "global_buffer":
            if not isinstance(value, np.ndarray) or value.ndim == 0:
                raise InputError(f"{what}: an array is wanted")
            buffers.append(make_buffer(name, value, bool(value.flags.writeable)))
            pointers.append((argument.offset, name))
            arrays[name] = value
        elif argument.value_kind == "by_value":
            content = _by_value(what, argument, value)
        else:
            raise InputError(f"{what}: fly-run can't pass such an argument")
        kernarg[argument.offset : argument.offset + len(content)] = content
    x, y = _triple(grid, "grid"), _triple(block, "block")
    check_launch(code.target, found, x, y, dynamic_lds)
    item = BoundLaunch(found.name, x, y, dynamic_lds, bytes(kernarg), tuple(pointers))
    return Bound(tuple(buffers), (item,), arrays)


def describe(argument: Argument) -> str:
    """`a global_buffer (float*)`, `8 bytes by value (struct S)`."""
    kind = argument.value_kind
    told = f"{argument.size} bytes by value" if kind == "by_value" else f"a {kind}"
    return told + (f" ({argument.type_name})" if argument.type_name else "")


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
        raise InputError(f"{what}: {len(value)} bytes are given")
    return bytes(value)


def _triple(size: int | tuple[int, ...], what: str) -> Triple:
    sizes = (size,) if isinstance(size, int) else tuple(size)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int) for n in sizes):
        raise UsageError(f"{what} {quoted(size)}: one to three integers are wanted")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
