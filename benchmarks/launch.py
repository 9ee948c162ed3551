"""Cost of a call of a compiled function: µs of `vector_add(a, b, c)` on 64 elements.

    python benchmarks/launch.py [--samples N] [--calls N] [--target gfx942] [--json]

The whole call is timed, and each of its parts alone, as the call executes them:

    chain      whether anything changed that the code depends on: names, environment, files
    reading    arguments → key of the code, and values
    binding    values → buffers, grid, argument bytes
    device     the emulator: buffers adopted, one workgroup run, buffers released

A sample is the mean of a few calls in a row, few enough that most samples are not interrupted on a
busy machine; the median of the samples and their quartiles are reported. `outside` is the whole
call minus the device. The targets: 60 µs for the whole call, 25 outside the device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ELEMENTS = 64
WHOLE, OUTSIDE = 60.0, 25.0  # µs


def sample(work: Callable[[], object], calls: int) -> float:
    """Returns µs per call, the mean of several in a row."""
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return 1e6 * (time.perf_counter() - start) / calls


def parts(target: str) -> dict[str, Callable[[], Any]]:
    """Returns the whole call and its parts, all repeatable."""
    import numpy as np
    from fly_run.launch import runtime

    import fly

    sys.path.insert(0, str(ROOT / "examples"))
    import vector_add  # type: ignore[import-not-found]

    function = fly.jit(target=target)(vector_add.vector_add.function)
    a, b = np.random.default_rng(0).standard_normal((2, ELEMENTS), np.float32)
    c = np.empty_like(a)
    arguments = (a, b, c)
    for _ in range(2):
        function(*arguments)
    np.testing.assert_array_equal(c, a + b)
    calls = function._calls
    key, values = calls.reader.read(arguments, {})
    compiled = calls.made[key]
    bound = compiled._binder.bind(values)
    opened = runtime.device("auto", target)
    return {
        "whole": lambda: function(*arguments),
        "chain": calls.hold,
        "reading": lambda: calls.reader.read(arguments, {}),
        "binding": lambda: compiled._binder.bind(values),
        "device": lambda: opened.run(bound, compiled.image),
    }


def measure(target: str, samples: int, calls: int) -> dict[str, dict[str, float]]:
    """Returns median and quartiles of each part, in µs. The parts run in turn, so that other load
    affects all of them."""
    work = parts(target)
    times: dict[str, list[float]] = {name: [] for name in [*work, "outside"]}
    for _ in range(samples):
        took = {name: sample(one, calls) for name, one in work.items()}
        for name, value in took.items():
            times[name].append(value)
        times["outside"].append(took["whole"] - took["device"])
    return {name: summary(values) for name, values in times.items()}


def summary(values: list[float]) -> dict[str, float]:
    low, median, high = statistics.quantiles(values, n=4)
    return {"median": median, "low": low, "high": high, "least": min(values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--calls", type=int, default=10, help="calls of a sample")
    parser.add_argument("--target", default="gfx942")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.target, asked.samples, asked.calls)
    if asked.json:
        print(json.dumps({"target": asked.target, "elements": ELEMENTS, "us": found}, indent=2))
        return
    print(f"vector_add on {ELEMENTS} elements, {asked.target}, µs a call")
    print(f"  {'':<10}{'median':>8}{'quartiles':>18}{'least':>8}")
    for name, us in found.items():
        spread = f"{us['low']:.1f} – {us['high']:.1f}"
        # The minimum of a difference of two measurements is meaningless.
        least = "" if name == "outside" else f"{us['least']:.1f}"
        print(f"  {name:<10}{us['median']:8.1f}{spread:>18}{least:>8}")
    for name, mark in (("whole", WHOLE), ("outside", OUTSIDE)):
        verdict = "met" if found[name]["median"] <= mark else "missed"
        print(f"  {name}: the mark is {mark:.0f} µs: {verdict}")


if __name__ == "__main__":
    main()
