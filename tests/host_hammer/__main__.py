"""make host-hammer: 4 threads × 100,000 calls of each launcher; then the same calls under
PYTHONMALLOC=debug, where Python looks for memory that is used after it was freed.

    PYTHONPATH=tests python -m host_hammer [--calls 100000] [--threads 4] [--here]

Each call allocates, launches, returns; misses and errors are among them. It fails where a result is
wrong, where a count of references has moved, or where the process has grown.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import threading
from typing import Any

GROWTH = 8 << 20  # bytes that a process may grow by: allocators keep some


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def program(calls: bool = False) -> Any:
    """f(A, n, s) allocates two tensors and frees one, runs a loop of n iterations that makes a
    tensor in each, and returns one tensor, its extent and a constant. It fails for n of 7. With
    `calls` it calls a library function, with a view, on one side of a branch."""
    from fly_host import program as host
    from fly_host.program import Operand, Word
    from fly_host.validation import validate

    expressions = (
        *(("extent", "A", 0), ("const", 1), ("const", 0), ("scalar", "n")),
        *(("mul", 0, 3), ("variable", 1), ("lt", 5, 3), ("add", 5, 1)),
        *(("const", 7), ("ne", 3, 8), ("variable", 2), ("ne", 10, 8)),
    )
    tensors = (
        host.Buffer("B", "f32", (0,), (1,), 0),
        host.Buffer("C", "f32", (0, 3), (3, 1), 4),
        host.Buffer("D", "f32", (0,), (1,), 4),
        host.Assigned("E", "f32", 1),
        host.Assigned("F", "f32", 1),
        *((host.Buffer("G", "f32", (0,), (1,), 0), host.Assigned("H", "f32", 1)) * calls),
    )
    one = (1, 1, 1)

    def launch(*names: str) -> Any:
        words = tuple((Word("pointer", name),) for name in names)
        return host.Launch("k", one, one, 2, (*words, (Word("scalar", "s"),)), "stream")

    body = (host.Allocate("D"), launch("E", "D"))
    loop = host.Loop(
        (host.Carried(1, 2, 7, 2),), (host.CarriedTensor("E", "B", "D", "F"),), 6, body
    )
    steps = (
        *(host.Allocate("B"), host.Allocate("C"), launch("A", "B", "C"), host.Free("C")),
        *(loop, launch("F"), host.Check(11, ("n is ", 10))),
    )
    if calls:
        view = Operand("view", host.View("A", (0,), (1,), 2))
        operands = (Operand("tensor", "F"), view, Operand("integer", 0))
        call = host.Call("copy", operands, (("s", Operand("scalar", "s")),), ("G",))
        chosen = (host.ChosenTensor("H", "G", "F"),)
        steps += (host.Branch(3, (call, launch("G")), (), (), chosen), launch("H"))
    results = (
        *(Operand("tensor", "F"), (Operand("integer", 0), Operand("tensor", "A"))),
        *(Operand("constant", ("text", 1)), Operand("scalar", "s"), None),
    )
    parameters = (
        host.Tensor("A", "f32", (None,), (None,), "r"),
        *(host.Scalar("n", "i32"), host.Scalar("s", "f32"), host.Stream("stream")),
    )
    names = tuple(f"result{number}" for number, _ in enumerate(host.leaves(results)))
    made = host.Program(
        "hammered", "gfx942", parameters, expressions, steps, tensors, results, names
    )
    validate(made)
    return made


class Machine:
    """Calls the library function of the program."""

    def call(self, step: Any, arguments: list[Any], keywords: dict[str, Any]) -> tuple[Any, ...]:
        tensor, view, extent = arguments
        assert (tuple(view.shape), extent, keywords) == ((5,), 5, {"s": 0.5})
        return (tensor + view,)

    def check_made(self, buffer: Any, tensor: Any, shape: Any, strides: Any) -> None:
        assert tuple(tensor.shape) == shape


def launchers() -> list[tuple[str, Any, Any]]:
    """Name, callable, an array for it: NumPy's, and torch's where torch is, by a driver and by
    Python."""
    import ctypes

    import numpy
    from fly_host.native import calling, library
    from fly_host.native.specialisation import (
        DriverEntry,
        KernelLimits,
        Options,
        PythonEntry,
        specialise,
    )

    nothing = library.load("define i32 @nothing() { ret i32 0 }\n", Options())
    function = ctypes.cast(nothing.nothing, ctypes.c_void_p).value
    assert function
    programs = []
    for made in (program(), program(calls=True)):
        limits = []
        for launch in made.launches:
            sizes = [8] * (len(launch.arguments) - 1) + [4]
            places = tuple((8 * number, size) for number, size in enumerate(sizes))
            limits.append(KernelLimits(8 * len(sizes), places, 64, 0))
        programs.append((made, limits))
    machine: Any = Machine()
    found = []
    arrays: dict[str, Any] = {"NumPy": numpy.ones(5, numpy.float32)}
    with contextlib.suppress(ImportError):
        import torch

        arrays["torch"] = torch.ones(5)
    for kind, array in arrays.items():
        entries = {
            "driver": DriverEntry(function, range(3), print, stream=lambda: 1 << 40),
            "blocking driver": DriverEntry(function, range(3), print, blocking=True),
            "Python": PythonEntry(lambda *given: None),
        }
        made, limits = programs[1]
        entry = DriverEntry(function, range(5), print)
        specialised = specialise(made, (array, 2, 0.5, None), limits)
        native = calling.compile(specialised, entry, machine)
        found.append((f"{kind}, library calls", native.call, array))
        made, limits = programs[0]
        for name, entry in entries.items():
            native = calling.compile(specialise(made, (array, 2, 0.5, None), limits), entry)
            found.append((f"{kind}, {name}", native.call, array))
            handle = native.prepare(array, 2, 0.5, None)
            found.append((f"{kind}, {name}, prepared", lambda *_, handle=handle: handle(), array))
    return found


def hammer(call: Any, array: Any, calls: int, failures: list[BaseException]) -> None:
    from fly_common.errors import InputError

    try:
        for number in range(calls):
            n = number % 9
            if n == 8:
                call(array, None, 0.5)  # a miss, but for a prepared call
                continue
            try:
                result = call(array, n, 0.5)
            except InputError as error:
                if str(error) != f"n is {n}" or n != 7:
                    raise
                continue
            tensor, (extent, same), text, scalar, nothing = result
            assert (extent, same is array, text) == (5, True, ("text", 1))
            assert (scalar, nothing, tuple(tensor.shape)) == (0.5, None, (5,))
    except BaseException as error:
        failures.append(error)


def check(name: str, call: Any, array: Any, calls: int, threads: int) -> str | None:
    """What is wrong with a launcher."""
    objects = [array, NotImplemented, type(array), call]
    failures: list[BaseException] = []

    def rounds(count: int) -> None:
        running = [
            threading.Thread(target=hammer, args=(call, array, count, failures))
            for _ in range(threads)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    rounds(min(calls, 2000))
    before, memory = [sys.getrefcount(item) for item in objects], resident()
    rounds(calls)
    after, now = [sys.getrefcount(item) for item in objects], resident()
    if failures:
        return f"{name}: {failures[0]!r}"
    if any(abs(a - b) > 8 for a, b in zip(before, after, strict=True)):
        return f"{name}: references {before} → {after}"
    if now - memory > GROWTH:
        return f"{name}: grown by {(now - memory) >> 10} KB"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="host_hammer")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--here", action="store_true", help="not under PYTHONMALLOC=debug too")
    options = parser.parse_args()
    wrong = 0
    for name, call, array in launchers():
        found = check(name, call, array, options.calls, options.threads)
        print(f"{name}: {found or 'right'}", flush=True)
        wrong += found is not None
    if not options.here and not wrong:
        print("once more under PYTHONMALLOC=debug", flush=True)
        words = [sys.executable, "-X", "faulthandler", "-m", "host_hammer", "--here"]
        words += ["--calls", str(options.calls), "--threads", "1"]
        done = subprocess.run(words, env={**os.environ, "PYTHONMALLOC": "debug"})
        wrong += done.returncode != 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
