"""Products by `mma.sync`: random shapes beside f64."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "i8": torch.int8}
OUT = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i32": torch.int32}
ROUNDINGS = {"bf16": 2**-8, "f16": 2**-11, "f32": 2**-19, "i32": 0.0}


def plans() -> Iterator[tuple[Any, Any]]:
    from fly.kernels.gemm.epilogue import Epilogue
    from fly.kernels.gemm.warps.warp_plans import TILES, WarpPlan

    for tile in TILES:
        for element, out in (("bf16", "bf16"), ("f16", "f32"), ("i8", "i32")):
            sums = "i32" if element == "i8" else "f32"
            for whole in (True, False):
                plan = WarpPlan(element, out, sums, *tile, whole=whole)
                yield plan, Epilogue(out, 1)
        ragged = WarpPlan(
            "bf16", "bf16", "f32", *tile, pad_a=True, pad_b=True, whole=False, vectors=False
        )
        yield ragged, Epilogue("bf16", 1, True, True, True, "silu")
        yield WarpPlan("f16", "f32", "f32", *tile, splits=3, whole=False), Epilogue("f16", 1, True)


def prepare(folder: Path, stopped: type[Exception]) -> int:
    """Writes an image for each plan, and warps.json; returns how many. `stopped` ends a call before
    it runs anything."""
    from fly.call.compiled import Compiled
    from fly.kernels.gemm.warps.warp_gemm import warp_gemm

    rows = []
    for number, (plan, epilogue) in enumerate(plans()):
        seen: list[Any] = []

        def record(self: Any, *_: Any, kept: list[Any] = seen, **__: Any) -> Any:
            kept.append(self)
            raise stopped

        inputs = arguments(plan._asdict(), epilogue._asdict(), 1, 64, 64, 128, "cpu")
        with patch.object(Compiled, "run_viewed", record), suppress(stopped):
            warp_gemm(*inputs, plan, epilogue)
        file = f"warps-{number}.image"
        seen[0].save(folder / file)
        rows.append({"file": file, "plan": plan._asdict(), "epilogue": epilogue._asdict()})
    (folder / "warps.json").write_text(json.dumps(rows, indent=1))
    return len(rows)


def arguments(
    plan: dict[str, Any], epilogue: dict[str, Any], count: int, m: int, n: int, k: int, place: str
) -> tuple[Any, ...]:
    """A, B, bias, addend, alpha and beta."""
    dtype, out = TYPES[plan["element"]], OUT[epilogue["out"]]

    def new(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=place) * (30 if dtype is torch.int8 else 1)

    a, b = new(count, m, k).to(dtype), new(count, n, k).to(dtype).transpose(1, 2)
    bias = new(n).to(out) if epilogue["bias"] else a
    addend = new(count, m, n).to(out) if epilogue["addend"] else a
    return a, b, bias, addend, 0.75 if epilogue["scaled"] else 1.0, 0.5


def run(folder: Path, count: int, random_: random.Random, expected: Any) -> int:
    """Runs all kernels with random shapes; returns how many results are wrong."""
    from fly.call.loading import load

    rows, wrong, worst = json.loads((folder / "warps.json").read_text()), 0, 0.0
    for row in rows:
        compiled, plan, epilogue = load(str(folder / row["file"])), row["plan"], row["epilogue"]
        size = TYPES[plan["element"]].itemsize
        for _ in range(count):
            batches = random_.randint(1, 3)
            m, n, k = (
                random_.choice((random_.randint(1, 40), random_.randint(1, 700))) for _ in "mnk"
            )
            if not plan["pad_a"]:
                k = -(-k * size // 16) * 16 // size
            if plan["whole"]:
                k = -(-k * size // 128) * 128 // size
            if plan["vectors"]:
                n = -(-n // 16) * 16
            inputs = arguments(plan, epilogue, batches, m, n, k, "cuda")
            found, right = compiled(*inputs).double(), expected(epilogue, *inputs)
            error = ((found - right).abs().max() / right.abs().max().clamp(min=1e-3)).item()
            worst = max(worst, error)
            if not error <= ROUNDINGS[epilogue["out"]] + (2**-18 if plan["sum"] == "f32" else 0):
                wrong += 1
                print("wrong:", error, (batches, m, n, k), plan, epilogue, flush=True)
    print(
        f"by mma.sync: {len(rows)} kernels, {len(rows) * count} products, {wrong} wrong,", end=" "
    )
    print(f"greatest error {worst:.1e}")
    return wrong
