"""See `h200_attention`."""

from __future__ import annotations

import json
import math
import os
import random
import sys
from contextlib import suppress
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
# Of numbers up to 1; weights and results are rounded to the type.
ERRORS = {"bf16": 2**-6, "f16": 2**-9}


class _Recorded(Exception):
    """Ends a call before it runs anything."""


# What is tried: forward and backward, of batches and of packed sequences.
KINDS = ("forward", "backward", "packed", "packed_backward")


def prepare(folder: Path) -> None:
    """Writes an image for each kernel, and cases.json."""
    from fly.call.compiled import Compiled

    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for what, kind, d, causal in product(KINDS, TYPES, (64, 128), (False, True)):
        seen: list[Any] = []

        def record(self: Any, *_: Any, kept: list[Any] = seen, **__: Any) -> Any:
            kept.append(self)
            raise _Recorded

        recording = patch.object(Compiled, "run_viewed", record)
        with patch.dict(os.environ, FLY_TARGET="sm_90a"), recording, suppress(_Recorded):
            _call(what, TYPES[kind], d, causal)
        row = {"file": f"{len(rows)}.image", "what": what, "kind": kind, "d": d, "causal": causal}
        seen[0].save(folder / row["file"])
        rows.append(row)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))
    print(len(rows), "kernels")


def _call(what: str, dtype: torch.dtype, d: int, causal: bool) -> None:
    """Calls the function for tensors without values."""
    from fly import kernels

    packed, backward = what.startswith("packed"), what.endswith("backward")
    x = torch.empty((256, 2, d) if packed else (1, 2, 256, d), dtype=dtype)
    sums = torch.empty((2, 256) if packed else (1, 2, 256))
    starts = [torch.zeros(3, dtype=torch.int32) for _ in range(2)] if packed else []
    name = "flash_attention" + "_varlen" * packed + "_backward" * backward
    given = [x, sums, x, x, x, *starts, x, sums] if backward else [x, x, x, *starts]
    getattr(kernels, name)(*given, causal, 0.125)


def expected(q: Any, k: Any, v: Any, scale: float, causal: bool) -> tuple[Any, Any]:
    """Results, and the logarithms of sums, of f64. Differentiable."""
    k, v = (one.repeat_interleave(q.shape[1] // k.shape[1], 1) for one in (k, v))
    scores = q @ k.transpose(2, 3) * scale
    if causal:
        queries, keys = scores.shape[2:]
        hidden = torch.ones_like(scores).triu(1 + keys - queries).bool()
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v, torch.logsumexp(scores, -1)


def gradients(own: list[Any], d_out: Any, d_sums: Any, scale: float, causal: bool) -> list[Any]:
    """Those of q, k and v, in f64. A query that sees no key has none."""
    own = [one.detach().requires_grad_() for one in own]
    out, sums = expected(*own, scale, causal)
    sums = torch.where(sums.isfinite(), sums, 0.0)
    made = torch.autograd.grad((out * d_out).sum() + (sums * d_sums).sum(), own)
    return [torch.nan_to_num(one) for one in made]


class Inputs:
    """Random tensors of sequences: batches × heads × length × d, of one batch if they are packed.
    `spans`: batch, rows of queries and of keys of each sequence."""

    def __init__(self, random_: random.Random, row: dict[str, Any]):
        packed, d, dtype = row["what"].startswith("packed"), row["d"], TYPES[row["kind"]]
        kv_heads = random_.randint(1, 4)
        heads, count = kv_heads * random_.randint(1, 12), random_.randint(1, 5)
        most = 300 if packed else 900
        lengths = [_lengths(random_, most, count, packed) for _ in range(2)]
        if random_.random() < 0.5:
            lengths[1] = lengths[0]
        self.starts = [[0, *accumulate(one)] for one in lengths]
        self.spans = [
            (0, slice(*of_q), slice(*of_k))
            for of_q, of_k in zip(*map(pairwise, self.starts), strict=True)
        ]
        batches, sizes = 1, [max(1, one[-1]) for one in self.starts]
        if not packed:
            batches, sizes = count, [one[0] for one in lengths]
            self.spans = [(one, slice(None), slice(None)) for one in range(count)]
        of_q, of_k = (
            (batches, n, size, d) for n, size in zip((heads, kv_heads), sizes, strict=True)
        )
        self.q, self.d_out = (torch.randn(of_q, device="cuda").to(dtype) for _ in range(2))
        self.k, self.v = (torch.randn(of_k, device="cuda").to(dtype) for _ in range(2))
        self.d_sums = torch.randn(of_q[:3], device="cuda")
        self.scale = random_.choice((1.0, 2.5)) / math.sqrt(d)
        self.name = (batches, heads, kv_heads, *lengths)
        places = (torch.tensor(one, dtype=torch.int32, device="cuda") for one in self.starts)
        self.places = [*places] if packed else []


def _lengths(random_: random.Random, most: int, count: int, various: bool) -> list[int]:
    """Of sequences; all the same unless `various`, when some have no row."""
    made = [
        random_.choice((random_.randint(1, 160), random_.randint(1, most))) for _ in range(count)
    ]
    return [random_.choice((one, one, one, 0)) for one in made] if various else made[:1] * count


def run(folder: Path, count: int, seed: int = 0) -> int:
    """Runs all kernels with random shapes; 1 if a result is wrong."""
    from fly.call.loading import load

    rows = json.loads((folder / "cases.json").read_text())
    random_, wrong, worst = random.Random(seed), 0, {}
    torch.manual_seed(seed)
    for row in rows:
        compiled = load(str(folder / row["file"]))
        for _ in range(count):
            given = Inputs(random_, row)
            errors = judged(compiled, given, row)
            key = row["what"], row["kind"]
            worst[key] = max(worst.get(key, 0.0), errors[0])
            if not (errors[0] <= ERRORS[row["kind"]] and errors[1] < 1e-4):
                wrong += 1
                print("wrong:", errors, given.name, row, flush=True)
    print(f"{len(rows)} kernels, {len(rows) * count} calls, {wrong} wrong")
    print("greatest errors:", {" ".join(key): f"{error:.1e}" for key, error in worst.items()})
    return int(wrong > 0)


def judged(compiled: Any, given: Inputs, row: dict[str, Any]) -> tuple[float, float]:
    """The greatest error, as a share of the greatest number where that is above 1, and that of the
    logarithms of sums; infinite where something is infinite or NaN that should not be."""
    backward, causal = row["what"].endswith("backward"), row["causal"]
    own = given.q, given.k, given.v
    error = of_sums = 0.0
    right = torch.zeros_like(given.q, dtype=torch.float64), given.d_sums.double().clone()
    parts = []
    for batch, at_q, at_k in given.spans:
        at = slice(batch, batch + 1)
        wide = [
            one[at, :, span].double() for one, span in zip(own, (at_q, at_k, at_k), strict=True)
        ]
        parts.append((at, at_q, at_k, wide))
        right[0][at, :, at_q], right[1][at, :, at_q] = expected(*wide, given.scale, causal)
    if not backward:
        out, sums = compiled(*own, given.scale, *given.places)
        for at, at_q, _, _ in parts:
            error = max(error, _share(out[at, :, at_q], right[0][at, :, at_q]))
            found, exact = sums[at, :, at_q].double(), right[1][at, :, at_q]
            same = torch.equal(torch.isneginf(found), torch.isneginf(exact))
            apart = _error(*(torch.where(one.isneginf(), 0.0, one) for one in (found, exact)))
            of_sums = max(of_sums, apart if same else math.inf)
        return error, of_sums
    results = right[0].to(given.q.dtype), right[1].float()
    made = compiled(given.d_out, given.d_sums, *own, *results, given.scale, *given.places)
    for at, at_q, at_k, wide in parts:
        d_out, d_sums = given.d_out[at, :, at_q].double(), given.d_sums[at, :, at_q].double()
        exact = gradients(wide, d_out, d_sums, given.scale, causal)
        for one, span, of in zip(made, (at_q, at_k, at_k), exact, strict=True):
            error = max(error, _share(one[at, :, span], of))
    return error, of_sums


def _share(found: Any, exact: Any) -> float:
    return _error(found, exact) / max(1.0, _error(exact, torch.zeros_like(exact)))


def _error(found: Any, exact: Any) -> float:
    if not exact.numel():
        return 0.0
    return torch.nan_to_num((found.double() - exact).abs(), math.inf).max().item()


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
