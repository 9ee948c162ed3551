"""Times of the options of the product of warp groups on an H200: clusters of blocks that share a
tile of B, and the last tiles divided among all blocks (stream-K), beside the plan of `matmul`.

    python -m h200.product_options prepare FOLDER           compiles; needs no GPU
    python -m h200.product_options run FOLDER RESULTS.json  measures
    python -m h200.product_options table RESULTS.json       prints a table

A row is a product of bf16. Its options take turns in CUDA graphs, as in `h200.products`, and the
results of each are compared with f64 first. A split plan divides K among blocks, and a second
kernel adds the parts.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from h200.plan_times import PLANNED, compiled_for, rates, table, write
from h200.products import Product, error
from h200.sections import commands

# Squares; tiles that are a little more than whole waves of 132; few tiles with a long K.
SQUARES = tuple((edge, edge, edge) for edge in (2048, 3072, 4096, 8192, 16384))
WAVES = ((3072, 3072, 16384), (4224, 4352, 4096), (2560, 2560, 8192))
FEW = ((512, 512, 65536), (8192, 128, 8192), (128, 8192, 8192), (16, 8192, 8192))
SMALL = {"rows": 64, "columns": 128}
# Fields of plans.
LARGE_OPTIONS: dict[str, dict[str, Any]] = {
    "stream": {"stream": True},
    "192 columns": {"columns": 192},
    "192 columns, stream": {"columns": 192, "stream": True},
    "cluster 2": {"cluster": 2},
    "cluster 2, stream": {"cluster": 2, "stream": True},
}
FEW_OPTIONS: dict[str, dict[str, Any]] = {
    "64×128": SMALL,
    "64×128, cluster 2": {**SMALL, "cluster": 2},
    "64×128, cluster 4": {**SMALL, "cluster": 4},
    "64×128, stream": {**SMALL, "stream": True},
    "64×128, cluster 2, stream": {**SMALL, "cluster": 2, "stream": True},
    "64×128, split 2": {**SMALL, "splits": 2},
    "64×128, split 4": {**SMALL, "splits": 4},
    "64×256, split 4": {"rows": 64, "splits": 4},
    "128×128, split 2": {"columns": 128, "splits": 2},
}
EXTENTS = dict.fromkeys((*SQUARES, *WAVES), LARGE_OPTIONS) | dict.fromkeys(FEW, FEW_OPTIONS)


def _plans(product: Product, options: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The plan that `matmul` has for a product, and its largest tile with each option."""
    from fly.kernels.gemm.epilogue import Epilogue
    from fly.kernels.gemm.warpgroups.warpgroup_choices import lines_of, warpgroup_plan
    from fly.kernels.gemm.warpgroups.warpgroup_plans import WarpgroupPlan

    a, b = product.operands(lambda *shape: torch.empty((1, *shape), dtype=torch.bfloat16)[0])
    planned = warpgroup_plan(a[None], b[None], Epilogue("bf16", 1))
    plain = WarpgroupPlan("bf16", "bf16", band=planned.band)
    made = {PLANNED: planned}
    for name, fields in options.items():
        plan = plain._replace(**fields)
        if plan.splits > 1:
            plan = plan._replace(out="f32", lines=lines_of(product.n, True))
        made[name] = plan
    return made


def prepare(folder: Path) -> None:
    """Writes an image for each plan, and cases.json."""
    from fly.kernels.gemm.epilogue import Epilogue
    from fly.kernels.gemm.warpgroups.warpgroup_gemm import warpgroup_gemm

    a = torch.empty(1, 256, 256, dtype=torch.bfloat16)

    def compiled(plan: Any) -> Any:
        given = (a, a.transpose(1, 2), a, a, 1.0, 1.0, plan, Epilogue("bf16", 1))
        return compiled_for(warpgroup_gemm, *given)

    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        cases = (
            (extents, _plans(Product("bf16", *extents), options))
            for extents, options in EXTENTS.items()
        )
        write(folder, cases, compiled)


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each product: the greatest error and the rates of each option."""
    from fly.call.loading import load

    torch.manual_seed(0)
    rows = []
    for case in json.loads((folder / "cases.json").read_text()):
        rows.append(_measured(case, load, folder))
        print(rows[-1], flush=True)
        torch.cuda.empty_cache()
    return rows


def _measured(case: dict[str, Any], load: Any, folder: Path) -> dict[str, Any]:
    product = Product("bf16", *case["extents"])
    a, b = product.operands(lambda *shape: torch.randn(shape, device="cuda").bfloat16())
    given = (a[None], b[None], a[None], a[None], 1.0, 1.0)
    images = {name: load(str(folder / file)) for name, file in case["files"].items()}
    ways = {name: lambda image=image: image(*given) for name, image in images.items()}
    errors = {name: error(product, [a, b], way()) for name, way in ways.items()}
    measured = rates(product.flops, {**ways, "cuBLAS": lambda: torch.mm(a, b)})
    return {"name": product.name, "errors": errors, **measured}


def main(words: list[str]) -> int:
    return commands(words, __doc__, prepare, measure, table, print)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
