"""Compares the instructions of fx.block's primitives and Triton's, for docs/primitives.md.

    python benchmarks/primitive_peers.py [--peers-python PATH] [--write]

Both systems' kernels have one block of the same threads, which load the same items, call the
primitive and store its result; the emulator executes them for gfx942, and their results are
compared with NumPy's. A count is that of a wave: of the whole kernel, and of the primitive alone,
which is what the kernel executes above one that only loads and stores. Triton 3.9.0 is used if the
interpreter PATH (default: this one) has it; otherwise only our counts are listed. --write puts the
table into the page. No GPU is needed.

The exit status is 1 if one of our primitives executes more than 10 % above Triton's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import executed
import numpy as np
import primitive_costs
from fly_image.amd.code_object import CodeObject
from fly_run.devices.options import Options
from fly_run.emulator.machine import Emulator

import fly.expr as fx

KERNELS = Path(__file__).with_name("peers") / "triton_primitives.py"
FIRST, LAST = "<!-- benchmarks/primitive_peers.py -->\n", "<!-- end of primitive_peers -->\n"
HEAD = (
    "| call | Triton's | type | block | items | kernel | Triton's kernel | primitive"
    " | Triton's | ratio |\n" + "|---" * 10 + "|\n"
)
ALLOWED = 1.10
TRITON = {"PYTHONPATH": "", "TRITON_DEFAULT_FP_FUSION": "1"}
TITLES = {"f4": "fp32", "i4": "i32", "u4": "u32"}


@dataclass(frozen=True)
class Problem:
    """A primitive in both systems. kernel: its name in peers/triton_primitives.py, and `title` its
    call there. expected: the result of both as NumPy computes it, of the items of the block."""

    call: str
    kernel: str
    title: str
    make: Callable[[list[Any]], Any]
    expected: Callable[[np.ndarray], np.ndarray]


def _sum(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x.sum(dtype=x.dtype), x.shape)


REDUCE_ADD = Problem(
    "fx.block.reduce(x)", "reduce_add", "tl.sum(x)", lambda x: fx.block.reduce(x), _sum
)
REDUCE_MAX = Problem(
    'fx.block.reduce(x, "max")',
    "reduce_max",
    "tl.reduce(x, maximum)",
    lambda x: fx.block.reduce(x, "max"),
    lambda x: np.broadcast_to(x.max(), x.shape),
)
SCAN_ADD = Problem(
    "fx.block.inclusive_scan(x)",
    "scan_add",
    "tl.cumsum(x)",
    lambda x: fx.block.inclusive_scan(x),
    lambda x: np.cumsum(x, dtype=x.dtype),
)
SCAN_MAX = Problem(
    'fx.block.inclusive_scan(x, "max")',
    "scan_max",
    "tl.associative_scan(x, maximum)",
    lambda x: fx.block.inclusive_scan(x, "max"),
    np.maximum.accumulate,
)
SORT = Problem("fx.block.sort(x)", "sort", "tl.sort(x)", lambda x: fx.block.sort(x), np.sort)
TOP_K = Problem(
    "fx.block.top_k(x, 8)",
    "top_8",
    "tl.topk(x, 8)",
    lambda x: fx.block.top_k(x, 8)[0],
    lambda x: np.sort(x)[::-1][:8],
)
HISTOGRAM = Problem(
    "fx.block.histogram(x, 256)",
    "histogram_256",
    "tl.histogram(x, 256)",
    lambda x: fx.block.histogram(x, 256)[fx.thread_idx.x],
    lambda x: np.bincount(x, minlength=256),
)

# The problem, the type of its elements, the block, and the items of a thread.
ROWS: tuple[tuple[Problem, str, int, int], ...] = (
    *((REDUCE_ADD, "f4", *size) for size in ((256, 1), (256, 4), (1024, 1), (1024, 4))),
    (REDUCE_ADD, "i4", 256, 4),
    (REDUCE_MAX, "f4", 256, 1),
    (REDUCE_MAX, "f4", 256, 4),
    (REDUCE_MAX, "i4", 256, 4),
    *((SCAN_ADD, "f4", *size) for size in ((256, 1), (256, 4), (1024, 1), (1024, 4))),
    (SCAN_ADD, "i4", 256, 4),
    (SCAN_MAX, "f4", 256, 4),
    (SCAN_MAX, "i4", 256, 4),
    *((SORT, "u4", *size) for size in ((64, 1), (256, 1), (256, 4), (1024, 1), (1024, 4))),
    (SORT, "i4", 256, 4),
    (SORT, "f4", 256, 4),
    (TOP_K, "u4", 256, 8),
    (TOP_K, "f4", 256, 8),
    (HISTOGRAM, "i4", 256, 1),
)
COPY = Problem("", "copy", "", list, np.copy)


def given(dtype: str, block: int, items: int) -> np.ndarray:
    """The items of the block: small numbers, so that sums of floats are exact."""
    return ((np.arange(block * items) * 37) % 101).astype(dtype)


def check(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    """Compares the first items that were stored with the result."""
    np.testing.assert_array_equal(found[: len(expected)], expected, what)


def ours(problem: Problem, dtype: str, block: int, items: int) -> int:
    """The instructions that a wave of our kernel executes."""
    x = given(dtype, block, items)
    y = np.zeros_like(x)
    compiled = primitive_costs.cost.compile(
        x, y, problem.make, items, block, target=primitive_costs.TARGET
    )
    counter = executed.Counter()
    options = Options(observers=(counter,))
    compiled.run({"A": x, "B": y}, device="emulator", options=options)
    check(y, problem.expected(x), problem.call)
    return executed.totals(counter.found, block // primitive_costs.LANES)[0]


class Peer:
    """Triton's kernels, compiled by an interpreter that has it."""

    def __init__(self, python: str, folder: Path, rows: list[tuple[Problem, str, int, int]]):
        requests = [[self.key(*row), row[0].kernel, TITLES[row[1]], row[2], row[3]] for row in rows]
        done = subprocess.run(
            [python, KERNELS, folder],
            input=json.dumps(requests),
            env={**os.environ, **TRITON, "TRITON_CACHE_DIR": str(folder / "cache")},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        self.folder, self.told = folder, json.loads(done.stdout)

    @staticmethod
    def key(problem: Problem, dtype: str, block: int, items: int) -> str:
        return f"{problem.kernel}-{dtype}-{block}-{items}"

    def count(self, problem: Problem, dtype: str, block: int, items: int) -> int:
        """The instructions that a wave of Triton's kernel executes."""
        key = self.key(problem, dtype, block, items)
        code = CodeObject.parse((self.folder / f"{key}.hsaco").read_bytes(), key)
        counter = executed.Counter()
        device = Emulator(primitive_costs.TARGET, Options(observers=(counter,)))
        function = device.load(code).function(self.told[key]["name"])
        x = given(dtype, block, items)
        y = np.zeros_like(x)
        with adopted(device, x, y) as addresses:
            # Triton appends pointers to scratch memory, which are null here.
            size = code.kernel(self.told[key]["name"]).kernarg_size
            packed = np.array(addresses, "u8").tobytes().ljust(size, b"\0")
            device.launch(function, (1, 1, 1), (block, 1, 1), packed, self.told[key]["lds"])
            device.synchronize()
        check(y, problem.expected(x), key)
        return executed.totals(counter.found, block // primitive_costs.LANES)[0]


@contextmanager
def adopted(device: Emulator, *arrays: np.ndarray) -> Iterator[list[int]]:
    """The arrays' addresses on the device, where they are while the block runs."""
    addresses = [
        device.adopt(one.ctypes.data, one.nbytes, writable=True, label=f"array {i}")
        for i, one in enumerate(arrays)
    ]
    try:
        yield addresses
    finally:
        for address in reversed(addresses):
            device.release(address)


def has_triton(python: str) -> bool:
    """Whether an interpreter has Triton; prints a line if not."""
    code = "import triton"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True)
    except OSError as error:
        sys.exit(f"primitive_peers: error: --peers-python {python}: {error.strerror}")
    if done.returncode:
        print(f"Triton is not installed for {python}: left out", file=sys.stderr)
    return done.returncode == 0


def table(peer: Peer | None) -> tuple[str, list[str]]:
    """The table, with its head, and the calls that execute more than is allowed."""
    lines, above = [], []
    bases: dict[tuple[Any, ...], tuple[int, int]] = {}

    def counts(problem: Problem, *row: Any) -> tuple[int, int]:
        return ours(problem, *row), peer.count(problem, *row) if peer else 0

    for problem, *row in ROWS:
        key = tuple(row)
        if key not in bases:
            bases[key] = counts(COPY, *row)
        own, theirs = counts(problem, *row)
        alone, their = own - bases[key][0], theirs - bases[key][1]
        cells: list[Any] = [f"`{problem.call}`", f"`{problem.title}`", *row]
        if peer:
            cells += [own, theirs, alone, their, f"{alone / their:.2f}"]
            if alone > ALLOWED * their:
                above.append(f"{problem.call} {row}")
        else:
            cells += [own, "–", alone, "–", "–"]
        lines.append("| " + " | ".join(map(str, cells)) + " |\n")
    return HEAD + "".join(lines), above


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable, help="where Triton is")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fly-primitives-") as folder:
        peer = None
        if has_triton(options.peers_python):
            bases = dict.fromkeys((COPY, *row) for _, *row in ROWS)
            rows: list[Any] = [*bases, *ROWS]
            peer = Peer(options.peers_python, Path(folder), rows)
        elif options.write:
            sys.exit("primitive_peers: error: --write needs Triton: name it with --peers-python")
        found, above = table(peer)
    if options.write:
        page = primitive_costs.PAGE
        before, rest = page.read_text(encoding="utf-8").split(FIRST)
        page.write_text(f"{before}{FIRST}{found}{LAST}{rest.split(LAST)[1]}", encoding="utf-8")
    else:
        print(found, end="")
    if peer:
        lines = [f"{one} is more than 10 % above Triton's" for one in above]
        print("\n".join(lines) or "none is more than 10 % above Triton's", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
