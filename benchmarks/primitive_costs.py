"""Prints what each primitive costs on gfx942, as the table of docs/primitives.md.

    python benchmarks/primitive_costs.py [--write]

A kernel that loads the items of each thread, calls the primitive and stores its results is run on
the emulator, and compared with one that only loads and stores: the instructions that a wave
executes, the accesses of LDS and the barriers among them, and the kernel's bytes of LDS. --write
puts the table into the page; a test compares them. No GPU is needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import executed
import numpy as np
from fly_run.devices.options import Options

import fly
import fly.expr as fx

TARGET, LANES = "gfx942", 64
PAGE = Path(__file__).parents[1] / "docs" / "primitives.md"
FIRST, LAST = "<!-- benchmarks/primitive_costs.py -->\n", "<!-- end -->\n"
HEAD = (
    "| call | block | items | instructions | of LDS | barriers | bytes of LDS |\n"
    + "|---" * 7
    + "|\n"
)

Make = Callable[[list[Any]], Any]


@fly.kernel
def cost_kernel(A: fx.Tensor, B: fx.Tensor, make: fx.Constexpr, items: fx.Constexpr[int]):
    first = fx.thread_idx.x * items
    found = make([A[first + i] for i in range(items)])
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    for i in fx.range_constexpr(items):
        B[first + i] = results[i % len(results)].to(B.dtype)


@fly.jit
def cost(
    A: fx.Tensor,
    B: fx.Tensor,
    make: fx.Constexpr,
    items: fx.Constexpr[int],
    block: fx.Constexpr[int],
):
    cost_kernel(A, B, make, items).launch(grid=1, block=block)


def measured(make: Make, dtype: str, block: int, items: int) -> np.ndarray:
    """Instructions, accesses of LDS and barriers of a wave; bytes of LDS."""
    given = ((np.arange(block * items) * 37) % 101).astype(dtype)
    compiled = cost.compile(given, np.zeros_like(given), make, items, block, target=TARGET)
    counter = executed.Counter()
    values = {"A": given, "B": np.zeros_like(given)}
    compiled.run(values, device="emulator", options=Options(observers=(counter,)))
    return np.array([*executed.totals(counter.found, block // LANES), counter.lds])


def _function(a: Any, b: Any) -> Any:
    return (a[0] * b[0], a[1] * b[0] + b[1])


# The call as it is shown, the block, the items of a thread, the elements, and the call.
Row = tuple[str, int, int, str, Make]
ROWS: tuple[Row, ...] = (
    ("warp.shuffle_xor(x, 5)", 64, 1, "f4", lambda x: fx.warp.shuffle_xor(x[0], 5)),
    ("warp.broadcast(x, 7)", 64, 1, "f4", lambda x: fx.warp.broadcast(x[0], 7)),
    ("warp.ballot(x > 3)", 64, 1, "i4", lambda x: fx.warp.ballot(x[0] > 3)),
    ("warp.any(x > 3)", 64, 1, "i4", lambda x: fx.warp.any(x[0] > 3).to(fx.Int32)),
    ("warp.count(x > 3)", 64, 1, "i4", lambda x: fx.warp.count(x[0] > 3)),
    ("warp.match_any(x)", 64, 1, "i4", lambda x: fx.warp.match_any(x[0])),
    ("warp.match_any(x, bits=4)", 64, 1, "i4", lambda x: fx.warp.match_any(x[0], bits=4)),
    ("warp.match_all(x)", 64, 1, "i4", lambda x: fx.warp.match_all(x[0]).to(fx.Int32)),
    ("warp.reduce(x)", 64, 1, "f4", lambda x: fx.warp.reduce(x[0])),
    ('warp.reduce(x, "max")', 64, 1, "f4", lambda x: fx.warp.reduce(x[0], "max")),
    ("warp.reduce(x, width=16)", 64, 1, "f4", lambda x: fx.warp.reduce(x[0], width=16)),
    ("warp.reduce((x, x), f)", 64, 1, "f4", lambda x: fx.warp.reduce((x[0], x[0]), _function)),
    ("warp.inclusive_scan(x)", 64, 1, "f4", lambda x: fx.warp.inclusive_scan(x[0])),
    ("warp.exclusive_scan(x)", 64, 1, "f4", lambda x: fx.warp.exclusive_scan(x[0])),
    ("warp.sort(x)", 64, 1, "u4", lambda x: fx.warp.sort(x[0])),
    ("warp.sort(x)", 64, 4, "u4", lambda x: fx.warp.sort(x)),
    ("warp.sort(x, x)", 64, 1, "u4", lambda x: fx.warp.sort(x[0], x[0])),
    ("block.reduce(x)", 256, 1, "f4", lambda x: fx.block.reduce(x[0])),
    ("block.reduce(x)", 256, 4, "f4", lambda x: fx.block.reduce(x)),
    ("block.reduce(x)", 1024, 1, "f4", lambda x: fx.block.reduce(x[0])),
    ("block.inclusive_scan(x)", 256, 1, "f4", lambda x: fx.block.inclusive_scan(x[0])),
    ("block.inclusive_scan(x)", 256, 4, "f4", lambda x: fx.block.inclusive_scan(x)),
    ("block.exclusive_scan(x)", 256, 4, "i4", lambda x: fx.block.exclusive_scan(x)),
    ("block.sort(x)", 256, 1, "u4", lambda x: fx.block.sort(x[0])),
    ("block.sort(x)", 256, 4, "u4", lambda x: fx.block.sort(x)),
    ("block.sort(x, x)", 256, 4, "u4", lambda x: fx.block.sort(x, x)[1]),
    ("block.sort(x, end_bit=8)", 256, 4, "u4", lambda x: fx.block.sort(x, end_bit=8)),
    ("block.top_k(x, 8)", 256, 4, "f4", lambda x: fx.block.top_k(x, 8)[0][4:]),
    ("block.histogram(x, 256)", 256, 4, "i4", lambda x: fx.block.histogram(x, 256)[x[0]]),
    ("block.striped_to_blocked(x)", 256, 4, "f4", lambda x: fx.block.striped_to_blocked(x)),
    ("random.bits(7, i)", 64, 1, "u4", lambda x: fx.random.bits(7, x[0])[0]),
    ("random.uniform(7, i)", 64, 4, "f4", lambda x: fx.random.uniform(7, fx.thread_idx.x)),
    ("random.normal(7, i)", 64, 4, "f4", lambda x: fx.random.normal(7, fx.thread_idx.x)),
    (
        "random.randint(7, i, low=0, high=6)",
        64,
        4,
        "i4",
        lambda x: fx.random.randint(7, fx.thread_idx.x, low=0, high=6),
    ),
)


def table() -> str:
    """The table, with its head."""
    lines = []
    bases: dict[tuple[str, int, int], np.ndarray] = {}
    for name, block, items, dtype, make in ROWS:
        key = dtype, block, items
        if key not in bases:
            bases[key] = measured(list, dtype, block, items)
        counts = measured(make, dtype, block, items) - bases[key]
        numbers = " | ".join(map(str, (block, items, *counts)))
        lines.append(f"| `fx.{name}` | {numbers} |\n")
    return HEAD + "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    found = table()
    if not parser.parse_args().write:
        print(found, end="")
        return
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(FIRST)
    PAGE.write_text(f"{before}{FIRST}{found}{LAST}{rest.split(LAST)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
