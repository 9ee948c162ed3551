"""Rates of `fly.kernels.paged_attention` on an H200, beside a copy and torch's attention.

    python -m h200.decoding prepare FOLDER           compiles; needs no GPU
    python -m h200.decoding run FOLDER RESULTS.json  checks, and measures
    python -m h200.decoding table RESULTS.json       writes the section of results/h200.md

Decoding reads each key and value once: GB/s counts their bytes. The pages of all sequences are in
random order. Torch has no attention over pages: FlashAttention is measured over the same keys in
the order of sequences, which is another, easier task. Errors are of some sequences beside f64.
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

from h200.library import _argument, recorded
from h200.row_widths import seconds
from h200.sections import commands

HEAD = "## Decoding over pages\n"
PAGE = 16  # keys
CHECKED = 4  # sequences


class Decoding(NamedTuple):
    """Sequences of `length` keys, `heads` query heads that share `kv_heads`, of d elements."""

    sequences: int
    length: int
    heads: int
    kv_heads: int
    d: int

    @property
    def name(self) -> str:
        heads = f"{self.heads} heads on {self.kv_heads} of {self.d}"
        return f"{self.sequences} × {self.length} keys, {heads}"

    @property
    def nbytes(self) -> int:
        return 4 * self.sequences * self.length * self.kv_heads * self.d

    def inputs(self, place: str) -> list[torch.Tensor]:
        """q, the caches, tables and lengths."""
        new = partial(torch.empty if place == "cpu" else torch.randn, device=place)
        pages = self.length // PAGE
        count = self.sequences * pages
        shape = count, PAGE, self.kv_heads, self.d
        q, k, v = (
            new(one).bfloat16() for one in ((self.sequences, self.heads, self.d), shape, shape)
        )
        tables = torch.randperm(count, device=place).int().reshape(self.sequences, pages)
        lengths = torch.full((self.sequences,), self.length, dtype=torch.int32, device=place)
        return [q, k, v, tables, lengths]

    def ours(self, *inputs: Any) -> Any:
        from fly import kernels

        return kernels.paged_attention(*inputs)

    def in_order(self, cache: torch.Tensor, tables: torch.Tensor) -> torch.Tensor:
        """The rows of sequences: sequences × heads × length × d."""
        shape = len(tables), self.length, self.kv_heads, self.d
        return cache[tables.long()].reshape(shape).transpose(1, 2)


CASES = tuple(
    Decoding(*one)
    for one in (
        (64, 4096, 32, 8, 128),
        (8, 32768, 32, 8, 128),
        (64, 4096, 64, 8, 128),
        (32, 4096, 16, 16, 128),
        (256, 1024, 32, 8, 128),
        (64, 8192, 32, 8, 64),
    )
)


def prepare(folder: Path) -> None:
    """Writes the images, and cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, files = [], {}
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        for case in CASES:
            compiled, arguments = recorded(case, case.inputs("cpu"))  # type: ignore[arg-type]
            file = files.setdefault(compiled.image.digest, f"{len(files)}.image")
            compiled.save(folder / file)
            rows.append({"name": case.name, "file": file, "arguments": arguments})
            print(case.name, file, flush=True)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))


def exact(case: Decoding, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The results of some sequences in f64; k and v are in the order of sequences."""
    k, v = (one.repeat_interleave(case.heads // case.kv_heads, 1).double() for one in (k, v))
    scores = (k @ q.double()[..., None])[..., 0] / case.d**0.5
    return (scores.softmax(-1)[..., None, :] @ v)[..., 0, :]


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each case."""
    from fly.call.loading import load

    torch.manual_seed(0)
    rows = []
    for case, row in zip(CASES, json.loads((folder / "cases.json").read_text()), strict=True):
        q, k, v, tables, _ = inputs = case.inputs("cuda")
        arguments = [_argument(one, inputs) for one in row["arguments"]]
        ways: dict[str, Any] = {"ours": partial(load(str(folder / row["file"])), *arguments)}
        some = [case.in_order(one, tables[:CHECKED]) for one in (k, v)]
        right = exact(case, q[:CHECKED], *some)
        made = ways["ours"]().reshape(q.shape)[:CHECKED].double()
        target = torch.empty_like(k)
        ways["copy|"] = partial(target.copy_, k)
        # FlashAttention's own operator takes sequences × length × heads × d.
        in_order = [case.in_order(one, tables).transpose(1, 2).contiguous() for one in (k, v)]
        call = partial(
            torch.nn.functional.scaled_dot_product_attention,
            *(q[:, :, None], *(one.transpose(1, 2) for one in in_order)),
            enable_gqa=True,
        )
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            try:
                call()
                ways["torch"] = call
            except RuntimeError as why:
                print("torch's attention:", repr(why)[:200])
            times = seconds(ways)
        found: dict[str, Any] = {"name": case.name}
        found["error"] = ((made - right).abs().max() / right.abs().max()).item()
        for way, measured in times.items():
            nbytes = 2 * k.numel() * k.element_size() if way == "copy|" else case.nbytes
            low, _, high = quantiles(measured, n=4)
            found[way] = [nbytes / t / 1e9 for t in (median(measured), high, low)]
        rows.append(found)
        print(found, flush=True)
        del q, k, v, tables, inputs, arguments, ways, target, in_order, call, some
        torch.cuda.empty_cache()
    return rows


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    lines = [
        f"{HEAD}\n{', '.join(document['about'].values())}. bf16, pages of {PAGE} keys in random",
        " order. GB/s of keys and values: medians, and\nquartiles; of a copy in turn, bytes read",
        " and written. Torch: FlashAttention of keys that are not in pages.\n\n",
        "| | ours | quartiles | copy | of copy | torch | error |\n",
        "|---|---:|---|---:|---:|---:|---:|\n",
    ]
    for row in document["rows"]:
        own, low, high = row["ours"]
        copy = row["copy|"][0]
        other = f"{row['torch'][0]:,.0f}" if "torch" in row else "–"
        lines.append(
            f"| {row['name']} | {own:,.0f} | {low:,.0f}–{high:,.0f} | {copy:,.0f}"
            f" | {own / copy:.3f} | {other} | {row['error']:.1e} |\n"
        )
    return "".join(lines)


def main(words: list[str]) -> int:
    return commands(words, __doc__, prepare, measure, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
