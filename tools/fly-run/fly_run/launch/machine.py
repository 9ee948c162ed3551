"""A device as a machine for host programs: tensors are arrays of host memory, or device memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError
from fly_host import refusals
from fly_host.libraries.arrays import Bits
from fly_host.program import Buffer, Call, Launch, Operand, Program, Triple, Word
from fly_host.program import Stream as StreamParameter
from fly_host.readers.interpreter import wrong_count
from fly_host.readers.values import Extents
from fly_host.tiles import TILES_HINT, Tile
from fly_image.image import Image

from fly_run.devices.protocol import Device, Module, Stream
from fly_run.launch import packing
from fly_run.launch.arrays import dtypes
from fly_run.launch.arrays.memory import Adopted, Memory, span_of
from fly_run.launch.arrays.protocol import Arrays
from fly_run.launch.completed import Ran, launch_packed
from fly_run.launch.limits import check_launch

if TYPE_CHECKING:
    import numpy as np

    from fly_run.launch.arrays.device_arrays import Place


@dataclass(frozen=True, eq=False)
class Held:
    """A tensor: what the caller sees of it, its memory, and where the device sees element zero.
    `adopted` is the memory of a tensor that the program allocated: the device sees it until the
    program frees the tensor, or no name stands for it any more. `base` is what a view is of."""

    value: Any
    array: np.ndarray
    extents: Extents
    address: int
    adopted: Adopted | None = None
    base: Held | None = None


class DeviceMachine:
    """A `fly_host.readers.machine.Machine` on a device. `ran` lists the launches. Tensors that are
    on the device (`place`) are used where they are, and nothing waits."""

    def __init__(
        self,
        program: Program,
        image: Image,
        module: Module,
        device: Device,
        memory: Memory,
        arrays: Arrays,
        place: Place | None = None,
    ):
        self.place = place
        self.program, self.image = program, image
        self.module, self.device = module, device
        self.memory, self.arrays = memory, arrays
        self.ran: list[Ran] = []

    # -- the protocol

    def allocate(
        self, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], elements: int
    ) -> Held:
        check_room(buffer, shape, strides, elements)
        value, whole = self.arrays.empty(buffer.dtype, shape, strides, elements)
        adopted = self.memory.adopt(span_of(whole), buffer.name, fresh=True)
        array, extents = self.arrays.memory(value), Extents(shape, strides)
        return Held(value, array, extents, adopted.address, adopted)

    def free(self, tensor: Held) -> None:
        if tensor.adopted is not None:
            tensor.adopted.release()

    def view(
        self, tensor: Held, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Held:
        value = self.arrays.strided(tensor.value, shape, strides, offset)
        address = tensor.address + offset * tensor.array.itemsize
        array, extents = self.arrays.memory(value), Extents(shape, strides)
        return Held(value, array, extents, address, base=tensor)

    def extents(self, tensor: Held) -> Extents:
        return tensor.extents

    def look_at(
        self,
        launch: Launch,
        grid: Triple,
        block: Triple,
        shared: int,
        integers: list[list[int | None]],
    ) -> None:
        look_at(self.program, self.image, launch, grid, block, shared, integers)

    def launch(
        self,
        launch: Launch,
        grid: Triple,
        block: Triple,
        shared: int,
        arguments: list[list[Any]],
        stream: Stream | None,
    ) -> None:
        kernel = self.image.kernel(launch.kernel)
        check_launch(self.image.target, kernel, grid, block, shared)
        packing.check_interface(launch, kernel, self.program)
        addresses = [
            [self._seen(launch, word, value) for word, value in zip(words, values, strict=True)]
            for words, values in zip(launch.arguments, arguments, strict=True)
        ]
        packed = packing.pack(launch, kernel, self.program, addresses)
        function = self.module.function(launch.kernel)
        made = (launch.kernel, grid, block, shared, packed, stream)
        self.ran.append(launch_packed(self.device, function, *made, wait=self.place is None))

    def _seen(self, launch: Launch, word: Word, value: Any) -> Any:
        """A word's value as the kernel sees it: an address, or a descriptor's bytes."""
        if word.kind == "pointer":
            return value[0].address + value[1]
        if word.descriptor is None:
            return value
        tensor, shape, strides = value
        tile = Tile.of(word.descriptor, tensor.address, shape, strides)
        problem = tile.problem(str(word.name))
        if problem is not None:
            raise InputError(f"{launch.kernel}: {problem}", hint=TILES_HINT)
        return self.device.describe(tile)

    def call(self, call: Call, arguments: list[Any], keywords: dict[str, Any]) -> tuple[Held, ...]:
        def outside(value: Any) -> Any:
            return value.value if isinstance(value, Held) else value

        if self.place is None:
            self.device.synchronize()
            self.memory.to_host()
        named = {name: outside(value) for name, value in keywords.items()}
        made = call_library(self.program, call, [outside(value) for value in arguments], named)
        if len(made) != len(call.results):
            wrong_count(call, made)
        if self.place is None:
            self.memory.to_device()
        return tuple(
            self._made(name, value) for name, value in zip(call.results, made, strict=True)
        )

    def check_made(
        self, buffer: Buffer, tensor: Held, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        check_layout(buffer, tensor.extents, shape, strides)

    # -- parts

    def _made(self, name: str, value: Any) -> Held:
        array = self.arrays.memory(value)
        size = array.itemsize
        extents = Extents(array.shape, tuple(stride // size for stride in array.strides))
        adopted = self.memory.adopt(span_of(array), name)
        return Held(value, array, extents, adopted.address, adopted)


def look_at(
    program: Program,
    image: Image,
    launch: Launch,
    grid: Triple,
    block: Triple,
    shared: int,
    integers: list[list[int | None]],
) -> None:
    """See `fly_host.readers.machine.Machine.look_at`."""
    kernel = image.kernel(launch.kernel)
    check_launch(image.target, kernel, grid, block, shared)
    packing.check_interface(launch, kernel, program)
    for words, values in zip(launch.arguments, integers, strict=True):
        for word, value in zip(words, values, strict=True):
            if value is not None:
                packing.integer_bytes(kernel, word, value)


def call_library(
    program: Program, call: Call, arguments: list[Any], keywords: dict[str, Any]
) -> tuple[Any, ...]:
    """Calls a library function on arrays as the caller has them; the arrays that it returns, none
    where the program takes none. NumPy arrays that hold the bits of a type that NumPy lacks are
    passed as arrays of that type."""
    from fly_host import library

    every = (*program.parameters, *program.tensors)
    known = {one.name: one.dtype for one in every if not isinstance(one, StreamParameter)}
    given = [_typed(known, *pair) for pair in zip(call.arguments, arguments, strict=True)]
    named = {name: _typed(known, one, keywords[name]) for name, one in call.keywords}
    made = library.call(call.function, given, named)
    made = made if isinstance(made, tuple) else () if made is None else (made,)
    return made if call.results else ()


def _typed(dtypes_of: Mapping[str, str], operand: Operand, value: Any) -> Any:
    """An operand's value; `Bits` for a NumPy array that holds the bits of another type."""
    if operand.kind not in ("tensor", "view") or hasattr(value, "data_ptr"):
        return value
    dtype = dtypes_of[operand.value.tensor if operand.kind == "view" else operand.value]
    wanted = dtypes.ML_DTYPES.get(dtype)
    return value if wanted in (None, value.dtype.name) else Bits(value, wanted)


def check_layout(
    buffer: Buffer, found: Extents, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """See `fly_host.readers.machine.Machine.check_made`."""
    same = all(
        a == b or n < 2 for a, b, n in zip(found.strides, strides, found.shape, strict=False)
    )
    if found.shape != shape or not same:
        raise InputError(
            f"the library call that makes {buffer.name} gave shape {found.shape} and strides"
            f" {found.strides}; its shape rule says {shape} and {strides}"
        )


def check_room(
    buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], elements: int
) -> None:
    """InputError for a tensor that nobody can allocate, and for one whose elements would lie
    outside its memory."""
    if min(shape, default=0) < 0 or elements < 0:
        raise InputError(refusals.made_shape(buffer.name, shape, elements))
    if 0 in shape:
        return
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    if min(steps, default=0) < 0 or sum(steps) >= elements:
        raise InputError(refusals.made_strides(buffer.name, shape, strides, elements))
