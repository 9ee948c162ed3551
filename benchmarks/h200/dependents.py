"""Times of dependent launches on an H200: chains of small kernels, of which each reads what the one
before wrote, launched dependently and as usual.

    python -m h200.dependents prepare FOLDER           compiles; needs no GPU
    python -m h200.dependents run FOLDER RESULTS.json  measures
    python -m h200.dependents table RESULTS.json       writes the section of results/h200.md

Results are compared with torch's first. The chain is a CUDA graph, that launches by a host program
do not add to the times.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any

import torch

from h200.launches.chained import EARLY, LATE, LINKS, USUAL, chain
from h200.sections import commands

HEAD = "## Chains of small kernels\n"
SIZES = tuple(1 << bits for bits in (12, 16, 18, 20, 22, 24))
WAYS = (USUAL, EARLY, LATE)
CALLS, REPEATS = 5, 40


def prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for way in WAYS:
        chain.compile(target="sm_90a", way=way).save(folder / f"{way}.image")
    (folder / "cases.json").write_text(json.dumps({"sizes": SIZES}))


def check(call: Callable[..., Any], n: int) -> None:
    """AssertionError where the results are not torch's."""
    x, w = (torch.rand(n, device="cuda") for _ in "xw")
    y, exact = torch.zeros_like(x), x.double()
    call(x, w, y)
    for _ in range(LINKS):
        exact = exact * w + 1
    torch.testing.assert_close(x.double(), exact, rtol=1e-5, atol=1e-5)


def measure(folder: Path) -> list[dict[str, Any]]:
    """For each size and way: µs of a launch, median and quartiles."""
    from fly.call.loading import load

    calls = {name: load(str(folder / f"{name}.image")) for name in WAYS}
    rows = []
    for n in json.loads((folder / "cases.json").read_text())["sizes"]:
        for call in calls.values():
            for _ in range(10):
                check(call, n)
        # Of these weights, values stay near 2.
        x, y = (torch.ones(n, device="cuda") for _ in "xy")
        w = torch.full_like(x, 0.5)
        ways: dict[str, Callable[[], Any]] = {}
        for name, call in calls.items():
            ways[name] = _graph(partial(call, x, w, y)).replay
        found: dict[str, Any] = {"elements": n}
        for name, times in _seconds(ways).items():
            low, middle, high = quantiles(times, n=4)
            found[name] = [one * 1e6 / LINKS for one in (middle, low, high)]
        rows.append(found)
        print(found, flush=True)
    return rows


def _graph(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def _seconds(ways: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Seconds of a chain, for each way and repeat. The ways take turns."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(REPEATS + 2):
        for name, call in ways.items():
            call()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(CALLS):
                call()
            end.record()
            end.synchronize()
            if repeat >= 2:
                found[name].append(start.elapsed_time(end) / 1e3 / CALLS)
    return found


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    about = ", ".join(document["about"].values())
    lines = [
        f"{HEAD}\n{about}. CUDA graphs of {LINKS} kernels, Y = X · W + 1 of f32, of which each",
        " reads what the\none before wrote. µs for a kernel: medians, quartiles. Early: a kernel",
        " lets the next one\nbegin at once. Late: when it has written.\n\n",
        f"| elements | {' | '.join(f'{way} | quartiles' for way in WAYS)} | early | late |\n",
        f"|---:|{'---:|---|' * len(WAYS)}---:|---:|\n",
    ]
    for row in document["rows"]:
        cells = [f"{row['elements']}"]
        for way in WAYS:
            middle, low, high = row[way]
            cells += [f"{middle:.2f}", f"{low:.2f}–{high:.2f}"]
        cells += [f"{row[way][0] / row[USUAL][0]:.2f}" for way in (EARLY, LATE)]
        lines.append(f"| {' | '.join(cells)} |\n")
    lines.append("\nThe last two columns are shares of usual.\n")
    return "".join(lines)


def main(words: list[str]) -> int:
    return commands(words, __doc__, prepare, measure, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
