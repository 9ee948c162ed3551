"""Times of plans for few and for many rows on an H200.

    python -m h200.few_rows prepare FOLDER           compiles; needs no GPU
    python -m h200.few_rows run FOLDER RESULTS.json  checks, and measures
    python -m h200.few_rows table RESULTS.json       writes the section of results/h200.md

`rotary_and_cache` by the pairs that a thread has, and `add_layer_norm` by threads and vectors of a
row: with few rows the time is that of one after the other, with many that of the memory.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.nn.functional as F

from fly.kernels.attention import rotary
from fly.kernels.rowwise.row_plans import Choice
from h200.library import _argument, recorded, results
from h200.row_kernels.row_choices import choosing
from h200.row_widths import seconds
from h200.sections import commands

HEAD = "## Few rows and many\n"
POSITIONS, PAGE = 4096, 16
WIDTHS = (1, 2, 4, 8)


class Tokens(NamedTuple):
    """rotary_and_cache of tokens of `heads` query heads, and `kv_heads`, of d elements of bf16."""

    tokens: int
    heads: int
    kv_heads: int
    d: int

    @property
    def name(self) -> str:
        return f"`rotary_and_cache`, {self.tokens} × {self.heads} + 2 · {self.kv_heads} × {self.d}"

    def inputs(self, place: str) -> list[torch.Tensor]:
        new = partial(torch.empty if place == "cpu" else torch.randn, device=place)
        whole = partial(torch.arange, device=place, dtype=torch.int32)
        rows = [new(self.tokens, n, self.d) for n in (self.heads, self.kv_heads, self.kv_heads)]
        caches = [new(-(-self.tokens // PAGE), PAGE, self.kv_heads, self.d) for _ in range(2)]
        q, k, v, k_cache, v_cache = (one.bfloat16() for one in (*rows, *caches))
        turns = new(POSITIONS, self.d // 2)
        positions = whole(self.tokens) * 7 % POSITIONS
        slots = whole(self.tokens).flip(0)
        return [q, k, v, turns.cos(), turns.sin(), positions, k_cache, v_cache, slots]

    def ours(self, *inputs: Any) -> Any:
        from fly import kernels

        return kernels.rotary_and_cache(*inputs)

    def ways(self) -> Iterator[tuple[str, AbstractContextManager[Any]]]:
        for width in WIDTHS:
            yield f"{width}", patch.object(rotary, "width_for", lambda _, width=width: width)

    def check(self, made: Any, inputs: list[torch.Tensor]) -> None:
        *rows, cos, sin, positions, k_cache, v_cache, slots = inputs
        cos, sin = (one[positions.long()][:, None] for one in (cos, sin))
        right = []
        for x, y in (one.float().chunk(2, -1) for one in rows[:2]):
            right.append(torch.cat([x * cos - y * sin, x * sin + y * cos], -1))
        for own, other in zip(made, right, strict=True):
            torch.testing.assert_close(own.float(), other, rtol=2**-7, atol=2**-7)
        for cache, row in ((k_cache, made[1]), (v_cache, rows[2])):
            own = cache.view(-1, *row.shape[1:])[slots.long()]
            torch.testing.assert_close(own, row, rtol=0, atol=0)

    def moved(self) -> int:
        """Bytes."""
        return 2 * self.tokens * self.d * (2 * self.heads + 5 * self.kv_heads)


class Normalized(NamedTuple):
    """add_layer_norm of rows of bf16."""

    rows: int
    columns: int

    @property
    def name(self) -> str:
        return f"`add_layer_norm`, {self.rows} × {self.columns}"

    def inputs(self, place: str) -> list[torch.Tensor]:
        new = partial(torch.empty if place == "cpu" else torch.randn, device=place)
        shapes = (self.rows, self.columns), (self.rows, self.columns), self.columns, self.columns
        return [new(one).bfloat16() for one in shapes]

    def ours(self, *inputs: Any) -> Any:
        from fly import kernels

        return kernels.add_layer_norm(*inputs)

    def ways(self) -> Iterator[tuple[str, AbstractContextManager[Any]]]:
        vectors = self.columns // 8
        for each in (1, 2, 4):
            if 64 <= vectors // each <= 1024:
                yield f"{vectors // each} × {8 * each}", choosing(Choice(vectors // each, each))

    def check(self, made: Any, inputs: list[torch.Tensor]) -> None:
        x, residual, *parameters = inputs
        total = x + residual
        right = F.layer_norm(total.float(), x.shape[-1:], *(one.float() for one in parameters))
        torch.testing.assert_close(made[0].float(), right, rtol=2**-6, atol=2**-6)
        torch.testing.assert_close(made[1], total, rtol=0, atol=0)

    def moved(self) -> int:
        """Bytes."""
        return 8 * self.rows * self.columns


Case = Tokens | Normalized
CASES: tuple[Case, ...] = (
    *(
        Tokens(count, *heads)
        for heads in ((32, 8, 128), (8, 1, 64))
        for count in (1, 8, 32, 64, 128, 256, 512, 1024, 4096, 16384)
    ),
    *(
        Normalized(count, columns)
        for columns in (4096, 8192, 2048)
        for count in (1, 8, 64, 256, 1024, 4096, 16384)
    ),
)


def prepare(folder: Path) -> None:
    """Writes the images, and cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    files: dict[str, str] = {}
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        for case in CASES:
            ways = {}
            for name, context in case.ways():
                with context:
                    made = recorded(case, case.inputs("cpu"))  # type: ignore[arg-type]
                compiled, arguments = made
                file = files.setdefault(compiled.image.digest, f"{len(files)}.image")
                compiled.save(folder / file)
                ways[name] = {"file": file, "arguments": arguments}
            rows.append({"name": case.name, "ways": ways})
            print(case.name, {name: one["file"] for name, one in ways.items()}, flush=True)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each case: medians and quartiles in µs, of a call in a graph of several."""
    from fly.call.loading import load

    torch.manual_seed(0)
    rows = []
    for case, row in zip(CASES, json.loads((folder / "cases.json").read_text()), strict=True):
        inputs, ways = case.inputs("cuda"), {}
        for name, one in row["ways"].items():
            arguments = [_argument(given, inputs) for given in one["arguments"]]
            ways[name] = partial(load(str(folder / one["file"])), *arguments)
            made = [
                one.reshape(shape)
                for one, shape in zip(results(ways[name]()), _shapes(case, inputs), strict=True)
            ]
            case.check(made, inputs)
        found: dict[str, Any] = {"name": case.name, "bytes": case.moved()}
        for name, times in seconds(ways).items():
            low, _, high = quantiles(times, n=4)
            found[name] = [1e6 * one for one in (median(times), low, high)]
        rows.append(found)
        print(found, flush=True)
        del inputs, ways, made
        torch.cuda.empty_cache()
    return rows


def _shapes(case: Case, inputs: list[torch.Tensor]) -> list[Any]:
    """Those of the results: of q and k, or of two matrices."""
    return [one.shape for one in inputs[:2]]


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    lines = [
        f"{HEAD}\n{', '.join(document['about'].values())}. µs of a call in a CUDA graph of several:"
        " medians. `rotary_and_cache` by pairs of\na thread, `add_layer_norm` by threads and"
        " elements of each. bf16.\n"
    ]
    head: list[str] = []
    for row in document["rows"]:
        names = [one for one in row if one not in ("name", "bytes")]
        if names != head:
            head = names
            lines.append(f"\n| | {' | '.join(names)} |\n|---{'|---:' * len(names)}|\n")
        lines.append(f"| {row['name']} | {' | '.join(f'{row[one][0]:.2f}' for one in names)} |\n")
    return "".join(lines)


def main(words: list[str]) -> int:
    return commands(words, __doc__, prepare, measure, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
