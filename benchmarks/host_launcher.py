"""Native launchers of host programs: nanoseconds a call through the builtin, with a device entry
that does nothing; milliseconds of the first compile and of the reload of a kept one.

    .venv/bin/python benchmarks/host_launcher.py [--repeats 100] [--json]

Each figure is the best of its repeats. Beside them, in the same run: `x.data_ptr()`, a call by
ctypes with nothing but integers, and torch.empty_strided.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import tempfile
import time
import timeit
from collections.abc import Callable
from typing import Any

CALLS = 2_000
NOTHING = "define i32 @nothing() { ret i32 0 }\n"
SHAPES = ((1, 1), (2, 1), (5, 3), (10, 5), (14, 26))  # tensors, integers


def best(call: Callable[[], Any], repeats: int) -> float:
    """Nanoseconds of one call; `call` makes CALLS of them."""
    timer = timeit.Timer(call)
    gc.collect()
    return min(timer.repeat(repeats, 1)) / CALLS * 1e9


def calling(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """CALLS calls in a loop that costs little beside them."""
    names = ", ".join(f"a{n}" for n in range(len(arguments)))
    given = "".join(f", {name}=a[{n}]" for n, name in enumerate(names.split(", ") if names else []))
    lines = f"def run(call=call{given}):\n    for _ in range({CALLS}):\n        call({names})\n"
    space: dict[str, Any] = {"call": call, "a": arguments}
    exec(lines, space)
    return space["run"]


def made(tensors: int, integers: int, output: bool = False) -> Any:
    """A program of tensors of rank 4 with free strides and integers, all of which are packed."""
    from fly_host import program as host
    from fly_host.native.specialisation import KernelLimits
    from fly_host.validation import validate

    parameters: list[Any] = []
    expressions: list[Any] = [("const", 0), ("const", 1), ("const", 256)]
    words: list[Any] = []
    for number in range(tensors):
        name = f"T{number}"
        shape = tuple(f"n{number}_{axis}" for axis in range(4))
        parameters.append(host.Tensor(name, "f32", shape, (None,) * 4, "r"))
        words.append((host.Word("pointer", name),))
        for axis in range(4):
            for kind in ("extent", "stride"):
                words.append((host.Word("integer", None, len(expressions), 8),))
                expressions.append((kind, name, axis))
    for number in range(integers):
        parameters.append(host.Scalar(f"i{number}", "i32"))
        words.append((host.Word("scalar", f"i{number}"),))
    grid = len(expressions)
    expressions.append(("ceildiv", 3, 2))
    steps: list[Any] = []
    made_tensors: tuple[Any, ...] = ()
    result = None
    if output:
        extents = (3, 5, 7, 9)
        steps = [host.Allocate("O")]
        at = len(expressions)
        expressions += [("mul", 7, 9), ("mul", 5, at), ("mul", 3, at + 1)]
        made_tensors = (host.Buffer("O", "f32", extents, (at + 1, at, 9, 1), at + 2),)
        words.append((host.Word("pointer", "O"),))
        result = host.Operand("tensor", "O")
    steps.append(host.Launch("kernel", (grid, 1, 1), (2, 1, 1), 0, tuple(words)))
    names = ("O",) if output else ()
    program = host.Program(
        *("bench", "gfx942", tuple(parameters), tuple(expressions), tuple(steps), made_tensors),
        *(result, names),
    )
    validate(program)
    offsets, at = [], 0
    for (word,) in words:
        size = 4 if word.kind == "scalar" else 8
        offsets.append((at, size))
        at += size
    return program, [KernelLimits((at + 7) // 8 * 8, tuple(offsets), 1024, 65536)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLY_CACHE_DIR"] = folder
        rows = measure(options.repeats)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for name, (value, unit) in rows.items():
        print(f"{name:42} {value:10.2f} {unit}")


def measure(repeats: int) -> dict[str, tuple[float, str]]:
    import numpy
    import torch
    from fly_host.native import calling as native
    from fly_host.native import library
    from fly_host.native.specialisation import DriverEntry, Options, specialise

    rows: dict[str, tuple[float, str]] = {}
    nothing = library.load(NOTHING, Options())
    address = ctypes.cast(nothing.nothing, ctypes.c_void_p).value
    assert address

    def launcher(tensors: int, integers: int, array: Any, output: bool = False) -> Any:
        program, limits = programs[tensors, integers, output]
        arguments = (*(array for _ in range(tensors)), *range(integers))
        entry = DriverEntry(address, [1], lambda launch, status: None)
        return native.compile(specialise(program, arguments, limits), entry), arguments

    programs = {(*shape, False): made(*shape) for shape in SHAPES}
    programs[2, 1, True] = made(2, 1, output=True)
    tensor = torch.zeros(2, 3, 4, 5)
    for kind, array in (("torch", tensor), ("NumPy", numpy.zeros((2, 3, 4, 5), numpy.float32))):
        for tensors, integers in SHAPES:
            made_one, arguments = launcher(tensors, integers, array)
            assert made_one.call(*arguments) is None
            time_ = best(calling(made_one.call, arguments), repeats)
            rows[f"{kind} {tensors}+{integers}"] = (time_, "ns")
        made_one, arguments = launcher(2, 1, array, output=True)
        assert made_one.call(*arguments).shape == array.shape
        rows[f"{kind} 2+1, one output allocated"] = (
            best(calling(made_one.call, arguments), repeats),
            "ns",
        )
        handle = launcher(2, 1, array)[0].prepare(*arguments)
        assert handle() is None
        rows[f"{kind} 2+1, prepared"] = (best(calling(handle, ()), repeats), "ns")
    rows["x.data_ptr()"] = (best(calling(tensor.data_ptr, ()), repeats), "ns")
    function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 11)(address)
    rows["ctypes, 11 integers"] = (best(calling(function, tuple(range(11))), repeats), "ns")
    strided = torch.empty_strided
    rows["torch.empty_strided"] = (
        best(calling(strided, ((2, 3, 4, 5), (60, 20, 5, 1))), repeats),
        "ns",
    )
    for tensors, integers in SHAPES:
        rows.update(compiling(tensors, integers, launcher, tensor, repeats))
    return rows


def compiling(
    tensors: int, integers: int, launcher: Any, array: Any, repeats: int
) -> dict[str, tuple[float, str]]:
    """The time of `compile`, first where nothing is kept, then where the library is."""
    from fly_common import paths
    from fly_host.native import library

    folder, found = paths.cache_dir(), {"first compile": 9e9, "reload": 9e9}
    for _ in range(repeats):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        for what in found:
            library._loaded.clear()
            start = time.perf_counter()
            launcher(tensors, integers, array)
            found[what] = min(found[what], (time.perf_counter() - start) * 1e3)
    return {f"{what} {tensors}+{integers}": (value, "ms") for what, value in found.items()}


if __name__ == "__main__":
    main()
