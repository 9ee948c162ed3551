"""The launches of a host program, as data for a program without this project."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from fly_host.program import Buffer, Launch, Program, Scalar
from fly_host.readers import interpreter
from fly_host.readers.values import Extents
from fly_run.launch.arrays.dtypes import numpy_dtype

_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


class Made(NamedTuple):
    """An array that a program allocates: `run.py` creates it, filled with zeroes."""

    name: str
    dtype: str  # NumPy's
    shape: tuple[int, ...]


class Recorded(NamedTuple):
    """What a program did. `launches` are JSON data. `results` are the names of the arrays that it
    returned."""

    launches: list[dict[str, Any]]
    made: list[Made]
    results: list[str]


class Tensor(NamedTuple):
    """A view of an array, which is named."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    offset: int  # in bytes
    itemsize: int


@dataclass
class Recorder:
    """A `fly_host.readers.machine.Machine` that runs nothing. `launches` are JSON data; an argument
    is an array's name with an offset, or the hexadecimal digits of its bytes. `made` are the arrays
    that the program allocates; each has a name of its own, also where a loop allocates several."""

    program: Program
    launches: list[dict[str, Any]] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)

    def extents(self, tensor: Tensor) -> Extents:
        return Extents(tensor.shape, tensor.strides)

    def look_at(self, *_: Any) -> None:
        pass

    def allocate(
        self, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], elements: int
    ) -> Tensor:
        dtype = numpy_dtype(buffer.dtype)
        # A result is compared by its shape, which the elements must therefore fill in order.
        contiguous = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        assert strides == contiguous, f"{buffer.name} is not contiguous"
        name = f"{buffer.name}-{len(self.made)}"
        self.made.append(Made(name, dtype.str, shape))
        return Tensor(name, shape, strides, 0, dtype.itemsize)

    def free(self, tensor: Tensor) -> None:
        pass

    def launch(
        self, launch: Launch, grid: Any, block: Any, shared: int, arguments: Any, _: Any
    ) -> None:
        made = []
        for words, values in zip(launch.arguments, arguments, strict=True):
            assert len(words) == 1, "each argument of a kernel is one word on NVIDIA"
            (word,), (value,) = words, values
            if word.kind == "pointer":
                tensor, offset = value
                made.append({"array": tensor.name, "offset": tensor.offset + offset})
            else:
                made.append({"bytes": self._bytes(word, value).hex()})
        self.launches.append(
            {
                "kernel": launch.kernel,
                "grid": list(grid),
                "block": list(block),
                "shared": shared,
                "arguments": made,
            }
        )

    def _bytes(self, word: Any, value: Any) -> bytes:
        if word.kind == "scalar":
            parameter = self.program.parameter(str(word.name))
            assert isinstance(parameter, Scalar)
            if form := _FORMATS.get(parameter.dtype):
                return struct.pack(form, value)
        return int(value).to_bytes(word.size, "little", signed=value < 0)


def record(program: Program, values: Mapping[str, Any]) -> Recorded:
    """Runs a program for these arguments without a device."""
    recorder = Recorder(program)
    arguments = {
        name: Tensor(
            name,
            value.shape,
            tuple(stride // value.itemsize for stride in value.strides),
            0,
            value.itemsize,
        )
        if isinstance(value, np.ndarray)
        else value
        for name, value in values.items()
    }
    machine: Any = recorder
    result = interpreter.run(program, machine, arguments)
    several = result if isinstance(result, tuple) and not isinstance(result, Tensor) else (result,)
    names = [one.name for one in several if isinstance(one, Tensor)]
    return Recorded(recorder.launches, recorder.made, names)
