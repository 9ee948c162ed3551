"""Times of `fly.kernels.matmul` on an H200 beside cuBLAS, called by torch.

    python -m h200.products prepare FOLDER           compiles; needs no GPU
    python -m h200.products run FOLDER RESULTS.json  measures
    python -m h200.products table RESULTS.json       writes the table of benchmarks/results/h200.md

Each product is called once here, which compiles it for its plan, and the call is recorded. On the
GPU, CUDA graphs of `IN_GRAPH` calls of both take turns. The table has the median and the quartiles
of the rate, the greatest errors beside f64 (of a part of the rows) as shares of the greatest
result, and what a call takes on the host, without a graph, where nothing waits for the device.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from h200.library import _argument, recorded
from h200.sections import commands

IN_GRAPH, REPEATS, WARM_UP = 4, 30, 3
CHECKED = 256  # rows of C
BURST = 100  # calls on the host
HEAD = "## Products of matrices\n"
TYPES = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "tf32": torch.float32,
    "e4m3": torch.float8_e4m3fn,
}


class Product(NamedTuple):
    """m × k times k × n of a type. `form` is "nt" where B is the transpose of an n × k matrix, "nn"
    where its rows are along n, "tn" where A's columns are along k too."""

    kind: str
    m: int
    n: int
    k: int
    form: str = "nt"

    @property
    def name(self) -> str:
        return f"{self.kind} {self.m}×{self.n}×{self.k} {self.form}"

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    def operands(self, make: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        """A and B, in memory as `form` says; `make(rows, columns)` makes a matrix."""
        a = make(self.k, self.m).t() if self.form[0] == "t" else make(self.m, self.k)
        b = make(self.n, self.k).t() if self.form[1] == "t" else make(self.k, self.n)
        return [a, b]

    def ours(self, a: torch.Tensor, b: torch.Tensor) -> Any:
        from fly.kernels import matmul

        out = torch.bfloat16 if self.kind == "e4m3" else None
        return matmul(a, b, out_dtype=out, tf32=self.kind == "tf32")

    def torch(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """cuBLAS: with 8-bit floats by fast accumulation, with f32 in TF32."""
        if self.kind == "e4m3":
            one = torch.ones((), device=a.device)
            kind = torch.bfloat16
            return torch._scaled_mm(a, b, one, one, out_dtype=kind, use_fast_accum=True)
        return torch.mm(a, b)


SQUARES = tuple(
    Product(kind, edge, edge, edge) for kind in TYPES for edge in (2048, 4096, 8192, 16384)
)
FORMS = tuple(Product("bf16", 8192, 8192, 8192, form) for form in ("nn", "tn"))
OTHERS = tuple(
    Product("bf16", *extents)
    for extents in (
        (4097, 4095, 4093),
        (512, 512, 65536),
        (8192, 128, 8192),
        (128, 8192, 8192),
        (16, 8192, 8192),
    )
)
PRODUCTS = (*SQUARES, *FORMS, *OTHERS)


def prepare(folder: Path, products: Sequence[Product] = PRODUCTS) -> None:
    """Writes an image for each plan, and cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, files = [], {}
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        for product in products:
            kind = TYPES[product.kind]
            inputs = product.operands(lambda *shape, kind=kind: torch.empty(shape, dtype=kind))
            compiled, arguments = recorded(product, inputs)  # type: ignore[arg-type]
            file = files.setdefault(compiled.image.digest, f"{len(files)}.image")
            compiled.save(folder / file)
            rows.append({"name": product.name, "file": file, "arguments": arguments})
            print(product.name, file, flush=True)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each product."""
    from fly.call.loading import load

    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    rows = []
    documents = {row["name"]: row for row in json.loads((folder / "cases.json").read_text())}
    images: dict[str, Any] = {}
    for product in PRODUCTS:
        row = documents[product.name]
        kind = TYPES[product.kind]
        inputs = product.operands(
            lambda *shape, kind=kind: torch.randn(shape, device="cuda").to(kind)
        )
        if row["file"] not in images:
            images[row["file"]] = load(str(folder / row["file"]))
        compiled = images[row["file"]]
        arguments = [_argument(one, inputs) for one in row["arguments"]]

        def ours(compiled: Any = compiled, arguments: list[Any] = arguments) -> Any:
            return compiled(*arguments)

        def torchs(product: Product = product, inputs: list[Any] = inputs) -> Any:
            return product.torch(*inputs)

        errors = [error(product, inputs, one()) for one in (ours, torchs)]
        times = seconds({"ours": ours, "torch": torchs})
        found: dict[str, Any] = {"name": product.name, "kind": product.kind, "errors": errors}
        for way, measured in times.items():
            low, _, high = quantiles(measured, n=4)
            rates = [product.flops / t / 1e12 for t in (median(measured), high, low)]
            found[way] = rates
        found["host"] = on_host(ours)
        rows.append(found)
        print(found, flush=True)
        del inputs, arguments, ours, torchs, compiled
        torch.cuda.empty_cache()
    return rows


def error(product: Product, inputs: list[torch.Tensor], made: Any) -> float:
    """The greatest error of some rows, as a share of the greatest result."""
    a, b = inputs
    made = made.reshape(product.m, product.n)[:CHECKED].double()
    exact = a[:CHECKED].double() @ b.double()
    return ((made - exact).abs().max() / exact.abs().max()).item()


def seconds(ways: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Seconds of a call, for each way and repeat. The ways take turns, in another order each time:
    what takes less power leaves more of it to the one behind."""
    graphs = {name: _captured(call) for name, call in ways.items()}
    found: dict[str, list[float]] = {name: [] for name in ways}
    order, shuffled = list(graphs), random.Random(0)
    for _ in range(REPEATS):
        shuffled.shuffle(order)
        for name in order:
            graph = graphs[name]
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            found[name].append(start.elapsed_time(end) / 1e3 / IN_GRAPH)
    return found


def _captured(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    for _ in range(WARM_UP):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(IN_GRAPH):
            call()
    return graph


def on_host(call: Callable[[], Any]) -> float:
    """µs that a call takes on the host, the least of some bursts: the device's queue has room."""
    least = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(BURST):
            call()
        least = min(least, (time.perf_counter() - start) / BURST)
    torch.cuda.synchronize()
    return least * 1e6


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    about = ", ".join(document["about"].values())
    lines = [
        f"{HEAD}\n{about}. TFLOP/s: medians, and quartiles, of graphs of {IN_GRAPH} calls that",
        " take\nturns. Errors are those of the first rows beside f64, as shares of the greatest",
        " result.\n\n",
        "| product | ours | quartiles | cuBLAS | quartiles | of cuBLAS | error | cuBLAS's |\n",
        "|---|---:|---|---:|---|---:|---:|---:|\n",
    ]
    shares: dict[str, list[float]] = {}
    for row in document["rows"]:
        cells = []
        for way in ("ours", "torch"):
            middle, low, high = row[way]
            cells += [f"{middle:,.0f}", f"{low:,.0f}–{high:,.0f}"]
        share = row["ours"][0] / row["torch"][0]
        if len(set(row["name"].split()[1].split("×"))) == 1:
            shares.setdefault(row["kind"], []).append(share)
        errors = " | ".join(f"{one:.1e}" for one in row["errors"])
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {share:.3f} | {errors} |\n")
    medians = ", ".join(f"{kind} {median(found):.3f}" for kind, found in shares.items())
    lines.append(f"\nMedians of the squares' shares: {medians}.\n")
    return "".join(lines)


def main(words: list[str]) -> int:
    return commands(words, __doc__, prepare, measure, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
