"""Times of `fly.kernels.scaled_matmul` on an H200: 8-bit floats, with a scale for each 128 elements
of A's rows and for each 128 × 128 elements of B, as DeepSeek's models have them.

    python -m h200.scaled prepare FOLDER           compiles; needs no GPU
    python -m h200.scaled run FOLDER RESULTS.json  measures
    python -m h200.scaled table RESULTS.json       writes the table of benchmarks/results/h200.md

Beside it: cuBLAS through `torch._scaled_mm`, where torch has such scales, a kernel in Triton, whose
best configuration counts, and our product without scales. Errors are beside f64.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from h200.library import _argument, recorded
from h200.products import CHECKED, seconds
from h200.sections import commands

HEAD = "## Products of 8-bit floats with scales of blocks\n"
BLOCK = 128
FLOAT8, OUT = torch.float8_e4m3fn, torch.bfloat16


class Scaled(NamedTuple):
    """m × k times the transpose of n × k."""

    m: int
    n: int
    k: int

    @property
    def name(self) -> str:
        return f"{self.m}×{self.n}×{self.k}"

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    def operands(self, place: str) -> list[torch.Tensor]:
        """A, B and their scales, in the order in memory that torch asks for."""
        new = partial(torch.empty if place == "cpu" else torch.randn, device=place)
        a, b = new((self.m, self.k)).to(FLOAT8), new((self.n, self.k)).to(FLOAT8).t()
        rows, columns = self.k // BLOCK, -(-self.n // BLOCK)
        scale_a = new((rows, self.m)).abs().t()
        scale_b = new((columns, -(-rows // 4) * 4)).abs()[:, :rows].t()
        return [a, b, scale_a, scale_b]


class Ours:
    """What is recorded: the product with scales, or without."""

    def __init__(self, scaled: bool):
        self.scaled = scaled

    def ours(self, a: Any, b: Any, *scales: Any) -> Any:
        from fly.kernels import matmul, scaled_matmul

        if self.scaled:
            return scaled_matmul(a, b, *scales, out_dtype=OUT)
        return matmul(a, b, out_dtype=OUT)


PRODUCTS = (
    *(Scaled(edge, edge, edge) for edge in (2048, 4096, 8192, 16384)),
    Scaled(4096, 24576, 1536),
    Scaled(4096, 7168, 16384),
    Scaled(4096, 4096, 7168),
    Scaled(4096, 7168, 2048),
    Scaled(128, 7168, 16384),
    Scaled(128, 4096, 7168),
)


def prepare(folder: Path) -> None:
    """Writes an image for each plan, and cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, files = [], {}
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        for product in PRODUCTS:
            inputs = product.operands("cpu")
            row: dict[str, Any] = {"name": product.name}
            for way in ("ours", "plain"):
                compiled, arguments = recorded(Ours(way == "ours"), inputs)  # type: ignore[arg-type]
                file = files.setdefault(compiled.image.digest, f"{len(files)}.image")
                compiled.save(folder / file)
                row[way] = {"file": file, "arguments": arguments}
            rows.append(row)
            print(product.name, row["ours"]["file"], flush=True)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))


def widened(inputs: list[torch.Tensor], rows: int) -> torch.Tensor:
    """The first rows of the product in f64."""
    a, b, scale_a, scale_b = inputs
    (_, k), n = a.shape, b.shape[1]
    wide = scale_b.double().repeat_interleave(BLOCK, 0)[:k]
    wide = wide.repeat_interleave(BLOCK, 1)[:, :n]
    left = a[:rows].double() * scale_a[:rows].double().repeat_interleave(BLOCK, 1)[:, :k]
    return left @ (b.double() * wide)


def error(inputs: list[torch.Tensor], made: Any) -> float:
    """The greatest error of some rows, as a share of the greatest result."""
    exact = widened(inputs, CHECKED)
    made = made.reshape(inputs[0].shape[0], -1)[:CHECKED].double()
    return ((made - exact).abs().max() / exact.abs().max()).item()


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each product."""
    from fly.call.loading import load
    from h200.peers.triton_scaled import calls

    torch.manual_seed(0)
    rows = []
    for product, row in zip(PRODUCTS, json.loads((folder / "cases.json").read_text()), strict=True):
        inputs = product.operands("cuda")
        ways: dict[str, Callable[[], Any]] = {}
        for way in ("ours", "plain"):
            compiled = load(str(folder / row[way]["file"]))
            arguments = [_argument(one, inputs) for one in row[way]["arguments"]]
            ways[way] = partial(compiled, *arguments)
        cublas = partial(torch._scaled_mm, *inputs, out_dtype=OUT)
        found: dict[str, Any] = {"name": product.name}
        try:
            cublas()
            ways["torch"] = cublas
        except (RuntimeError, ValueError) as problem:
            found["refused"] = str(problem).splitlines()[0]
        ways |= calls(inputs)
        errors = {way: error(inputs, call()) for way, call in ways.items() if way != "plain"}
        found["errors"] = errors
        for way, measured in seconds(ways).items():
            low, _, high = quantiles(measured, n=4)
            found[way] = [product.flops / t / 1e12 for t in (median(measured), high, low)]
        rows.append(found)
        print(found, flush=True)
        del inputs, ways, cublas
        torch.cuda.empty_cache()
    return rows


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    about = ", ".join(document["about"].values())
    lines = [
        f"{HEAD}\n{about}. e4m3, results in bf16. TFLOP/s: medians, and quartiles, of graphs that",
        " take\nturns. A has a scale for 128 elements of a row, B for 128 × 128. Plain is `matmul`",
        " without scales.\nErrors are those of the first rows beside f64, as shares of the",
        " greatest result.\n\n",
        "| m×n×k | ours | quartiles | cuBLAS | Triton | of cuBLAS | of Triton | plain | error |",
        " theirs |\n|---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n",
    ]
    for row in document["rows"]:
        middle, low, high = row["ours"]
        triton = max(rates[0] for way, rates in row.items() if way.startswith("Triton"))
        cublas = row["torch"][0] if "torch" in row else None
        others = [one for way, one in row["errors"].items() if way != "ours"]
        cells = [
            row["name"],
            f"{middle:,.0f}",
            f"{low:,.0f}–{high:,.0f}",
            f"{cublas:,.0f}" if cublas else "–",
            f"{triton:,.0f}",
            f"{middle / cublas:.3f}" if cublas else "–",
            f"{middle / triton:.3f}",
            f"{row['plain'][0]:,.0f}",
            f"{row['errors']['ours']:.1e}",
            f"{min(others):.1e}",
        ]
        lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)


def main(words: list[str]) -> int:
    return commands(words, __doc__, prepare, measure, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
