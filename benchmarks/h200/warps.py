"""Times of products by `mma.sync` on an H200, the way of `fly.kernels.matmul` on chips without
`wgmma`, beside cuBLAS, which uses `wgmma`.

    python -m h200.warps prepare FOLDER           compiles; needs no GPU
    python -m h200.warps run FOLDER RESULTS.json  measures
    python -m h200.warps table RESULTS.json       writes the section of benchmarks/results/h200.md

The kernels are compiled for sm_90a, with the plan for its shared memory.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from unittest.mock import patch

import torch

from h200 import products
from h200.library import _argument
from h200.products import TYPES, Product, error, seconds
from h200.sections import commands

HEAD = "## Products by `mma.sync`\n"
PRODUCTS = (
    *(Product("bf16", edge, edge, edge) for edge in (2048, 4096, 8192, 16384)),
    Product("f16", 4096, 4096, 4096),
    Product("f16", 8192, 8192, 8192),
    Product("bf16", 4097, 4095, 4093),
    Product("bf16", 128, 8192, 8192),
)


def prepare(folder: Path) -> None:
    """Writes an image for each plan, and cases.json."""
    from fly.kernels.gemm import matrix_product

    with patch.object(matrix_product, "multiplies", lambda *_: False):
        products.prepare(folder, PRODUCTS)


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each product."""
    from fly.call.loading import load

    torch.manual_seed(0)
    rows = []
    for product, row in zip(PRODUCTS, json.loads((folder / "cases.json").read_text()), strict=True):
        kind = TYPES[product.kind]
        inputs = product.operands(
            lambda *shape, kind=kind: torch.randn(shape, device="cuda").to(kind)
        )
        compiled = load(str(folder / row["file"]))
        arguments = [_argument(one, inputs) for one in row["arguments"]]
        ways = {
            "ours": lambda compiled=compiled, given=arguments: compiled(*given),
            "torch": lambda product=product, inputs=inputs: product.torch(*inputs),
        }
        found: dict[str, Any] = {"name": product.name}
        found["errors"] = [error(product, inputs, call()) for call in ways.values()]
        for way, measured in seconds(ways).items():
            low, _, high = quantiles(measured, n=4)
            found[way] = [product.flops / t / 1e12 for t in (median(measured), high, low)]
        rows.append(found)
        print(found, flush=True)
        del inputs, arguments, ways, compiled
        torch.cuda.empty_cache()
    return rows


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    about = ", ".join(document["about"].values())
    lines = [
        f"{HEAD}\n{about}. TFLOP/s: medians, and quartiles. The rate of `mma.sync` is half that of",
        " `wgmma` on Hopper,\nwhich cuBLAS uses. Errors: of the first rows, beside f64.\n\n",
        "| product | ours | quartiles | cuBLAS | quartiles | of cuBLAS | error | cuBLAS's |\n",
        "|---|---:|---|---:|---|---:|---:|---:|\n",
    ]
    for row in document["rows"]:
        cells = [row["name"]]
        for way in ("ours", "torch"):
            middle, low, high = row[way]
            cells += [f"{middle:,.0f}", f"{low:,.0f}–{high:,.0f}"]
        cells.append(f"{row['ours'][0] / row['torch'][0]:.3f}")
        cells += [f"{one:.1e}" for one in row["errors"]]
        lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)


def main(words: list[str]) -> int:
    return commands(words, __doc__, prepare, measure, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
