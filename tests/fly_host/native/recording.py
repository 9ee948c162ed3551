"""A device that writes down what is launched, for both readers: a Machine for the interpreter, an
entry for native code."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from fly_common.errors import InputError
from fly_host.native import arrays
from fly_host.native.specialisation import (
    Batch,
    DriverEntry,
    KernelLimits,
    PythonEntry,
    Specialisation,
)
from fly_host.program import Buffer, Call, Launch, Program, Scalar, Tensor
from fly_host.readers.values import Extents
from fly_numerics.element_types import ELEMENT_TYPES
from fly_run.launch.arrays import dtypes
from fly_run.launch.arrays.tensors import extents_of

MOST_ITEMS = (1 << 32) - 1


def limits_of(program: Program, shared: int = 65536, threads: int = 1024) -> list[KernelLimits]:
    """Interfaces that fit the launches: arguments at multiples of 8."""
    found = []
    for launch in program.launches:
        at, places = 0, []
        for words in launch.arguments:
            size = sum(word_size(program, word) for word in words)
            places.append((at, size))
            at += (size + 7) // 8 * 8
        found.append(KernelLimits(at, tuple(places), threads, shared))
    return found


def word_size(program: Program, word: Any) -> int:
    if word.kind == "scalar":
        parameter = program.parameter(word.name)
        assert isinstance(parameter, Scalar)
        return ELEMENT_TYPES[parameter.dtype].bytes
    return 8 if word.kind == "pointer" else word.size


def refuse(launch: Launch, limits: KernelLimits, grid: Any, block: Any, shared: int) -> None:
    """The limits of a launch, once more."""
    size = block[0] * block[1] * block[2]
    bad = min(block) < 1 or min(grid) < 0 or size > limits.max_threads
    bad = bad or (limits.required_block is not None and limits.required_block != tuple(block))
    bad = bad or any(n * m > MOST_ITEMS for n, m in zip(grid, block, strict=True))
    most = limits.grid or (MOST_ITEMS,) * 3
    bad = bad or any(n > m for n, m in zip(grid, most, strict=True))
    if bad or not 0 <= shared <= limits.shared:
        raise InputError(f"{launch.kernel}: {grid} {block} {shared}")


class Recorder:
    """What was launched: (launch, grid, block, shared, packed bytes with zeros for addresses,
    tensors). A tensor is told by its position among the arguments, or "made"; each launch fills the
    tensors that it may write with a byte of its own."""

    def __init__(self, specialisation: Specialisation, arguments: dict[str, Any]):
        self.specialisation, self.program = specialisation, specialisation.program
        tensors = {name: value for name, value in arguments.items() if is_tensor(value)}
        self.parameters = {id(value): name for name, value in tensors.items()}
        # Tensors without elements may be at one address.
        self.names = {
            address(value): name for name, value in tensors.items() if 0 not in value.shape
        }
        self.readable = {
            p.name for p in self.program.parameters if isinstance(p, Tensor) and p.access == "r"
        }
        self.log: list[Any] = []

    def launched(
        self,
        number: int,
        numbers: list[int],
        packed: bytes,
        pointers: list[tuple[int, int, int, int]],
        stream: Any,
    ) -> None:
        """`pointers`: element zero, first byte, bytes, offset."""
        if 0 in numbers[:3]:
            return
        shown = []
        for position, (zero, first, nbytes, offset) in enumerate(pointers):
            name = self.names.get(zero, "made") if nbytes else "empty"
            shown.append((name, zero - first, nbytes, offset))
            if nbytes and name not in self.readable:
                ctypes.memset(first, (len(self.log) * 16 + position + 1) % 251, nbytes)
        self.log.append((number, tuple(numbers), packed, tuple(shown), stream))


def is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def address(array: Any) -> int:
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data


def strides_of(array: Any) -> tuple[int, ...]:
    """In elements."""
    if hasattr(array, "data_ptr"):
        return tuple(array.stride())
    return tuple(stride // array.itemsize for stride in array.strides)


def span_of(array: Any, strides: tuple[int, ...]) -> tuple[int, int]:
    """The first byte that elements cover, and how many."""
    if 0 in array.shape:
        return address(array), 0
    steps = [(n - 1) * s for n, s in zip(array.shape, strides, strict=True)]
    low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
    return address(array) + low * array.itemsize, (high - low + 1) * array.itemsize


class RecordingMachine:
    """The interpreter's machine. It takes torch's and NumPy's arrays as they are."""

    def __init__(
        self,
        recorder: Recorder,
        functions: dict[str, Callable[..., Any]] | None = None,
    ):
        self.recorder, self.functions = recorder, functions or {}
        self.specialisation, self.program = recorder.specialisation, recorder.program
        self.made: dict[int, tuple[Any, Extents]] = {}
        self.elements: dict[int, int] = {}  # that were allocated

    def allocate(self, buffer: Buffer, shape: Any, strides: Any, elements: int) -> Any:
        if min((*shape, *strides, elements), default=0) < 0:
            raise InputError(f"{buffer.name} can't be made: {shape} {strides} {elements}")
        made = arrays.allocator(self.specialisation, buffer.dtype)(shape, strides, elements)
        self.made[id(made)] = made, Extents(shape, strides)
        self.elements[id(made)] = elements
        return made

    def free(self, tensor: Any) -> None:
        pass

    def view(self, tensor: Any, shape: Any, strides: Any, offset: int) -> Any:
        return arrays.view(tensor, shape, strides, offset)

    def extents(self, tensor: Any) -> Extents:
        if id(tensor) in self.made:
            return self.made[id(tensor)][1]
        name = self.recorder.parameters.get(id(tensor))
        parameter = self.program.parameter(name) if name else None
        if not isinstance(parameter, Tensor):
            return Extents(tuple(tensor.shape), strides_of(tensor))
        return extents_of(parameter, Shown(tensor))  # type: ignore[arg-type]

    def launch(
        self, launch: Any, grid: Any, block: Any, shared: int, arguments: Any, stream: Any
    ) -> None:
        number = next(n for n, known in enumerate(self.program.launches) if known is launch)
        limits = self.specialisation.limits[number]
        refuse(launch, limits, grid, block, shared)
        packed, pointers = bytearray(limits.argument_bytes), []
        for (offset, _), words, values in zip(
            limits.arguments, launch.arguments, arguments, strict=True
        ):
            at = offset
            for word, value in zip(words, values, strict=True):
                size = word_size(self.program, word)
                if word.kind == "pointer":
                    tensor, extra = value
                    first, nbytes = span_of(tensor, self.extents(tensor).strides)
                    if nbytes and id(tensor) in self.elements:
                        nbytes = max(nbytes, self.elements[id(tensor)] * tensor.itemsize)
                    pointers.append((address(tensor), first, nbytes, extra))
                    content = bytes(8)
                elif word.kind == "scalar":
                    parameter = self.program.parameter(word.name)
                    assert isinstance(parameter, Scalar)
                    content = dtypes.pack_scalar(value, parameter.dtype)
                else:
                    if not -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
                        raise InputError(f"{launch.kernel}: {value} does not fit {size} bytes")
                    content = value.to_bytes(size, "little", signed=True)
                packed[at : at + size] = content
                at += size
        self.recorder.launched(number, [*grid, *block, shared], bytes(packed), pointers, stream)

    def look_at(self, launch: Any, grid: Any, block: Any, shared: int, words: Any) -> None:
        number = next(n for n, known in enumerate(self.program.launches) if known is launch)
        refuse(launch, self.specialisation.limits[number], grid, block, shared)
        for values, given in zip(words, launch.arguments, strict=True):
            for value, word in zip(values, given, strict=True):
                size = word.size
                if word.kind == "integer" and not -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
                    raise InputError(f"{launch.kernel}: {value} does not fit {size} bytes")

    def call(self, call: Call, arguments: list[Any], keywords: dict[str, Any]) -> tuple[Any, ...]:
        made = self.functions[call.function](*arguments, **keywords)
        return made if isinstance(made, tuple) else (made,)

    def check_made(self, buffer: Buffer, tensor: Any, shape: Any, strides: Any) -> None:
        same = strides_of(tensor) == tuple(strides) or 0 in shape
        if tuple(tensor.shape) != tuple(shape) or not same:
            raise InputError(f"{buffer.name} is {tuple(tensor.shape)}, not {tuple(shape)}")
        self.made[id(tensor)] = tensor, Extents(shape, strides)


class Shown:
    """A tensor as `extents_of` looks at arrays: strides in bytes."""

    def __init__(self, array: Any):
        self.shape, self.itemsize = tuple(array.shape), array.itemsize
        self.strides = tuple(stride * array.itemsize for stride in strides_of(array))


class RecordingEntry:
    """A Python entry."""

    def __init__(self, recorder: Recorder, batches: Callable[[], tuple[Batch, ...]]):
        self.recorder, self.batches = recorder, batches

    def __call__(self, number: int, buffers: bytes, launches: bytes, *streams: Any) -> None:
        from fly_host.native.specialisation import streams as names

        batch, program = self.batches()[number], self.recorder.program
        spans = list(struct.iter_unpack("<3q", buffers))
        assert len(spans) == len(batch.tensors)
        at = 0
        for launch, size, places in zip(batch.launches, batch.sizes, batch.pointers, strict=True):
            record = bytearray(launches[at : at + size])
            at += size
            header = struct.unpack_from("<8q", record)
            assert header[0] == launch
            pointers = []
            for place, position in places:
                (offset,) = struct.unpack_from("<q", record, place)
                host, nbytes, origin = spans[position]
                pointers.append((host + origin, host, nbytes, offset))
                record[place : place + 8] = bytes(8)
            name = program.launches[launch].stream
            stream = None if name is None else streams[names(program).index(name)]
            packed = bytes(
                record[64 : 64 + self.recorder.specialisation.limits[launch].argument_bytes]
            )
            self.recorder.launched(launch, list(header[1:]), packed, pointers, stream)
        assert at == len(launches)

    def entry(self) -> PythonEntry:
        return PythonEntry(self)


DRIVER = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    *[ctypes.c_uint] * 7,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
)


class RecordingDriver:
    """A driver's function. `log` has (kernel, grid, block, shared, stream, packed bytes)."""

    def __init__(self, kernels: int, end: int = 0):
        self.log: list[Any] = []
        self.status, self.end = 0, end
        self.kernels = [1000 + number for number in range(kernels)]
        self._function = DRIVER(self._launch)
        self.function = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _launch(self, kernel: int, *rest: Any) -> int:
        *numbers, stream, parameters, extra = rest
        assert parameters is None
        assert (extra[0], extra[2], extra[4]) == (1, 2, self.end)
        size = ctypes.c_uint64.from_address(extra[3]).value
        self.log.append(
            (kernel - 1000, tuple(numbers), stream or 0, ctypes.string_at(extra[1], size))
        )
        return self.status

    def entry(self, **options: Any) -> DriverEntry:
        def error(launch: int, status: int) -> None:
            raise RuntimeError(f"driver: {launch} {status}")

        return DriverEntry(self.function, self.kernels, error, end=self.end, **options)
