"""Times of `fly.kernels.flash_attention` on an H200 beside torch's: cuDNN's and FlashAttention's.

    python -m h200.attentions prepare FOLDER           compiles; needs no GPU
    python -m h200.attentions run FOLDER RESULTS.json  measures
    python -m h200.attentions table RESULTS.json       writes the table of results/h200.md

As `h200.products`. There are 16384 queries in all, heads of 64 and 128 elements that together have
2048, and products that causal attention leaves out are not counted.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from h200.library import _argument, recorded
from h200.page import put
from h200.products import seconds

QUERIES, WIDTH = 16384, 2048
HEAD = "## Attention\n"
PEERS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


class Attention(NamedTuple):
    """Heads of `d` elements, sequences of `length` queries and keys."""

    d: int
    length: int
    causal: bool

    @property
    def name(self) -> str:
        return f"head {self.d}, {self.length}{', causal' if self.causal else ''}"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return QUERIES // self.length, WIDTH // self.d, self.length, self.d

    @property
    def flops(self) -> float:
        batches, heads, length, d = self.shape
        return 4 * batches * heads * length * length * d / (2 if self.causal else 1)

    def ours(self, q: Any, k: Any, v: Any) -> Any:
        from fly.kernels import flash_attention

        return flash_attention(q, k, v, self.causal)

    def torch(self, peer: Any, q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(peer):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


CASES = tuple(
    Attention(d, length, causal)
    for d in (64, 128)
    for causal in (False, True)
    for length in (1024, 4096, 16384)
)


def prepare(folder: Path) -> None:
    """Writes an image for each kernel, and cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, files = [], {}
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        for case in CASES:
            inputs = [torch.empty(case.shape, dtype=torch.bfloat16) for _ in range(3)]
            compiled, arguments = recorded(case, inputs)  # type: ignore[arg-type]
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
        inputs = [torch.randn(case.shape, device="cuda").bfloat16() for _ in range(3)]
        compiled = load(str(folder / row["file"]))
        arguments = [_argument(one, inputs) for one in row["arguments"]]
        ways = {"ours": partial(compiled, *arguments)}
        ways |= {name: partial(case.torch, peer, *inputs) for name, peer in PEERS.items()}
        exact = _exact(case, *inputs)
        found: dict[str, Any] = {"name": case.name, "errors": {}}
        for name, call in list(ways.items()):
            made = call()
            made = made[0] if isinstance(made, tuple) else made
            error = (made[:1, :1].double() - exact).abs().max() / exact.abs().max()
            found["errors"][name] = error.item()
        for name, times in seconds(ways).items():
            low, _, high = quantiles(times, n=4)
            found[name] = [case.flops / t / 1e12 for t in (median(times), high, low)]
        rows.append(found)
        print(found, flush=True)
        del inputs, arguments, ways, compiled
        torch.cuda.empty_cache()
    return rows


def _exact(case: Attention, q: Any, k: Any, v: Any) -> torch.Tensor:
    """The first head of the first sequence in f64."""
    q, k, v = (one[:1, :1].double() for one in (q, k, v))
    scores = q @ k.transpose(2, 3) / case.d**0.5
    if case.causal:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
    return torch.softmax(scores, -1) @ v


def run(folder: Path, path: Path) -> None:
    """Measures, and writes the rows."""
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"about": about, "rows": measure(folder)}, indent=1) + "\n")


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    lines = [
        f"{HEAD}\n{', '.join(document['about'].values())}. Forward, bf16. TFLOP/s: medians, and"
        " quartiles. Errors as above.\n\n",
        "| | ours | quartiles | cuDNN | FlashAttention | of the best | error | cuDNN's |\n",
        "|---|---:|---|---:|---:|---:|---:|---:|\n",
    ]
    for row in document["rows"]:
        middle, low, high = row["ours"]
        peers = [row[name][0] for name in PEERS]
        shown = " | ".join(f"{rate:,.0f}" for rate in peers)
        errors = " | ".join(f"{row['errors'][name]:.1e}" for name in ("ours", "cuDNN"))
        lines.append(
            f"| {row['name']} | {middle:,.0f} | {low:,.0f}–{high:,.0f} | {shown}"
            f" | {middle / max(peers):.3f} | {errors} |\n"
        )
    return "".join(lines)


def main(words: list[str]) -> int:
    if words[:1] == ["prepare"] and len(words) == 2:
        prepare(Path(words[1]))
    elif words[:1] == ["run"] and len(words) == 3:
        run(Path(words[1]), Path(words[2]))
    elif words[:1] == ["table"] and len(words) == 2:
        put(table(json.loads(Path(words[1]).read_text())))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
