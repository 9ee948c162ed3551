"""Times of `fly.kernels.flash_attention` and its gradients on an H200 beside torch's: cuDNN's and
FlashAttention's.

    python -m h200.attentions prepare FOLDER           compiles; needs no GPU
    python -m h200.attentions run FOLDER RESULTS.json  measures
    python -m h200.attentions table RESULTS.json       writes the table of results/h200.md

As `h200.products`. There are 16384 queries in all, heads of 64 and 128 elements that together have
2048, and products that causal attention leaves out are not counted. Gradients count as 2.5 times
the work of results: five products instead of two. Torch's operators are called directly, so that
gradients are measured alone. Where heads share keys and values, they are repeated for torch's.
"""

from __future__ import annotations

import json
import os
import random
import sys
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from h200.library import _argument, recorded
from h200.peers.attention_peers import PEERS, of_packed
from h200.products import seconds
from h200.sections import commands

QUERIES, WIDTH = 16384, 2048
HEAD = "## Attention\n"
TITLES = {
    "forward": "Results",
    "backward": "Gradients of q, k and v",
    "packed": "Packed sequences of 64 to 2048 rows, beside FlashAttention",
}


class Attention(NamedTuple):
    """Heads of `d` elements, of which `shared` share keys and values, sequences of `length` queries
    and keys; 0: packed ones of various lengths."""

    d: int
    length: int
    causal: bool
    backward: bool = False
    shared: int = 1

    @property
    def name(self) -> str:
        words = [f"head {self.d}", str(self.length or "packed")]
        words += ["causal"] * self.causal + ["backward"] * self.backward
        return ", ".join(words + [f"{self.shared} share"] * (self.shared > 1))

    @property
    def part(self) -> str:
        """Of the table."""
        return "packed" if not self.length else "backward" if self.backward else "forward"

    @property
    def starts(self) -> list[int]:
        """Of packed sequences."""
        made = random.Random(0)
        lengths: list[int] = []
        while sum(lengths) < QUERIES:
            lengths.append(min(made.randint(64, 2048), QUERIES - sum(lengths)))
        return [0, *accumulate(lengths)]

    @property
    def flops(self) -> float:
        spans = pairwise(self.starts) if not self.length else [(0, self.length)]
        many = 1 if not self.length else QUERIES // self.length
        squares = many * sum((end - start) ** 2 for start, end in spans)
        return 4 * squares * WIDTH / (2 if self.causal else 1) * (2.5 if self.backward else 1)

    def inputs(self, make: Any) -> list[torch.Tensor]:
        """q, k and v; before them the gradients of both results, and behind them these. Packed
        sequences' starts follow v."""
        heads = WIDTH // self.d
        if self.length:
            of_q = [QUERIES // self.length, heads, self.length, self.d]
            of_k, sums = [of_q[0], heads // self.shared, *of_q[2:]], of_q[:3]
        else:
            of_q, sums = [QUERIES, heads, self.d], [heads, QUERIES]
            of_k = [QUERIES, heads // self.shared, self.d]
        q, k, v = (make(shape).bfloat16() for shape in (of_q, of_k, of_k))
        place = torch.tensor(self.starts, dtype=torch.int32, device=q.device)
        starts = [] if self.length else [place, place.clone()]
        if not self.backward:
            return [q, k, v, *starts]
        made = make(of_q).bfloat16(), torch.zeros(sums, device=q.device)
        return [*made, q, k, v, *starts, torch.empty_like(q), torch.empty_like(made[1])]

    def ours(self, *inputs: Any) -> Any:
        from fly import kernels

        name = "flash_attention" + ("_varlen" if not self.length else "")
        call = getattr(kernels, name + ("_backward" if self.backward else ""))
        return call(*inputs, self.causal)


FORWARD = tuple(
    Attention(d, length, causal)
    for d in (64, 128)
    for causal in (False, True)
    for length in (1024, 4096, 16384)
)
CASES = (
    *FORWARD,
    *(one._replace(backward=True) for one in FORWARD),
    *(
        Attention(128, 4096, causal, backward, 4)
        for backward in (False, True)
        for causal in (False, True)
    ),
    *(Attention(d, 0, True, backward) for backward in (False, True) for d in (64, 128)),
)


def prepare(folder: Path) -> None:
    """Writes an image for each kernel, and cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, files = [], {}
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        for case in CASES:
            compiled, arguments = recorded(case, case.inputs(torch.empty))  # type: ignore[arg-type]
            file = files.setdefault(compiled.image.digest, f"{len(files)}.image")
            compiled.save(folder / file)
            rows.append({"name": case.name, "file": file, "arguments": arguments})
            print(case.name, file, flush=True)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each case."""
    from fly.call.loading import load

    torch.manual_seed(0)
    rows = []
    documents = {row["name"]: row for row in json.loads((folder / "cases.json").read_text())}
    for case in CASES:
        row = documents[case.name]
        inputs = case.inputs(partial(torch.randn, device="cuda"))
        peers, results = _peers(case, inputs)
        for own, made in zip(inputs[-2:], results, strict=False) if case.backward else ():
            own.copy_(made.reshape(own.shape))
        compiled = load(str(folder / row["file"]))
        arguments = [_argument(one, inputs) for one in row["arguments"]]
        ways = {"ours": partial(compiled, *arguments), **peers}
        exact = _exact(case, inputs)
        found: dict[str, Any] = {"name": case.name, "part": case.part, "errors": {}}
        for name, call in ways.items():
            found["errors"][name] = _error(case, call(), exact)
        for name, times in seconds(ways).items():
            low, _, high = quantiles(times, n=4)
            found[name] = [case.flops / t / 1e12 for t in (median(times), high, low)]
        rows.append(found)
        print(found, flush=True)
        del inputs, arguments, ways, peers, results, compiled, exact
        torch.cuda.empty_cache()
    return rows


def _peers(case: Attention, inputs: list[torch.Tensor]) -> tuple[dict[str, Any], Any]:
    """Torch's calls by name, and its results and the logarithms of their sums."""
    d_out = inputs[0] if case.backward else None
    q, k, v, *starts = inputs[2:-2] if case.backward else inputs
    if starts:
        longest = max(end - start for start, end in pairwise(case.starts))
        calls, results = of_packed(d_out, q, k, v, starts[0], longest, case.causal)
        return {"flash": calls}, results
    k, v = (one.repeat_interleave(case.shared, 1) for one in (k, v))
    made = {name: peer(d_out, q, k, v, case.causal) for name, peer in PEERS.items()}
    return {name: call for name, (call, _) in made.items()}, made["flash"][1]


def _exact(case: Attention, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """In f64, of the first head of the first sequence: the result; or the gradients of q and, if no
    other head shares them, of k and v."""
    q, k, v = inputs[2:5] if case.backward else inputs[:3]
    first = [_first(case, one) for one in (q, k, v)]
    q, k, v = first
    scores = q @ k.T / case.d**0.5
    if case.causal:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
    weights = torch.softmax(scores, -1)
    if not case.backward:
        return [weights @ v]
    d_out = _first(case, inputs[0])
    d_weights = d_out @ v.T
    d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdim=True)) / case.d**0.5
    made = [d_scores @ k, d_scores.T @ q, weights.T @ d_out]
    return made if case.shared == 1 else made[:1]


def _first(case: Attention, x: torch.Tensor) -> torch.Tensor:
    """The first head of the first sequence. Our kernels take packed ones by heads."""
    if case.length or x.dim() == 4:
        return x[0, 0, : case.length or case.starts[1]].double()
    return x[: case.starts[1], 0].double()


def _error(case: Attention, made: Any, exact: list[torch.Tensor]) -> float:
    """The greatest error, as a share of the greatest number."""
    made = made if isinstance(made, tuple | list) else (made,)
    errors = [
        ((_first(case, one) - right).abs().max() / right.abs().max()).item()
        for one, right in zip(made, exact, strict=False)
    ]
    return max(errors)


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown: a table for each part."""
    lines = [
        f"{HEAD}\n{', '.join(document['about'].values())}. bf16. TFLOP/s: medians, and quartiles."
        " Errors as above.\n"
    ]
    for part, title in TITLES.items():
        lines.append(
            f"\n{title}:\n\n"
            "| | ours | quartiles | cuDNN | FlashAttention | of the best | error | theirs |\n"
            "|---|---:|---|---:|---:|---:|---:|---:|\n"
        )
        for row in document["rows"]:
            if row["part"] == part:
                lines.append(_line(row))
    return "".join(lines)


def _line(row: dict[str, Any]) -> str:
    middle, low, high = row["ours"]
    peers = {name: row[name][0] for name in PEERS if name in row}
    shown = " | ".join(f"{peers[name]:,.0f}" if name in peers else "–" for name in PEERS)
    best = max(peers, key=peers.__getitem__)
    errors = " | ".join(f"{row['errors'][name]:.1e}" for name in ("ours", best))
    return (
        f"| {row['name']} | {middle:,.0f} | {low:,.0f}–{high:,.0f} | {shown}"
        f" | {middle / peers[best]:.3f} | {errors} |\n"
    )


def main(words: list[str]) -> int:
    return commands(words, __doc__, prepare, measure, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
