"""Products of 8-bit floats with scales of blocks: random shapes beside f64."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

BLOCK = 128
TYPES = {"f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2}
OUT = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
# Of the result's type, and of the sums of a block of 8-bit products, which have about 14 bits.
ROUNDINGS = {"bf16": 2**-8, "f16": 2**-11, "f32": 2**-20}
SUMS = 2**-10


def plans() -> Iterator[tuple[Any, Any]]:
    from fly.kernels.gemm.epilogue import Epilogue
    from fly.kernels.gemm.warpgroups.warpgroup_choices import SCALED_TILES
    from fly.kernels.gemm.warpgroups.warpgroup_plans import WarpgroupPlan

    for tile in SCALED_TILES:
        for element in TYPES:
            for out in OUT:
                yield WarpgroupPlan(element, out, *tile), Epilogue(out, 1)
        padded = WarpgroupPlan("f8E4M3FN", "bf16", *tile, pad_a=True, pad_b=True, tma_store=False)
        yield padded, Epilogue("bf16", 1)
        split = WarpgroupPlan("f8E4M3FN", "f32", *tile, splits=3)
        yield split, Epilogue("bf16", 1, bias=True, activation="relu")
        yield WarpgroupPlan("f8E4M3FN", "bf16", *tile), Epilogue("bf16", 1, True)


def prepare(folder: Path, stopped: type[Exception]) -> int:
    """Writes an image for each plan, and scaled.json; returns how many. `stopped` ends a call
    before it runs anything."""
    from fly.call.compiled import Compiled
    from fly.kernels.gemm.scaled.scaled_warpgroup_gemm import scaled_warpgroup_gemm

    rows = []
    for number, (plan, epilogue) in enumerate(plans()):
        seen: list[Any] = []

        def record(self: Any, *_: Any, kept: list[Any] = seen, **__: Any) -> Any:
            kept.append(self)
            raise stopped

        inputs = arguments(plan.element, epilogue.out, 64, 64, 256, "cpu")
        with patch.object(Compiled, "run_viewed", record), suppress(stopped):
            scaled_warpgroup_gemm(*inputs, plan, epilogue)
        file = f"scaled-{number}.image"
        seen[0].save(folder / file)
        rows.append({"file": file, "plan": plan._asdict(), "epilogue": epilogue._asdict()})
    (folder / "scaled.json").write_text(json.dumps(rows, indent=1))
    return len(rows)


def arguments(element: str, out: str, m: int, n: int, k: int, place: str) -> tuple[Any, ...]:
    """A, B, scales and a bias; rows are first in memory, and for scales of A columns are."""

    def new(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=place)

    blocks, columns = -(-k // BLOCK), -(-n // BLOCK)
    a, b = new(1, m, k).to(TYPES[element]), new(1, n, k).to(TYPES[element]).transpose(1, 2)
    scale_a, scale_b = new(1, blocks, m).abs().transpose(1, 2), new(1, blocks, columns)
    return a, b, scale_a, scale_b, new(n).to(OUT[out])


def expected(epilogue: dict[str, Any], a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any):
    """The results in f64."""
    k, n = b.shape[1:]
    wide = scale_b.double().repeat_interleave(BLOCK, 1)[:, :k]
    wide = b.double() * wide.repeat_interleave(BLOCK, 2)[:, :, :n]
    made = (a.double() * scale_a.double().repeat_interleave(BLOCK, 2)[:, :, :k]) @ wide
    if epilogue["bias"]:
        made = made + bias.double()
    return made.relu() if epilogue["activation"] else made


def run(folder: Path, count: int, random_: random.Random) -> int:
    """Runs all kernels with random shapes; returns how many results are wrong."""
    from fly.call.loading import load

    rows, wrong, worst = json.loads((folder / "scaled.json").read_text()), 0, 0.0
    for row in rows:
        compiled, plan, epilogue = load(str(folder / row["file"])), row["plan"], row["epilogue"]
        for _ in range(count):
            m, n, k = (
                random_.choice((random_.randint(1, 40), random_.randint(1, 900))) for _ in "mnk"
            )
            if not plan["pad_a"]:
                k = -(-k // 16) * 16
            if plan["tma_store"]:
                n = -(-n // 8) * 8
            inputs = arguments(plan["element"], epilogue["out"], m, n, k, "cuda")
            found, right = compiled(*inputs).double(), expected(epilogue, *inputs)
            error = ((found - right).abs().max() / right.abs().max().clamp(min=1e-3)).item()
            worst = max(worst, error)
            if not error <= ROUNDINGS[epilogue["out"]] + SUMS:
                wrong += 1
                print("wrong:", error, (m, n, k), plan, epilogue, flush=True)
    print(
        f"with scales: {len(rows)} kernels, {len(rows) * count} products, {wrong} wrong,", end=" "
    )
    print(f"greatest error {worst:.1e}")
    return wrong
