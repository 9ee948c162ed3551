"""Libraries of `fly-link --host shared`, called from Python as C calls them, and from C programs.

library = Library.of(saxpy, "sm_90a")
status, results = library.call(x, y, 2.0)        NumPy arrays become DLTensors of the CPU
library.error()
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fly_host.native.c_interface.results import outs
from fly_host.program import Program, Scalar, Tensor
from fly_link.shared import building

import fly

CPU, CUDA, ROCM = 1, 2, 10
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_SCALARS = {
    "bool": ctypes.c_bool, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
    "i64": ctypes.c_int64, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64, "f64": ctypes.c_double,
}  # fmt: skip


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = (("tensor", DLTensor), ("owner", ctypes.c_void_p), ("deleter", DELETER))


def tensor(array: np.ndarray, device: tuple[int, int] = (CPU, 0)) -> DLTensor:
    """A DLTensor of an array, which it keeps alive."""
    rank = array.ndim
    numbers = ctypes.c_int64 * max(rank, 1)
    made = DLTensor()
    made.data, made.ndim, made.byte_offset = array.ctypes.data, rank, 0
    made.device_type, made.device_id = device
    made.code, made.bits, made.lanes = _CODES[array.dtype.kind], 8 * array.itemsize, 1
    made.shape = numbers(*array.shape)
    made.strides = numbers(*(stride // array.itemsize for stride in array.strides))
    made.kept = array  # type: ignore[attr-defined]
    return made


class Library:
    """A loaded library of a program."""

    def __init__(self, path: Path, program: Program, image: bytes = b"", header: str = ""):
        self.path, self.program, self.image, self.header = path, program, image, header
        self._library: Any = ctypes.CDLL(str(path))
        self._error = self._library[f"{program.entry}_error"]
        self._error.restype = ctypes.c_char_p

    @staticmethod
    def of(function: Any, folder: Path, *targets: str, **more: Any) -> Library:
        """The library of a function, with code for the CPU. `more`: see `Function.compile`."""
        images = [function.compile(target=target, **more).data for target in targets or ("sm_90a",)]
        made = building.make(images, [f"{n}.cubin" for n, _ in enumerate(images)], for_cpu=True)
        program = fly.load(images[0]).program
        assert program is not None
        path = folder / f"lib{program.entry}.so"
        path.write_bytes(made.data)
        (folder / f"{program.entry}.h").write_text(made.header)
        return Library(path, program, images[0], made.header)

    def error(self) -> str:
        return self._error().decode()

    def call(self, *arguments: Any, stream: Any = None) -> tuple[int, list[Any]]:
        """Calls the function: arrays, DLTensors or None for tensors. The results are copied."""
        given: list[Any] = []
        kept: list[Any] = []
        for parameter, value in zip(self.program.parameters, arguments, strict=True):
            if isinstance(parameter, Tensor):
                made = tensor(value) if isinstance(value, np.ndarray) else value
                kept.append(made)
                given.append(ctypes.byref(made) if made is not None else None)
            elif isinstance(parameter, Scalar):
                given.append(_SCALARS.get(parameter.dtype, ctypes.c_float)(value))
            else:
                given.append(ctypes.c_void_p(value))
        places: list[Any] = []
        for operand in outs(self.program).values():
            integer = operand.kind == "integer"
            places.append(ctypes.c_int64() if integer else ctypes.POINTER(Managed)())
        function = self._library[self.program.entry]
        status = function(*given, *map(ctypes.byref, places), ctypes.c_void_p(stream))
        return status, [_taken(place) for place in places]


def _taken(place: Any) -> Any:
    """A result as an array of its own, or an integer."""
    if isinstance(place, ctypes.c_int64):
        return place.value
    if not place:
        return None
    made = place.contents.tensor
    shape = tuple(made.shape[n] for n in range(made.ndim))
    strides = tuple(made.strides[n] for n in range(made.ndim))
    kind = {code: letter for letter, code in _CODES.items()}[made.code]
    dtype = np.dtype(bool) if kind == "b" else np.dtype(f"{kind}{made.bits // 8}")
    span = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    count = 0 if 0 in shape else span
    memory = np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(
        made.data + made.byte_offset), dtype)  # fmt: skip
    steps = [stride * dtype.itemsize for stride in strides]
    found = np.lib.stride_tricks.as_strided(memory, shape, steps).copy()
    place.contents.deleter(place)
    return found


def compiled_program(
    source: str, folder: Path, libraries: Sequence[Path], *flags: str, language: str = "c"
) -> Path:
    """Compiles a C or C++ program against libraries, whose headers are beside them."""
    name = f"program.{language}"
    (folder / name).write_text(source)
    standard = "-std=c99" if language == "c" else "-std=c++11"
    command = ["cc" if language == "c" else "c++", standard, *WARNINGS, "-g", f"-I{folder}"]
    command += [*flags, name, *map(str, libraries), "-lpthread", "-o", f"program-{language}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / f"program-{language}"


def output(program: Path, *words: str, **environment: str) -> str:
    """What a program prints; it must succeed."""
    done = subprocess.run(
        [program, *words],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout
