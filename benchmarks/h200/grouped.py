"""Times of `fly.kernels.grouped_matmul` on an H200 beside one plain product of the same work.

    python -m h200.grouped prepare FOLDER           compiles; needs no GPU
    python -m h200.grouped run FOLDER RESULTS.json  checks, and measures
    python -m h200.grouped check FOLDER [COUNT]     checks random groups, and measures nothing
    python -m h200.grouped table RESULTS.json       writes the section of benchmarks/results/h200.md

The plain product is all rows times one of the matrices: by `matmul`, and by cuBLAS. torch's own
grouped product is measured too, where torch has one. How long groups are is on the device only, and
`RAGGED` says how they are made: with a share of empty ones.
"""

from __future__ import annotations

import json
import os
import random
import sys
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from h200.library import _argument, recorded
from h200.products import seconds
from h200.sections import commands

HEAD = "## Products of groups of rows\n"
BF16 = torch.bfloat16
CHECKS = 40  # random groups for each kernel
TILE = 128  # rows, by the plans of all cases


class Groups(NamedTuple):
    """`groups` of `m` rows in all, each times a k × n matrix. form: "nt" where the matrices are the
    transposes of n × k ones. ragged: whether groups are of random lengths, a quarter of them
    empty."""

    groups: int
    m: int
    n: int
    k: int
    form: str
    ragged: bool

    @property
    def name(self) -> str:
        kind = "ragged" if self.ragged else "equal"
        return f"{self.groups} {kind} groups, {self.m}×{self.n}×{self.k} {self.form}"

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    def operands(self, place: str) -> list[torch.Tensor]:
        """A and B."""
        new = partial(torch.empty if place == "cpu" else torch.randn, device=place, dtype=BF16)
        a = new((self.m, self.k))
        if self.form == "nt":
            return [a, new((self.groups, self.n, self.k)).mT]
        return [a, new((self.groups, self.k, self.n))]

    def ends(self, seed: int = 0) -> list[int]:
        """The ends of groups."""
        if not self.ragged:
            return [self.m * (i + 1) // self.groups for i in range(self.groups)]
        random_ = random.Random(seed)
        shares = [random_.random() * (random_.random() > 0.25) for _ in range(self.groups)]
        shares[random_.randrange(self.groups)] += 0.5
        ends = [round(self.m * sum(shares[: i + 1]) / sum(shares)) for i in range(self.groups)]
        return [*ends[:-1], self.m]

    @property
    def filled(self) -> float:
        """The share of the rows of tiles that are rows of groups: a group's last tile has others
        besides."""
        ends = self.ends()
        tiles = sum(-(-(j - i) // TILE) for i, j in zip([0, *ends[:-1]], ends, strict=True))
        return self.m / (tiles * TILE)


CASES = tuple(
    Groups(groups, m, n, k, form, ragged)
    for groups, m, n, k in (
        (8, 8192, 8192, 4096),
        (8, 16384, 4096, 7168),
        (64, 32768, 2048, 4096),
        (16, 4096, 4096, 4096),
    )
    for form, ragged in (("nt", False), ("nt", True), ("nn", True))
)


def grouped(a: Any, b: Any, offsets: Any) -> Any:
    from fly.kernels import grouped_matmul

    return grouped_matmul(a, b, offsets)


def plain(a: Any, b: Any) -> Any:
    from fly.kernels import matmul

    return matmul(a, b[0])


class _Call(NamedTuple):
    ours: Any


def prepare(folder: Path) -> None:
    """Writes the images, and cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, files = [], {}
    with patch.dict(os.environ, FLY_TARGET="sm_90a"):
        for case in CASES:
            a, b = case.operands("cpu")
            row: dict[str, Any] = {"name": case.name}
            offsets = torch.tensor(case.ends(), dtype=torch.int32)
            for way, ours, inputs in (
                ("grouped", grouped, [a, b, offsets]),
                ("plain", plain, [a, b]),
            ):
                compiled, arguments = recorded(_Call(ours), inputs)  # type: ignore[arg-type]
                file = files.setdefault(compiled.image.digest, f"{len(files)}.image")
                compiled.save(folder / file)
                row[way] = {"file": file, "arguments": arguments}
            rows.append(row)
            print(case.name, flush=True)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))


def exact(a: torch.Tensor, b: torch.Tensor, ends: list[int]) -> torch.Tensor:
    """The result in f64, as f32."""
    starts = [0, *ends[:-1]]
    parts = [
        (a[i:j].double() @ b[g].double()).float()
        for g, (i, j) in enumerate(zip(starts, ends, strict=True))
    ]
    return torch.cat(parts)


def call(folder: Path, row: dict[str, Any], inputs: list[torch.Tensor]) -> Any:
    from fly.call.loading import load

    arguments = [_argument(one, inputs) for one in row["arguments"]]
    return partial(load(str(folder / row["file"])), *arguments)


def error(made: torch.Tensor, right: torch.Tensor) -> float:
    """The greatest error, as a share of the greatest result."""
    made = made.reshape(right.shape).float()
    return ((made - right).abs().max() / right.abs().max()).item()


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each case."""
    torch.manual_seed(0)
    documents = {row["name"]: row for row in json.loads((folder / "cases.json").read_text())}
    rows = []
    for case in CASES:
        a, b = case.operands("cuda")
        ends = case.ends()
        offsets = torch.tensor(ends, dtype=torch.int32, device="cuda")
        document = documents[case.name]
        ways = {
            "grouped": call(folder, document["grouped"], [a, b, offsets]),
            "plain": call(folder, document["plain"], [a, b]),
            "cuBLAS": partial(torch.mm, a, b[0]),
        }
        right = exact(a, b, ends)
        try:
            other = torch._grouped_mm(a, b, offs=offsets)
            assert error(other, right) < 0.02
            ways["torch"] = partial(torch._grouped_mm, a, b, offs=offsets)
        except (AttributeError, RuntimeError, AssertionError) as why:
            print("torch's grouped product:", repr(why)[:200])
        found: dict[str, Any] = {"name": case.name, "error": error(ways["grouped"](), right)}
        del right
        for way, times in seconds(ways).items():
            low, _, high = quantiles(times, n=4)
            found[way] = [case.flops / t / 1e12 for t in (median(times), high, low)]
        rows.append(found)
        print(found, flush=True)
        del a, b, ways
        torch.cuda.empty_cache()
    return rows


def check(folder: Path, count: int = CHECKS) -> int:
    """Random groups by each kernel, beside f64; 1 if a result is wrong."""
    wrong, worst, tried = 0, 0.0, 0
    random_ = random.Random(1)
    documents = {row["name"]: row for row in json.loads((folder / "cases.json").read_text())}
    torch.manual_seed(1)
    for case in CASES:
        if not case.ragged:
            continue
        for seed in range(count):
            groups, m = random_.randint(1, 20), random_.choice((1, 7, 130, 700, 1500))
            n, k = 8 * random_.randint(1, 60), 8 * random_.randint(1, 60)
            if seed % 2:  # the steps of the last tiles may be divided
                n, k = 4 * n, 10 * k
            one = Groups(groups, m, n, k, case.form, True)
            a, b = one.operands("cuda")
            ends = one.ends(seed)
            offsets = torch.tensor(ends, dtype=torch.int32, device="cuda")
            from fly.call.loading import load

            made = load(str(folder / documents[case.name]["grouped"]["file"]))(a[None], b, offsets)
            found = error(made, exact(a, b, ends))
            worst, tried = max(worst, found), tried + 1
            if not found < 2.0**-8:
                wrong += 1
                print("wrong:", found, one, ends, flush=True)
    print(f"{tried} products of groups, {wrong} wrong, greatest error {worst:.1e}")
    return int(wrong > 0)


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    about = ", ".join(document["about"].values())
    lines = [
        f"{HEAD}\n{about}. bf16. TFLOP/s: medians, and quartiles. Plain: all rows times one",
        " matrix,\nby `matmul` and by cuBLAS. A quarter of the ragged groups is empty. The error",
        " is the greatest one\nbeside f64, as a share of the greatest result. Filled is the share",
        f" of the rows of tiles of {TILE} rows\nthat are rows of groups: the others are multiplied",
        " in vain.\n\n",
        "| groups | filled | ours | quartiles | plain | of plain | cuBLAS, plain | of it |",
        " torch, grouped | error |\n|---|---:|---:|---|---:|---:|---:|---:|---:|---:|\n",
    ]
    filled = {case.name: case.filled for case in CASES}
    for row in document["rows"]:
        own, low, high = row["grouped"]
        one, cublas = row["plain"][0], row["cuBLAS"][0]
        other = f"{row['torch'][0]:,.0f}" if "torch" in row else "–"
        other += f" | {row['error']:.1e}"
        lines.append(
            f"| {row['name']} | {filled[row['name']]:.3f} | {own:,.0f} | {low:,.0f}–{high:,.0f} "
            f"| {one:,.0f} | {own / one:.3f} | {cublas:,.0f} | {own / cublas:.3f} | {other} |\n"
        )
    return "".join(lines)


def main(words: list[str]) -> int:
    if words[:1] == ["check"] and len(words) in (2, 3):
        return check(Path(words[1]), *map(int, words[2:]))
    return commands(words, __doc__, prepare, measure, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
