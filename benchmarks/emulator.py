"""Speed of the emulator in wave-instructions per second, compared with a NumPy interpreter.

    python benchmarks/emulator.py [--repeats 9] [--target gfx942]
                                  [--kernels vector_add] [--json]

A wave-instruction is one machine instruction executed by one wave of 64 lanes (of 32 on gfx11,
gfx12 and gfx1250), including scalar ones. Waits, `s_delay_alu`, `s_clause` and cache controls do
nothing in the emulator and take no time, and targets have more or fewer of them for the same work:
they have a column of their own and are not part of the rates. Matrix instructions are measured on
targets with MFMA.
Both run the same HSACO, compiled by clang from tests/kernels, and must give the same bytes.
The peer is the tests' oracle (tests/oracle): it executes an instruction for all waves of a chunk at
once, as a NumPy operation on an array [waves, 64], so that up to 2^17 lanes share Python's
overhead. It runs in its best configuration: decoded instructions are kept between launches,
registers are not poisoned, contiguous accesses are slices, and the fastest of four chunk sizes
counts. Both check every access against the bound buffers.

A figure is the median of all launches except the first, which decodes. The minimum is also shown;
it is the fairer figure on a busy machine, where long launches are interrupted and short ones are
not. The two alternate in turns of 20 ms or one launch. A grid of 1,024 workgroups runs on one host
thread and on two, also in turns. An f16 matrix product on matrix instructions is compared with
NumPy's f32 product of that size, on one thread. The handler library is timed in separate processes,
the first with an empty cache.
"""

from __future__ import annotations

import json as json_module
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

# NumPy's product runs on one thread; this must be set before NumPy is imported.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

CHUNKS = (256, 512, 1024, 2048)
TURN = 0.02  # seconds

LOAD = """
import os, time
from fly_run.emulator.engine import library
start, before = time.perf_counter(), os.times()
library.load()
print(time.perf_counter() - start, sum(os.times()[:4]) - sum(before[:4]))
"""


@dataclass(frozen=True)
class Work:
    """A launch: `arguments` are arrays and NumPy scalars, in the kernel's order."""

    name: str
    source: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: list


@dataclass(frozen=True)
class Figure:
    """Rates in millions of wave-instructions with an effect per second, times in milliseconds;
    `_least` is the fastest launch, the others are medians."""

    kernel: str
    instructions: int
    without_effect: int
    emulator_ms: float
    emulator_ms_least: float
    emulator_rate: float
    oracle_ms: float
    oracle_ms_least: float
    oracle_rate: float
    oracle_chunk: int
    ratio: float
    ratio_least: float


@dataclass(frozen=True)
class Threads:
    """One launch on one host thread and on two: medians in milliseconds and their ratio, and the
    ratio of the minima."""

    kernel: str
    workgroups: int
    one_ms: float
    two_ms: float
    ratio: float
    ratio_least: float


@dataclass(frozen=True)
class Product:
    """A product of two f16 matrices of `side` rows and columns by matrix instructions, on one host
    thread, in both arithmetics, and NumPy's f32 product. Median and minimum in milliseconds, and
    the ratio of the emulated times to NumPy's."""

    side: int
    numpy_ms: float
    numpy_ms_least: float
    fast_ms: float
    fast_ms_least: float
    exact_ms: float
    exact_ms_least: float
    fast_ratio: float
    fast_ratio_least: float
    exact_ratio: float
    exact_ratio_least: float


def has_mfma(target: str) -> bool:
    """Whether the target has the matrix instructions of `matrix.cl`, for waves of 64 lanes."""
    from oracle.launching import build

    return target not in build.RDNA


def chosen(kernels: str, target: str) -> list[Work]:
    """The launches whose names begin with one of these words, separated by commas; for "" all that
    the target has the instructions for."""
    listed = [work for work in works() if work.source != "matrix.cl" or has_mfma(target)]
    found = [work for work in listed if not kernels or work.name.split()[0] in kernels.split(",")]
    if not found:
        sys.exit(f"error: --kernels {kernels}: there is no such kernel")
    return found


def works() -> list[Work]:
    import numpy as np

    rng = np.random.default_rng(0)
    n, side = 1 << 16, 128
    a, b = rng.standard_normal((2, n), np.float32)
    i32 = np.int32
    # Integers, whose sums are exact in any arithmetic of the matrix units.
    wide = 256
    whole = [rng.integers(-8, 9, (wide, wide)).astype(np.float16) for _ in range(2)]
    square = [a[: side * side].copy(), b[: side * side].copy(), np.zeros(side * side, np.float32)]
    return [
        Work(
            "vector_add 2^16",
            "elementwise.cl",
            "vector_add",
            (n // 256, 1, 1),
            (256, 1, 1),
            [a, b, np.zeros(n, np.float32), i32(n)],
        ),
        Work(
            "lds_reduce 2^16",
            "rows.cl",
            "lds_reduce",
            (n // 256, 1, 1),
            (256, 1, 1),
            [a, np.zeros(n // 256, np.float32)],
        ),
        Work(
            "matmul 128, f32",
            "tiles.cl",
            "matmul",
            (side // 16, side // 16, 1),
            (16, 16, 1),
            [*square, i32(side), i32(side), i32(side)],
        ),
        Work(
            "MFMA GEMM 256, f16",
            "matrix.cl",
            "gemm_f16",
            (wide // 64, wide // 64, 1),
            (64, 1, 1),
            [*whole, np.zeros((wide, wide), np.float32), i32(wide), i32(wide)],
        ),
    ]


def measure(work: Work, target: str, repeats: int) -> Figure:
    """Times both devices. AssertionError if their results differ."""
    import numpy as np
    from executed import Counter, without_effect
    from fly_image.amd.code_object import CodeObject
    from fly_run.devices.options import Options
    from fly_run.emulator.machine import Emulator
    from oracle.interpreter.machine import Oracle
    from oracle.launching import build
    from oracle.launching.launch import pack

    data = build.opencl(work.source, target, 3)
    code = CodeObject.parse(data)
    counter = Counter()
    launches: dict[object, Callable[[], None]] = {}
    results: dict[object, list] = {}
    oracles = {chunk: Oracle(chunk_waves=chunk, poison=False) for chunk in CHUNKS}
    device, counting = Emulator(target), Emulator(target, Options(observers=(counter,)))
    for key, machine in (("counting", counting), ("emulator", device), *oracles.items()):
        own = [x.copy() if isinstance(x, np.ndarray) else x for x in work.arguments]
        results[key] = own
        if isinstance(machine, Emulator):

            def bind(name: str, array: np.ndarray, machine=machine) -> int:
                return machine.adopt(array.ctypes.data, array.nbytes, label=name)

            function = machine.load(code).function(work.kernel)
            kernarg = pack(data, work.kernel, own, bind)

            def launch(machine=machine, function=function, kernarg=kernarg) -> None:
                machine.launch(function, work.grid, work.block, kernarg)

        else:
            kernarg = pack(data, work.kernel, own, machine.bind)

            def launch(machine=machine, kernarg=kernarg) -> None:
                machine.launch(data, work.kernel, work.grid, work.block, kernarg, 0)

        launch()
        machine.synchronize()
        launches[key] = launch
    executed = oracles[CHUNKS[0]].executed
    assert executed == sum(counter.found.values()), f"{work.name}: they execute different numbers"
    idle = sum(without_effect(counter.counts, function).values())
    del launches["counting"]
    counting.close()
    for chunk in CHUNKS:
        for mine, other in zip(results[chunk], results["emulator"], strict=True):
            assert np.array_equal(mine, other), f"{work.name}: emulator and oracle disagree"

    times: dict[object, list[float]] = {key: [] for key in launches}
    for _ in range(repeats):
        for key, launch in launches.items():
            turn = time.perf_counter() + TURN
            while True:
                start = time.perf_counter()
                launch()
                end = time.perf_counter()
                times[key].append(end - start)
                if end > turn:
                    break
    device.close()
    medians = {key: statistics.median(values) for key, values in times.items()}
    chunk = min(CHUNKS, key=medians.__getitem__)
    fast, slow = medians["emulator"], medians[chunk]
    fast_least, slow_least = min(times["emulator"]), min(min(times[key]) for key in CHUNKS)
    return Figure(
        kernel=work.name,
        instructions=executed,
        without_effect=idle,
        emulator_ms=fast * 1e3,
        emulator_ms_least=fast_least * 1e3,
        emulator_rate=(executed - idle) / fast / 1e6,
        oracle_ms=slow * 1e3,
        oracle_ms_least=slow_least * 1e3,
        oracle_rate=(executed - idle) / slow / 1e6,
        oracle_chunk=chunk,
        ratio=slow / fast,
        ratio_least=slow_least / fast_least,
    )


def threads(target: str, repeats: int) -> Threads:
    """Times one and two threads. AssertionError if the results differ."""
    import numpy as np
    from fly_image.amd.code_object import CodeObject
    from fly_run.devices.options import Options
    from fly_run.emulator.machine import Emulator
    from oracle.launching import build
    from oracle.launching.launch import pack

    side = 512
    grid = side // 16, side // 16, 1
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, side, side), np.float32)
    data = build.opencl("tiles.cl", target, 3)
    code = CodeObject.parse(data)
    times: dict[int, list[float]] = {1: [], 2: []}
    results, launches = {}, {}
    for count in times:
        device = Emulator(target, Options(threads=count))
        results[count] = np.zeros((side, side), np.float32)
        arguments = [a, b, results[count], *[np.int32(side)] * 3]

        def bind(name: str, array: np.ndarray, device=device) -> int:
            return device.adopt(array.ctypes.data, array.nbytes, label=name)

        kernarg = pack(data, "matmul", arguments, bind)

        function = device.load(code).function("matmul")

        def launch(device=device, kernarg=kernarg, function=function) -> None:
            device.launch(function, grid, (16, 16, 1), kernarg)

        launch()
        launches[count] = launch
    assert np.array_equal(results[1], results[2])
    for _ in range(repeats):
        for count, launch in launches.items():
            start = time.perf_counter()
            launch()
            times[count].append(time.perf_counter() - start)
    one, two = (statistics.median(times[count]) * 1e3 for count in (1, 2))
    least = min(times[1]) / min(times[2])
    return Threads(f"matmul {side}, f32", grid[0] * grid[1], one, two, one / two, least)


def product(target: str, repeats: int, side: int) -> Product:
    """Times the products. AssertionError if one is wrong."""
    import numpy as np
    from fly_image.amd.code_object import CodeObject
    from fly_run.devices.options import MFMA, Options
    from fly_run.emulator.machine import Emulator
    from oracle.launching import build
    from oracle.launching.launch import pack

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((side, side)).astype(np.float16) for _ in range(2))
    wide_a, wide_b = a.astype(np.float32), np.ascontiguousarray(b.T).astype(np.float32)
    wanted = wide_a @ wide_b
    data = build.opencl("matrix.cl", target, 3)
    code = CodeObject.parse(data)
    runs: dict[str, Callable[[], object]] = {"numpy": lambda: np.matmul(wide_a, wide_b)}
    results = {}  # devices use the memory of these
    for arithmetic in MFMA:
        device = Emulator(target, Options(threads=1, mfma=arithmetic))
        c = results[arithmetic] = np.zeros((side, side), np.float32)

        def bind(name: str, array: np.ndarray, device=device) -> int:
            return device.adopt(array.ctypes.data, array.nbytes, label=name)

        kernarg = pack(data, "gemm_f16", [a, b, c, np.int32(side), np.int32(side)], bind)

        function = device.load(code).function("gemm_f16")

        def launch(device=device, kernarg=kernarg, function=function) -> None:
            device.launch(function, (side // 64, side // 64, 1), (64, 1, 1), kernarg)

        launch()
        assert np.allclose(c, wanted, rtol=1e-5, atol=side * 1e-6), arithmetic
        runs[arithmetic] = launch
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    median = {name: statistics.median(values) * 1e3 for name, values in times.items()}
    least = {name: min(values) * 1e3 for name, values in times.items()}
    return Product(
        side=side,
        **{f"{name}_ms": median[name] for name in runs},
        **{f"{name}_ms_least": least[name] for name in runs},
        **{f"{name}_ratio": median[name] / median["numpy"] for name in MFMA},
        **{f"{name}_ratio_least": least[name] / least["numpy"] for name in MFMA},
    )


def library_times() -> dict[str, float]:
    """Returns the seconds to build the handler library, those of all processors (which other work
    on the machine affects less), and the milliseconds to load it, in new processes."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"FLY_CACHE_DIR": cache}

        def once() -> list[float]:
            done = subprocess.run(
                [sys.executable, "-c", LOAD], env=environment, capture_output=True, text=True
            )
            if done.returncode:
                raise SystemExit(done.stderr)
            return [float(word) for word in done.stdout.split()]

        build, processors = once()
        load = statistics.median(once()[0] for _ in range(5)) * 1e3
        return {"build_s": build, "build_processor_s": processors, "load_ms": load}


def table(
    figures: list[Figure],
    shared: Threads,
    products: list[Product],
    library: dict[str, float],
) -> None:
    from rich.console import Console
    from rich.table import Table

    title = "millions of wave-instructions with an effect a second; ms: median (least)"
    view = Table(title=title, box=None)
    headings = (
        "kernel",
        "instructions",
        "no effect",
        "emulator",
        "ms",
        "NumPy",
        "ms",
        "waves",
        "ratio",
    )
    for heading in headings:
        view.add_column(heading, justify="left" if heading == "kernel" else "right")
    for f in figures:
        view.add_row(
            f.kernel,
            f"{f.instructions:,}",
            f"{f.without_effect:,}",
            f"{f.emulator_rate:.1f}",
            f"{f.emulator_ms:.2f} ({f.emulator_ms_least:.2f})",
            f"{f.oracle_rate:.2f}",
            f"{f.oracle_ms:.2f} ({f.oracle_ms_least:.2f})",
            str(f.oracle_chunk),
            f"{f.ratio:.1f} ({f.ratio_least:.1f})",
        )
    console = Console(width=max(100, Console().width))  # do not break rows, even in a file
    console.print(view)
    console.print(
        f"{shared.kernel}, {shared.workgroups:,} workgroups: {shared.one_ms:.1f} ms on one thread,"
        f" {shared.two_ms:.1f} ms on two:"
        f" {shared.ratio:.2f} ({shared.ratio_least:.2f}) times as fast"
    )
    for p in products:
        console.print(
            f"product {p.side}³ on matrix instructions (f16, one thread):"
            f" {p.fast_ms:.1f} ms ({p.fast_ms_least:.1f}) fast, {p.exact_ms:.1f} ms"
            f" ({p.exact_ms_least:.1f}) exact; NumPy's f32 product {p.numpy_ms:.1f} ms"
            f" ({p.numpy_ms_least:.1f}): {p.fast_ratio:.1f} ({p.fast_ratio_least:.1f}) and"
            f" {p.exact_ratio:.1f} ({p.exact_ratio_least:.1f}) times as long"
        )
    console.print(
        f"handler library: built once in {library['build_s']:.2f} s"
        f" ({library['build_processor_s']:.2f} s of processors),"
        f" loaded in {library['load_ms']:.2f} ms"
    )


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    repeats: int = typer.Option(9, min=1, help="Turns that each has."),
    target: str = typer.Option("gfx942", help="A target, such as gfx1250."),
    kernels: str = typer.Option("", help="Measure these only, separated by commas."),
    json: bool = typer.Option(False, help="Print the figures as JSON."),
) -> None:
    """Wave-instructions per second of the emulator and of a NumPy lockstep interpreter."""
    figures = [measure(work, target, repeats) for work in chosen(kernels, target)]
    shared = threads(target, repeats)
    sides = (256, 512) if has_mfma(target) else ()
    products = [product(target, 3 * repeats, side) for side in sides]
    library = library_times()
    if json:
        kernels = [asdict(figure) for figure in figures]
        found = {"kernels": kernels, "threads": asdict(shared), "library": library}
        found["products"] = [asdict(one) for one in products]
        print(json_module.dumps(found))
    else:
        table(figures, shared, products, library)


if __name__ == "__main__":
    app()
