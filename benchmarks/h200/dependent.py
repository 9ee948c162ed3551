"""Times of calls of `fly.kernels` that launch several kernels, on an H200, with and without
dependent launches.

    python -m h200.dependent prepare FOLDER           compiles; needs no GPU
    python -m h200.dependent run FOLDER RESULTS.json  checks, and measures
    python -m h200.dependent check FOLDER [COUNT]     checks, and measures nothing
    python -m h200.dependent table RESULTS.json       writes the section of results/h200.md

Each call is compiled as `fly.kernels` has it, and without `fly.kernels.dependent`: a kernel then
begins when the one before it has ended. Both are repeated in CUDA graphs, in turns. A kernel that
reads what the one before has not written yet reads what an earlier call left there; so the check
makes calls with other numbers one after the other, without waiting for any, and compares their
results with those of calls without dependent launches.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from h200.library import _argument, recorded, results
from h200.row_widths import seconds
from h200.sections import commands

HEAD = "## Dependent launches\n"
BF16 = torch.bfloat16
CALLS, SETS = 60, 5  # of a check, and the sets of inputs that its calls take in turn
PAGE = 16  # keys
WAYS = ("dependent", "plain")


class Case(NamedTuple):
    """A call with inputs. `make` returns them on a device. error: how far results may differ, as a
    share of the greatest one: 0 but for sums in any order."""

    name: str
    call: Callable[..., Any]
    make: Callable[[str], list[Any]]
    error: float = 0.0

    def ours(self, *inputs: Any) -> Any:
        return self.call(*inputs)


def _new(place: str, *shape: int, dtype: torch.dtype = BF16) -> torch.Tensor:
    return torch.randn(shape, device=place).to(dtype)


def _kernels() -> Any:
    from fly import kernels

    return kernels


def _product(m: int, n: int, k: int) -> Case:
    def make(place: str) -> list[Any]:
        return [_new(place, m, k), _new(place, n, k)]

    name = f"`matmul`, {m}×{n}×{k}"
    return Case(name, lambda a, b: _kernels().matmul(a, b.T), make)


def _norm(rows: int, columns: int) -> Case:
    def make(place: str) -> list[Any]:
        return [*(_new(place, rows, columns) for _ in range(2)), _new(place, columns)]

    name = f"`norm_backward`, {rows}×{columns}"
    return Case(name, lambda dy, x, w: _kernels().norm_backward(dy, x, w, 1e-6, False), make)


def _decoding(sequences: int, length: int, d: int) -> Case:
    def make(place: str) -> list[Any]:
        pages = length // PAGE
        count = sequences * pages
        caches = [_new(place, count, PAGE, 8, d) for _ in range(2)]
        tables = torch.randperm(count, device=place).int().reshape(sequences, pages)
        lengths = torch.full((sequences,), length, dtype=torch.int32, device=place)
        return [_new(place, sequences, 32, d), *caches, tables, lengths]

    name = f"`paged_attention`, {sequences} × {length} keys of 8 heads of {d}"
    return Case(name, lambda *given: _kernels().paged_attention(*given), make)


def _gradients(batches: int, heads: int, length: int, d: int) -> Case:
    def make(place: str) -> list[Any]:
        shape = batches, heads, length, d
        d_out, q, k, v, out = (_new(place, *shape) for _ in range(5))
        d_sums, sums = (_new(place, *shape[:3], dtype=torch.float32) for _ in range(2))
        return [d_out, d_sums, q, k, v, out, sums.abs() + 6]

    def call(*given: Any) -> Any:
        return _kernels().flash_attention_backward(*given, True)

    name = f"`flash_attention_backward`, causal, {batches}×{heads}×{length}×{d}"
    return Case(name, call, make, error=2**-7)


def _integers(name: str, count: int, most: int, call: Callable[..., Any]) -> Case:
    def make(place: str) -> list[Any]:
        return [torch.randint(0, most, (count,), dtype=torch.int32, device=place)]

    return Case(f"`{name}`, {count} integers", call, make)


CASES = (
    _product(64, 1024, 16384),
    _product(256, 512, 8192),
    _product(16, 4096, 4096),
    _product(1023, 1021, 1019),
    _norm(64, 65536),
    _decoding(1, 1024, 128),
    _decoding(8, 4096, 128),
    _decoding(64, 4096, 128),
    _gradients(1, 8, 512, 128),
    _gradients(2, 16, 1024, 64),
    _gradients(2, 16, 4096, 128),
    _integers("moe_sort", 1 << 12, 8, lambda x: _kernels().moe_sort(x, 8)),
    _integers("moe_sort", 1 << 15, 64, lambda x: _kernels().moe_sort(x, 64)),
    _integers("prefix_sum", 1 << 16, 9, lambda x: _kernels().prefix_sum(x)),
    _integers("prefix_sum", 1 << 24, 9, lambda x: _kernels().prefix_sum(x)),
)


def prepare(folder: Path) -> None:
    """Writes the images, and cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        for number, case in enumerate(CASES):
            row: dict[str, Any] = {"name": case.name}
            for way in WAYS:
                row[way] = _compiled(case, way, folder / f"{number}-{way}.image")
            rows.append(row)
            print(case.name, flush=True)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))


def _compiled(case: Case, way: str, path: Path) -> dict[str, Any]:
    """Compiles a call; its image's name, and its arguments."""
    absent = patch("fly.kernels.dependent._exist", lambda: False)
    with absent if way == "plain" else nullcontext():
        compiled, arguments = recorded(case, case.make("cpu"))  # type: ignore[arg-type]
    waiting = [one.name for one in compiled.kernels.values() if getattr(one, "dependent", False)]
    assert bool(waiting) is (way == "dependent"), f"{case.name}, {way}: {waiting} wait"
    compiled.save(path)
    return {"file": path.name, "arguments": arguments}


def ways_of(folder: Path, row: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """The calls, which take inputs."""
    from fly.call.loading import load

    def called(compiled: Any, arguments: list[dict[str, Any]], inputs: list[Any]) -> Any:
        return compiled(*(_argument(one, inputs) for one in arguments))

    return {
        way: partial(called, load(str(folder / row[way]["file"])), row[way]["arguments"])
        for way in WAYS
    }


def differ(case: Case, made: Any, right: Any) -> float:
    """By how much results differ, as a share of the greatest one."""
    found = 0.0
    for one, other in zip(results(made), results(right), strict=True):
        if other.numel():
            apart = (one.double() - other.double()).abs().max().item()
            found = max(found, apart / max(other.double().abs().max().item(), 1e-30))
    return found


def checked(case: Case, ways: dict[str, Callable[..., Any]], count: int) -> float:
    """How far results of `count` calls in a row differ from those without dependent launches.
    AssertionError if that is too much."""
    sets = [case.make("cuda") for _ in range(SETS)]
    right = []
    for inputs in sets:
        right.append(ways["plain"](inputs))
        torch.cuda.synchronize()
    made = [ways["dependent"](sets[number % SETS]) for number in range(count)]
    torch.cuda.synchronize()
    worst = max(differ(case, one, right[number % SETS]) for number, one in enumerate(made))
    assert worst <= case.error, f"{case.name}: differs by {worst}"
    return worst


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each case: medians and quartiles in µs."""
    torch.manual_seed(0)
    rows = []
    for case, row in zip(CASES, json.loads((folder / "cases.json").read_text()), strict=True):
        ways = ways_of(folder, row)
        found: dict[str, Any] = {"name": case.name, "differs": checked(case, ways, CALLS)}
        inputs = case.make("cuda")
        calls = {way: partial(call, inputs) for way, call in ways.items()}
        for way, times in seconds(calls).items():
            low, _, high = quantiles(times, n=4)
            found[way] = [1e6 * t for t in (median(times), low, high)]
        rows.append(found)
        print(found, flush=True)
        del inputs, calls, ways
        torch.cuda.empty_cache()
    return rows


def check(folder: Path, count: int = CALLS) -> int:
    """Checks all cases; 1 if results differ."""
    wrong = 0
    for case, row in zip(CASES, json.loads((folder / "cases.json").read_text()), strict=True):
        try:
            print(case.name, checked(case, ways_of(folder, row), count), flush=True)
        except AssertionError as why:
            wrong += 1
            print("wrong:", why, flush=True)
    print(f"{len(CASES)} calls, {wrong} wrong")
    return int(wrong > 0)


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    lines = [
        f"{HEAD}\n{', '.join(document['about'].values())}. bf16. µs of a call, medians, and",
        " quartiles: with dependent launches, and where a kernel begins when the one\nbefore it",
        " has ended; in CUDA graphs. Calls with × were tried, and have none.\n\n",
        "| | dependent | quartiles | plain | quartiles | of plain |\n",
        "|---|---:|---|---:|---|---:|\n",
    ]
    used = {case.name for case in CASES}
    for row in document["rows"]:
        (own, *own_low_high), (plain, *low_high) = (row[way] for way in WAYS)
        spreads = ["–".join(f"{x:,.1f}" for x in one) for one in (own_low_high, low_high)]
        name = row["name"] + " ×" * (row["name"] not in used)
        lines.append(
            f"| {name} | {own:,.1f} | {spreads[0]} | {plain:,.1f} | {spreads[1]}"
            f" | {own / plain:.3f} |\n"
        )
    return "".join(lines)


def main(words: list[str]) -> int:
    if words[:1] == ["check"] and len(words) in (2, 3):
        return check(Path(words[1]), *map(int, words[2:]))
    return commands(words, __doc__, prepare, measure, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
