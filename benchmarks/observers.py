"""Overhead of observers: `--stats`, `--trace` and `--strict` compared with an unobserved run.

    python benchmarks/observers.py [--repeats 15] [--target gfx942] [--kernels lds_reduce]

The kernels are those of benchmarks/emulator.py, on one host thread; --kernels chooses some, by the
first word of their names. These run in turn: no observer;
native counting of executions and lanes (Wants.COUNT); and native measuring of memory accesses too,
as `--stats` requests (Wants.MEASURE). Ratios use minimum times, those of runs that were not
interrupted on a busy machine. A trace and a strict run, which call Python at every instruction, are
timed per instruction, in one launch.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

if TYPE_CHECKING:
    from emulator import Work

UNOBSERVED, TRACE, STRICT = "unobserved", "--trace", "--strict"


def measure(work: Work, target: str, repeats: int) -> tuple[dict[str, float], int]:
    """Returns the minimum seconds of a launch by observer, and its number of wave instructions."""
    import numpy as np
    from fly_image.amd.code_object import CodeObject
    from fly_run.devices.options import Options
    from fly_run.emulator.engine.loading import Prepared
    from fly_run.emulator.isa.instruction import Instruction
    from fly_run.emulator.machine import Emulator
    from fly_run.emulator.strict.strict import Strict
    from fly_run.emulator.watch.observe import Observer, Wants
    from fly_run.emulator.watch.stats import Statistics
    from fly_run.emulator.watch.trace import Only, Tracer
    from oracle.launching import build
    from oracle.launching.launch import pack

    class Counts(Statistics):
        def wants(self, instruction: Instruction) -> Wants:
            return Wants.COUNT

    watchers: dict[str, tuple[Observer, ...]] = {
        UNOBSERVED: (),
        "counts": (Counts(),),
        "--stats": (Statistics(),),
        TRACE: (Tracer(Only(), limit=1 << 62),),
        STRICT: (Strict(),),
    }
    data = build.opencl(work.source, target, 3)
    code = CodeObject.parse(data)
    launches: dict[str, Callable[[], None]] = {}
    executed = 0
    for name, observers in watchers.items():
        device = Emulator(target, Options(threads=1, observers=observers))
        own = [x.copy() if isinstance(x, np.ndarray) else x for x in work.arguments]

        def bind(name: str, array: np.ndarray, device: Emulator = device) -> int:
            return device.adopt(array.ctypes.data, array.nbytes, label=name)

        kernarg = pack(data, work.kernel, own, bind)

        function = device.load(code).function(work.kernel)

        def launch(
            device: Emulator = device,
            function: Prepared = function,
            kernarg: bytes = kernarg,
            own: list = own,
        ) -> None:
            device.launch(function, work.grid, work.block, kernarg)

        launch()
        executed = device.instructions
        launches[name] = launch
    least = dict.fromkeys(launches, float("inf"))
    for turn in range(repeats):
        for name, launch in launches.items():
            if name in (TRACE, STRICT) and turn:
                continue  # one launch has thousands of instructions, as many as a trace has lines
            start = time.perf_counter()
            launch()
            least[name] = min(least[name], time.perf_counter() - start)
    return least, executed


def main(repeats: int = 15, target: str = "gfx942", kernels: str = "") -> None:
    from emulator import chosen

    for work in chosen(kernels, target):
        least, executed = measure(work, target, repeats)
        base = least[UNOBSERVED]
        told = [f"{UNOBSERVED} {base * 1e3:.2f} ms"]
        told += [
            f"{name} {seconds * 1e3:.2f} ms ({seconds / base:.1f}×)"
            for name, seconds in least.items()
            if name not in (UNOBSERVED, TRACE, STRICT)
        ]
        told.append(f"{TRACE} {least[TRACE] / executed * 1e6:.0f} µs an instruction")
        told.append(f"{STRICT} {executed / least[STRICT]:.0f} instructions a second")
        print(f"{work.name}: {', '.join(told)}")


if __name__ == "__main__":
    typer.run(main)
