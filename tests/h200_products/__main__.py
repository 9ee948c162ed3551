"""See `h200_products`."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from h200_products import scaled, warps

TYPES = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f32": torch.float32,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
}
# The error of results beside the greatest one: a rounding of the result, and of sums. Sums of
# products of 8-bit floats have about 14 bits. Operands of f32 are rounded to 11 bits, to nearest.
ROUNDINGS = {"bf16": 2**-8, "f16": 2**-11, "f32": 2**-20}
SUMS = {"f8E4M3FN": 2**-8, "f8E5M2": 2**-8, "f32": 2**-10}


def plans() -> Iterator[tuple[Any, Any]]:
    """Plans and epilogues: all types and layouts, ways to load and store, and epilogues."""
    from fly.kernels.gemm.epilogue import Epilogue
    from fly.kernels.gemm.warpgroups.warpgroup_choices import TILES
    from fly.kernels.gemm.warpgroups.warpgroup_plans import SUMMED, WarpgroupPlan

    def plan(element: str, out: str, rows: int = 128, columns: int = 256, **fields: Any) -> Any:
        return WarpgroupPlan(element, out, rows, columns, **fields)

    for element in TYPES:
        for out in ("f32",) if element == "f32" else ("bf16", "f32"):
            for tile in TILES:
                yield plan(element, out, *tile), Epilogue(out, 1)
                padded = plan(element, out, *tile, pad_a=True, pad_b=True, tma_store=False)
                yield padded, Epilogue(out, 1)
    for element in ("bf16", "f16"):
        for a in (True, False):
            for b in (True, False):
                yield plan(element, element, a_along_k=a, b_along_k=b), Epilogue(element, 1)
                whole = {"a_along_k": a, "b_along_k": b, "pad_a": True, "pad_b": True}
                narrow = plan(element, element, 128, 128, tma_store=False, **whole)
                yield narrow, Epilogue(element, 1)
    for splits in (2, 5):
        for lines in (1, 4, SUMMED):
            yield plan("bf16", "f32", splits=splits, lines=lines), Epilogue("bf16", 1)
        yield plan("f16", "f32", 64, splits=splits, tma_store=False), Epilogue("f16", 1)
        yield plan("f32", "f32", 64, 128, splits=splits, lines=2), Epilogue("f32", 1)
    for activation in ("relu", "gelu", "silu"):
        epilogue = Epilogue("bf16", 1, True, True, True, activation)
        yield plan("bf16", "bf16"), epilogue
        yield plan("bf16", "bf16", tma_store=False), epilogue
    yield plan("bf16", "f32", splits=3), Epilogue("bf16", 1, True, True, True, "gelu")
    # Blocks of a cluster share a tile of B; the last tiles are divided among all blocks.
    for tile in TILES:
        for cluster in (1, 2, 4):
            for stream in (False, True)[cluster == 1 :]:
                options = {"cluster": cluster, "stream": stream}
                yield plan("bf16", "bf16", *tile, **options), Epilogue("bf16", 1)
    for cluster in (1, 2):
        options = {"cluster": cluster, "stream": True, "b_along_k": False}
        yield plan("f16", "f16", pad_a=True, tma_store=False, **options), Epilogue("f16", 1)
    yield plan("f32", "f32", cluster=2), Epilogue("f32", 1)
    yield plan("f8E4M3FN", "bf16", cluster=2, stream=True), Epilogue("bf16", 1)
    yield plan("bf16", "f32", cluster=2, splits=3), Epilogue("bf16", 1, True, True, True, "gelu")


class _Recorded(Exception):
    """Ends a call before it runs anything."""


def prepare(folder: Path) -> None:
    """Writes an image for each plan, and cases.json."""
    from fly.call.compiled import Compiled
    from fly.kernels.gemm.warpgroups.warpgroup_gemm import warpgroup_gemm

    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        for number, (plan, epilogue) in enumerate(plans()):
            seen: list[Any] = []

            def record(self: Any, *_: Any, kept: list[Any] = seen, **__: Any) -> Any:
                kept.append(self)
                raise _Recorded

            inputs = arguments(plan._asdict(), epilogue._asdict(), 1, 64, 64, 64, "cpu")
            with patch.object(Compiled, "run_viewed", record), suppress(_Recorded):
                warpgroup_gemm(*inputs, plan, epilogue)
            file = f"{number}.image"
            seen[0].save(folder / file)
            rows.append({"file": file, "plan": plan._asdict(), "epilogue": epilogue._asdict()})
        others = scaled.prepare(folder, _Recorded) + warps.prepare(folder, _Recorded)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))
    print(len(rows) + others, "kernels")


def _matrices(count: int, rows: int, columns: int, dtype: Any, place: str) -> torch.Tensor:
    return torch.randn(count, rows, columns, device=place).to(dtype)


def arguments(
    plan: dict[str, Any], epilogue: dict[str, Any], count: int, m: int, n: int, k: int, place: str
) -> tuple[Any, ...]:
    """Random operands in the plan's layout, bias, addend, alpha and beta."""
    dtype, out = TYPES[plan["element"]], TYPES[epilogue["out"]]
    a = _matrices(count, *((m, k) if plan["a_along_k"] else (k, m)), dtype, place)
    b = _matrices(count, *((n, k) if plan["b_along_k"] else (k, n)), dtype, place)
    a = a if plan["a_along_k"] else a.transpose(1, 2)
    b = b.transpose(1, 2) if plan["b_along_k"] else b
    bias = torch.randn(n, device=place).to(out) if epilogue["bias"] else a
    addend = _matrices(count, m, n, out, place) if epilogue["addend"] else a
    return a, b, bias, addend, 0.75 if epilogue["scaled"] else 1.0, 0.5


def expected(epilogue: dict[str, Any], a: Any, b: Any, bias: Any, addend: Any, *factors: float):
    """The results in f64."""
    made = (a.double() @ b.double()) * factors[0]
    if epilogue["addend"]:
        made = made + addend.double() * factors[1]
    if epilogue["bias"]:
        made = made + bias.double()
    name = epilogue["activation"]
    return getattr(torch.nn.functional, name)(made) if name else made


def extents(plan: dict[str, Any], random_: random.Random) -> tuple[int, int, int, int]:
    """Batches, M, N and K that the plan allows. Some have many tiles for each block, with few
    steps along K, so that tiles are stored one right after the other."""

    def some() -> int:
        return random_.choice((random_.randint(1, 40), random_.randint(1, 700)))

    count, m, n, k = random_.randint(1, 3), some(), some(), some() + random_.randint(0, 900)
    if random_.random() < 0.3:
        m, n, k = random_.randint(600, 1500), random_.randint(600, 1500), random_.randint(1, 200)
    unit = 16 // TYPES[plan["element"]].itemsize
    if not plan["pad_a"]:
        k, m = (-(-k // unit) * unit, m) if plan["a_along_k"] else (k, -(-m // unit) * unit)
    if not plan["pad_b"]:
        k, n = (-(-k // unit) * unit, n) if plan["b_along_k"] else (k, -(-n // unit) * unit)
    if plan["tma_store"]:
        unit = 16 // TYPES[plan["out"]].itemsize
        n = -(-n // unit) * unit
    return count, m, n, k


def run(folder: Path, count: int, seed: int = 0) -> int:
    """Runs all kernels with random shapes; 1 if a result is wrong."""
    from fly.call.loading import load

    rows = json.loads((folder / "cases.json").read_text())
    random_, wrong, worst = random.Random(seed), 0, {}
    torch.manual_seed(seed)
    for row in rows:
        compiled, plan, epilogue = load(str(folder / row["file"])), row["plan"], row["epilogue"]
        for _ in range(count):
            shape = extents(plan, random_)
            inputs = arguments(plan, epilogue, *shape, "cuda")
            found = compiled(*inputs).double()
            right = expected(epilogue, *inputs)
            error = ((found - right).abs().max() / right.abs().max().clamp(min=1e-3)).item()
            most = ROUNDINGS[epilogue["out"]] + SUMS.get(plan["element"], 2**-18)
            kind = f"{plan['element']} → {epilogue['out']}"
            worst[kind] = max(worst.get(kind, 0.0), error)
            if not error <= most:
                wrong += 1
                print("wrong:", error, shape, plan, epilogue, flush=True)
    print(f"{len(rows)} kernels, {len(rows) * count} products, {wrong} wrong")
    print("greatest errors:", {kind: f"{error:.1e}" for kind, error in worst.items()})
    wrong += scaled.run(folder, count, random_)
    wrong += warps.run(folder, count, random_, expected)
    return int(wrong > 0)


def main(words: list[str]) -> int:
    if words[:1] == ["prepare"] and len(words) == 2:
        prepare(Path(words[1]))
        return 0
    if words[:1] == ["run"] and len(words) in (2, 3):
        return run(Path(words[1]), int(words[2]) if words[2:] else 40)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
