"""See `h200_attention`."""

from __future__ import annotations

import json
import math
import os
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
# Weights and results are rounded to the type.
ERRORS = {"bf16": 2**-6, "f16": 2**-9}


class _Recorded(Exception):
    """Ends a call before it runs anything."""


def prepare(folder: Path) -> None:
    """Writes an image for each kernel, and cases.json."""
    from fly.call.compiled import Compiled
    from fly.kernels.attention.problem import Problem
    from fly.kernels.attention.warpgroup_forward import warpgroup_attention

    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for kind, dtype in TYPES.items():
        for d in (64, 128):
            for causal in (False, True):
                seen: list[Any] = []

                def record(self: Any, *_: Any, kept: list[Any] = seen, **__: Any) -> Any:
                    kept.append(self)
                    raise _Recorded

                x = torch.empty(1, 2, 256, d, dtype=dtype)
                recording = patch.object(Compiled, "run_viewed", record)
                with patch.dict(os.environ, FLY_TARGET="sm_90a"), recording, suppress(_Recorded):
                    warpgroup_attention(x, x, x, 0.125, Problem(d, causal, False))
                row = {"file": f"{len(rows)}.image", "kind": kind, "d": d, "causal": causal}
                seen[0].save(folder / row["file"])
                rows.append(row)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))
    print(len(rows), "kernels")


def expected(q: Any, k: Any, v: Any, scale: float, causal: bool) -> tuple[Any, Any]:
    """Results, and the logarithms of sums, in f64."""
    q, k, v = q.double(), k.double(), v.double()
    k, v = (one.repeat_interleave(q.shape[1] // k.shape[1], 1) for one in (k, v))
    scores = q @ k.transpose(2, 3) * scale
    if causal:
        queries, keys = scores.shape[2:]
        hidden = torch.ones_like(scores).triu(1 + keys - queries).bool()
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v, torch.logsumexp(scores, -1)


def run(folder: Path, count: int, seed: int = 0) -> int:
    """Runs all kernels with random shapes; 1 if a result is wrong."""
    from fly.call.loading import load

    rows = json.loads((folder / "cases.json").read_text())
    random_, wrong, worst = random.Random(seed), 0, {}
    torch.manual_seed(seed)
    for row in rows:
        compiled, dtype = load(str(folder / row["file"])), TYPES[row["kind"]]
        for _ in range(count):
            kv_heads = random_.randint(1, 4)
            shape = random_.randint(1, 5), kv_heads * random_.randint(1, 12), kv_heads
            lengths = [random_.choice((random_.randint(1, 160), random_.randint(1, 900)))]
            lengths.append(random_.choice((lengths[0], random_.randint(1, 1200))))
            q = torch.randn(shape[0], shape[1], lengths[0], row["d"], device="cuda").to(dtype)
            k, v = (
                torch.randn(shape[0], kv_heads, lengths[1], row["d"], device="cuda").to(dtype)
                for _ in range(2)
            )
            scale = random_.choice((1.0, 2.5)) / math.sqrt(row["d"])
            out, lse = compiled(q, k, v, scale)
            right, sums = expected(q, k, v, scale, row["causal"])
            error = (out.double() - right).abs().max().item()
            same = torch.isneginf(sums) == torch.isneginf(lse)
            of_sums = torch.nan_to_num(lse.double() - sums, 0, 0, 0).abs().max().item()
            worst[row["kind"]] = max(worst.get(row["kind"], 0.0), error)
            if not (error <= ERRORS[row["kind"]] and of_sums < 1e-4 and same.all()):
                wrong += 1
                print("wrong:", error, of_sums, (*shape, *lengths), row, flush=True)
    print(f"{len(rows)} kernels, {len(rows) * count} calls, {wrong} wrong")
    print("greatest errors:", {kind: f"{error:.1e}" for kind, error in worst.items()})
    return int(wrong > 0)


def main(words: list[str]) -> int:
    if words[:1] == ["prepare"] and len(words) == 2:
        prepare(Path(words[1]))
        return 0
    if words[:1] == ["run"] and len(words) in (2, 3):
        return run(Path(words[1]), int(words[2]) if words[2:] else 100)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
