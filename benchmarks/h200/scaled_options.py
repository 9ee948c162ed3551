"""Times of the plans of products of 8-bit floats with scales on an H200: each tile, beside the plan
of `scaled_matmul`.

    python -m h200.scaled_options prepare FOLDER           compiles; needs no GPU
    python -m h200.scaled_options run FOLDER RESULTS.json  measures
    python -m h200.scaled_options table RESULTS.json       prints a table

The plans of a product take turns in CUDA graphs, as in `h200.products`, and the results of each are
compared with f64 first.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from h200.plan_times import PLANNED, compiled_for, rates, table, write
from h200.scaled import OUT, PRODUCTS, Scaled, error
from h200.sections import commands


def _plans(product: Scaled) -> dict[str, Any]:
    from fly.kernels.gemm.epilogue import Epilogue
    from fly.kernels.gemm.warpgroups.warpgroup_choices import SCALED_TILES, scaled_plan

    a, b, *_ = product.operands("cpu")
    planned = scaled_plan(a[None], b[None], Epilogue("bf16", 1))
    made = {PLANNED: planned}
    for rows, columns in SCALED_TILES:
        whole = {"splits": 1, "out": "bf16", "lines": 1}
        made[f"{rows}×{columns}"] = planned._replace(rows=rows, columns=columns, **whole)
    return made


def _operands(product: Scaled, place: str) -> tuple[torch.Tensor, ...]:
    """As the kernel takes them: matrices of a batch, and what is not used as the bias."""
    a, b, scale_a, scale_b = product.operands(place)
    return a[None], b[None], scale_a[None], scale_b[None], scale_a[None]


def prepare(folder: Path) -> None:
    """Writes an image for each plan, and cases.json."""
    from fly.kernels.gemm.epilogue import Epilogue
    from fly.kernels.gemm.scaled.scaled_warpgroup_gemm import scaled_warpgroup_gemm

    small = _operands(Scaled(256, 256, 256), "cpu")

    def compiled(plan: Any) -> Any:
        return compiled_for(scaled_warpgroup_gemm, *small, plan, Epilogue("bf16", 1))

    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        write(folder, ((product, _plans(product)) for product in PRODUCTS), compiled)


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each product: the greatest error and the rates of each plan."""
    from fly.call.loading import load

    torch.manual_seed(0)
    rows = []
    for case in json.loads((folder / "cases.json").read_text()):
        product = Scaled(*case["extents"])
        inputs = product.operands("cuda")
        given = *(one[None] for one in inputs), inputs[2][None]
        ways = {
            name: partial(load(str(folder / file)), *given) for name, file in case["files"].items()
        }
        errors = {name: error(inputs, way()) for name, way in ways.items()}
        cublas = partial(torch._scaled_mm, *inputs, out_dtype=OUT)
        measured = rates(product.flops, {**ways, "cuBLAS": cublas})
        rows.append({"name": product.name, "errors": errors, **measured})
        print(rows[-1], flush=True)
        del inputs, given, ways, cublas
        torch.cuda.empty_cache()
    return rows


def main(words: list[str]) -> int:
    return commands(words, __doc__, prepare, measure, table, print)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
