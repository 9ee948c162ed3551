"""The launches of a host program, as data for a program without this project."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from fly_host import interpreter
from fly_host.program import Buffer, Launch, Program, Scalar
from fly_host.values import Extents

_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


class Tensor(NamedTuple):
    """A view of an array, which is named."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    offset: int  # in bytes
    itemsize: int


@dataclass
class Recorder:
    """A `fly_host.machine.Machine` that runs nothing. `launches` are JSON data; an argument is an
    array's name with an offset, or the hexadecimal digits of its bytes."""

    program: Program
    launches: list[dict[str, Any]] = field(default_factory=list)

    def extents(self, tensor: Tensor) -> Extents:
        return Extents(tensor.shape, tensor.strides)

    def look_at(self, *_: Any) -> None:
        pass

    def allocate(self, buffer: Buffer, *_: Any) -> Tensor:
        raise NotImplementedError(f"{buffer.name} is temporary")

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


def launches(program: Program, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the launches of a program for these arguments."""
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
    interpreter.run(program, machine, arguments)
    return recorder.launches
