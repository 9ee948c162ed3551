"""What a call of a compiled function costs, from Python's `f(*args)` on.

    python benchmarks/launch.py [--peers-python PATH] [--json FILE]

On the emulator: µs of `vector_add(a, b, c)` of peers/fly_kernels.py on 64 elements, one workgroup,
and of its parts: the Python way (what a call costs that native code declines), the native way
whole, the device alone.

Beside the driver: ns of a call of functions with 1 to 14 tensors of rank 2 with dynamic extents and
strides and 1 to 26 integers, all of which kernels get, where the device's entry is a C function
that does nothing (`cuLaunchKernel` and `hipModuleLaunchKernel` have its signature). In the same
run:

    f(*args)           the decorated function
    launcher           its native builtin, without what sees that nothing has changed
    generated Python   the host program as Python code, on a machine that does nothing
    ctypes             one foreign call with as many integers, which computes nothing
    empty_strided      torch's, for the functions that allocate
    autotuned          a function with a constant more, above which @fly.autotune stands, beside
                       the same function without it, which the caller gives the constant

Peers are measured where the interpreter PATH has them (`pip install flydsl==0.4.2 triton==3.9.0
torch==2.13.0`), with a HIP library that does nothing: FlyDSL's `f(*args)` and its compiled handle;
Triton's `kernel[grid](*args)` and its launcher (`CompiledKernel.run`), which needs a C compiler.
Triton's kernels get the tensors and integers, but no extents and strides. Where one tensor is
allocated, peers get it from `torch.empty_like` before each call.

A figure is the median of the repeats; each repeat is the mean of calls in a row. The marks: 25 µs
for the whole call on the emulator; 2+1 at most 400 ns and 5+3 at most 700 ns, and no more than a
20th of FlyDSL's `f(*args)`; a prepared call 200 ns.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import launch_peers

ROOT = Path(__file__).parents[1]
SIZES = ((1, 1), (2, 1), (5, 3), (10, 5), (14, 26))  # tensors, integers
ALLOCATING = (2, 1)  # the one that is also measured with a tensor that each call makes
WHOLE = 25.0  # µs
CALLED = {(2, 1): 400.0, (5, 3): 700.0}  # ns
PREPARED = 200.0  # ns
FEWER = 20  # times less than FlyDSL's
SECONDS = 0.02  # of a repeat


def source(tensors: int, integers: int, output: bool = False) -> str:
    """A host function and a kernel with these arguments."""
    names = [f"T{n}" for n in range(tensors)]
    numbers = [f"i{n}" for n in range(integers)]
    given = [f"{name}: fx.Tensor" for name in names] + [f"{name}: fx.Int32" for name in numbers]
    passed = [*names, *(["R"] if output else []), *numbers]
    taken = [*given[:tensors], *(["R: fx.Tensor"] if output else []), *given[tensors:]]
    empty = "    R = fx.empty_like(T0)\n" if output else ""
    return (
        f"import fly\nimport fly.expr as fx\n\n@fly.kernel\ndef kernel({', '.join(taken)}):\n"
        "    if fx.thread_idx.x < i0:\n        T0[0, 0] = T0[0, 0]\n\n"
        f"@fly.jit\ndef host({', '.join(given)}):\n{empty}"
        f"    kernel({', '.join(passed)}).launch(grid=1, block=64)\n"
        + ("    return R\n" if output else "")
    )


def per_call(call: Callable[[], Any], repeats: int) -> float:
    """Nanoseconds of one of the calls that `call(n)` makes, the median of the repeats."""
    count = 1
    while True:
        start = time.perf_counter()
        call(count)  # type: ignore[call-arg]
        if (took := time.perf_counter() - start) > SECONDS / 4:
            break
        count *= 2
    count = max(1, int(count * SECONDS / took))
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        call(count)  # type: ignore[call-arg]
        found.append((time.perf_counter() - start) / count)
    return 1e9 * statistics.median(found)


def calling(
    function: Any, arguments: tuple[Any, ...], written: str = "function({})"
) -> Callable[[int], None]:
    """A loop of calls, written so, that costs little beside them."""
    names = ", ".join(f"a{n}" for n in range(len(arguments)))
    unpack = f"    {names}{',' if len(arguments) == 1 else ''} = arguments\n" if arguments else ""
    text = f"def run(count):\n{unpack}    for _ in range(count):\n        {written.format(names)}\n"
    space: dict[str, Any] = {"function": function, "arguments": arguments}
    exec(text, space)
    return space["run"]


class Idle:
    """A device whose driver's entry does nothing, and that sees tensors where they are. It has all
    members of `fly_run.devices.protocol.Device`, which the peers' interpreters can't import."""

    name, concurrent, own_memory, instructions, remarks = "idle", True, False, None, ()
    place = None

    def __init__(self, target: str, options: Any):
        from fly_host.native import library
        from fly_host.native.specialisation import Options

        self.target = target
        self._library = library.load("define i32 @call() {\n  ret i32 0\n}\n", Options())
        self.image: Any = None

    def load(self, image: Any) -> Idle:
        self.image = image
        return self

    def unload(self) -> None:
        pass

    def function(self, name: str) -> str:
        return name

    def alloc(self, nbytes: int, label: str = "") -> int:
        raise AssertionError("tensors are in host memory")

    def free(self, address: int) -> None:
        raise AssertionError("tensors are in host memory")

    def copy(
        self, destination: int, source: int, nbytes: int, direction: str, stream: Any = None
    ) -> None:
        ctypes.memmove(destination, source, nbytes)

    def adopt_all(self, spans: Any) -> list[int]:
        return [pointer for _, pointer, _, _ in spans]

    def release_all(self, addresses: Any) -> None:
        pass

    def release(self, address: int) -> None:
        pass

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        return pointer

    def describe(self, tile: Any) -> bytes:
        raise AssertionError("kernels copy no tiles")

    def launch(
        self,
        function: Any,
        grid: Any,
        block: Any,
        packed: bytes,
        shared: int = 0,
        stream: Any = None,
        cluster: Any = None,
    ) -> None:
        pass

    def stream(self) -> Any:
        return object()

    def event(self, stream: Any = None) -> float:
        return time.perf_counter()

    def elapsed(self, start: float, end: float) -> float:
        return end - start

    def synchronize(self, what: Any = None) -> None:
        pass

    def driver_entry(self, functions: Any) -> Any:
        from fly_host.native.specialisation import DriverEntry

        address = ctypes.cast(self._library.call, ctypes.c_void_p).value
        assert address
        return DriverEntry(address, [1] * len(functions), lambda launch, status: None)

    def close(self) -> None:
        pass


def driven(repeats: int, folder: Path) -> dict[str, dict[str, float]]:
    """ns of calls beside a driver that does nothing, by size and way."""
    import torch
    from fly_host.readers import python_code
    from fly_run.devices import registry

    import fly

    registry.DEVICES["idle"] = f"{__name__}:Idle"
    found: dict[str, dict[str, float]] = {}
    tensor = torch.zeros(12, 20)
    for tensors, integers in SIZES:
        for output in (False, True) if (tensors, integers) == ALLOCATING else (False,):
            space = _loaded(folder, tensors, integers, output)
            function = fly.jit(device="idle")(space["host"].function)
            arguments = (*[tensor] * tensors, *range(integers))
            for _ in range(3):
                function(*arguments)
            calls = function._calls.native
            assert function._native is not None, calls and calls.reasons
            (launcher, _), *_ = calls.dispatcher._launchers
            row = {"f(*args)": per_call(calling(function, arguments), repeats)}
            row["launcher"] = per_call(calling(launcher, arguments), repeats)
            row["prepared"] = per_call(calling(function.prepare(*arguments), ()), repeats)
            (compiled,) = function._kept.values()
            program = compiled.program
            if not output:
                by_name = dict(zip(compiled.parameter_names, arguments, strict=True))
                machine = Nothing()
                run = python_code.compiled(program)
                row["generated Python"] = per_call(calling(run, (machine, by_name)), repeats)
                count = tensors * 5 + integers
                entry = Idle("gfx942", None).driver_entry([None])
                foreign = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * count)(entry.function)
                row["ctypes"] = per_call(calling(foreign, tuple(range(count))), repeats)
            else:
                strided = torch.empty_strided
                row["empty_strided"] = per_call(calling(strided, ((12, 20), (20, 1))), repeats)
            found[size_name(tensors, integers, output)] = row
    return found


TUNED = """
import fly
import fly.expr as fx

@fly.kernel
def kernel(T0: fx.Tensor, T1: fx.Tensor, i0: fx.Int32, BLOCK: fx.Constexpr):
    if fx.thread_idx.x < i0:
        T0[0, 0] = T1[0, 0]

@fly.jit(device="idle")
def host(T0: fx.Tensor, T1: fx.Tensor, i0: fx.Int32, BLOCK: fx.Constexpr):
    kernel(T0, T1, i0, BLOCK).launch(grid=1, block=BLOCK)

tuned = fly.autotune([fly.Config(BLOCK=64), fly.Config(BLOCK=128)], key=["i0"])(host)
"""


def autotuned(repeats: int, folder: Path) -> dict[str, float]:
    """ns of a call with two tensors and an integer, with and without @fly.autotune."""
    import torch
    from fly_trace.session.load import load_file

    path = folder / "launch_tuned.py"
    path.write_text(TUNED)
    space = vars(load_file(str(path)))
    tensor = torch.zeros(12, 20)
    ways = {"f(*args)": (space["host"], (tensor, tensor, 5, 64))}
    ways["autotuned"] = (space["tuned"], (tensor, tensor, 5))
    for function, arguments in ways.values():
        for _ in range(3):
            function(*arguments)
    return {name: per_call(calling(*way), repeats) for name, way in ways.items()}


def size_name(tensors: int, integers: int, output: bool) -> str:
    return f"{tensors}+{integers}" + (", one allocated" if output else "")


class Nothing:
    """A `fly_host.readers.machine.Machine` that does nothing with torch's tensors."""

    def extents(self, tensor: Any) -> Any:
        from fly_host.readers.values import Extents

        return Extents(tensor.shape, tensor.stride())

    def look_at(self, *_: Any) -> None:
        pass

    def launch(self, *_: Any) -> None:
        pass


def _loaded(folder: Path, tensors: int, integers: int, output: bool) -> dict[str, Any]:
    """The module of a function, from a file: tracing reads its source."""
    from fly_trace.session.load import load_file

    path = folder / f"launch_{tensors}_{integers}_{int(output)}.py"
    path.write_text(source(tensors, integers, output))
    return vars(load_file(str(path)))


def emulated(repeats: int) -> dict[str, float]:
    """µs of vector_add on the emulator, and of the parts of the call."""
    import numpy as np

    sys.path.insert(0, str(ROOT / "benchmarks/peers"))
    import fly_kernels  # type: ignore[import-not-found]

    import fly

    function = fly.jit(target="gfx942")(fly_kernels.vector_add.function)
    a, b = np.random.default_rng(0).standard_normal((2, 64), np.float32)
    c = np.empty_like(a)
    arguments = (a, b, c)
    for _ in range(3):
        function(*arguments)
    np.testing.assert_array_equal(c, a + b)
    assert function._native is not None
    found = {"whole": per_call(calling(function, arguments), repeats)}
    found["the Python way"] = per_call(calling(lambda: function.run(arguments, {}), ()), repeats)
    (launcher, _), *_ = function._calls.native.dispatcher._launchers
    entry = _entry_arguments(function, launcher, arguments)
    found["device"] = per_call(calling(_runner_of(launcher).run, entry), repeats)
    return {name: value / 1e3 for name, value in found.items()}


def _runner_of(launcher: Any) -> Any:
    """The `Runner` behind a launcher of the emulator."""
    import gc

    from fly_run.launch.native import Runner

    return next(one for one in gc.get_objects() if isinstance(one, Runner) and one.ready)


def _entry_arguments(function: Any, launcher: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a launcher gives to the device for a call."""
    from fly_host.native import calling as native
    from fly_host.native.specialisation import PythonEntry, specialise
    from fly_run.launch.native import limits_of

    given: list[tuple[Any, ...]] = []
    (compiled,) = function._kept.values()
    program, image = compiled.program, compiled.image
    made = specialise(program, arguments, limits_of(program, image))
    native.compile(made, PythonEntry(lambda *some: given.append(some))).call(*arguments)
    return given[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--peers-python", default=sys.executable, metavar="PATH")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found: dict[str, Any] = {"emulator, µs": emulated(asked.repeats)}
        ours = driven(asked.repeats, folder)
        found["autotune, ns"] = autotuned(asked.repeats, folder)
        sizes = [(*size, False) for size in SIZES] + [(*ALLOCATING, True)]
        for peer in launch_peers.PEERS:
            for size in sizes:
                row = launch_peers.measure(peer, asked.peers_python, folder, size, asked.repeats)
                ours[size_name(*size)] |= row
        found["driver, ns"] = ours
    if asked.json:
        Path(asked.json).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    show(found)


def table(rows: dict[str, dict[str, float]], places: int = 0) -> None:
    ways = list(dict.fromkeys(way for row in rows.values() for way in row))
    print(f"  {'':<20}" + "".join(f"{way:>20}" for way in ways))
    for size, row in rows.items():
        cells = "".join(f"{row[way]:20.{places}f}" if way in row else f"{'':20}" for way in ways)
        print(f"  {size:<20}{cells}")


def show(found: dict[str, Any]) -> None:
    print("vector_add on 64 elements, gfx942, on the emulator: µs a call")
    for name, value in found["emulator, µs"].items():
        print(f"  {name:<16}{value:8.1f}")
    rows = found["driver, ns"]
    print("tensors+integers, the device's entry does nothing: ns a call")
    table(rows)
    print("two tensors, an integer and a constant, with and without @fly.autotune: ns a call")
    table({"2+1, a constant": found["autotune, ns"]})
    print("the same as multiples of f(*args)")
    table({size: {n: v / row["f(*args)"] for n, v in row.items()} for size, row in rows.items()}, 1)
    verdict("the whole call on the emulator", found["emulator, µs"]["whole"], WHOLE, "µs")
    for size, mark in CALLED.items():
        row = rows[f"{size[0]}+{size[1]}"]
        peer = row.get("FlyDSL f(*args)")
        limit = min(mark, peer / FEWER) if peer else mark
        verdict(f"f(*args) of {size[0]}+{size[1]}", row["f(*args)"], limit, "ns")
        verdict(f"a prepared call of {size[0]}+{size[1]}", row["prepared"], PREPARED, "ns")


def verdict(what: str, value: float, mark: float, unit: str) -> None:
    met = "met" if value <= mark else "missed"
    print(f"  {what}: {value:.1f} {unit}, the mark is {mark:.0f}: {met}")


if __name__ == "__main__":
    sys.modules["launch"] = sys.modules["__main__"]
    main()
