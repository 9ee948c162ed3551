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
from statistics import median, quantiles
from typing import Any
from unittest.mock import patch

import torch

from h200.product_options import PLANNED, compiled_for, table
from h200.products import seconds
from h200.scaled import OUT, PRODUCTS, Scaled, error


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

    folder.mkdir(parents=True, exist_ok=True)
    rows, files = [], {}
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        small = _operands(Scaled(256, 256, 256), "cpu")
        for product in PRODUCTS:
            held = {}
            for name, plan in _plans(product).items():
                if plan not in files:
                    files[plan] = f"{len(files)}.image"
                    given = (*small, plan, Epilogue("bf16", 1))
                    compiled_for(scaled_warpgroup_gemm, *given).save(folder / files[plan])
                held[name] = files[plan]
            rows.append({"extents": product, "files": held})
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))
    print(len(files), "kernels")


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
        found: dict[str, Any] = {"name": product.name, "errors": errors}
        cublas = partial(torch._scaled_mm, *inputs, out_dtype=OUT)
        for name, times in seconds({**ways, "cuBLAS": cublas}).items():
            low, _, high = quantiles(times, n=4)
            found[name] = [product.flops / t / 1e12 for t in (median(times), high, low)]
        rows.append(found)
        print(found, flush=True)
        del inputs, given, ways, cublas
        torch.cuda.empty_cache()
    return rows


def main(words: list[str]) -> int:
    match words:
        case ["prepare", folder]:
            prepare(Path(folder))
        case ["run", folder, results]:
            about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
            document = {"about": about, "rows": measure(Path(folder))}
            Path(results).write_text(json.dumps(document, indent=1) + "\n")
        case ["table", results]:
            print(table(json.loads(Path(results).read_text())))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
