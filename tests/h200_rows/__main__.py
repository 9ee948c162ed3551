"""See `h200_rows`."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from h200.library import _argument, recorded
from h200.row_kernels.row_cases import CASES
from h200.row_widths import exact, wrong

WIDTHS = (520, 1000, 1024, 2040, 4000, 4096, 6000, 8184, 12000, 16376, 24008, 32760, 40000, 65528)
KERNELS = (
    *("layer_norm_backward", "rms_norm_backward", "softmax_backward"),
    *("layer_norm", "rms_norm"),
)
# Query heads, heads of keys, elements of a head, keys of a page.
DECODED = (
    (8, 8, 64, 16),
    (8, 2, 128, 16),
    (16, 2, 128, 7),
    (6, 2, 32, 3),
    (4, 1, 256, 16),
    (16, 1, 64, 16),
    (24, 2, 128, 16),
)
SEQUENCES, PAGES = 5, 200
ROWS = 8  # that are compiled for: their number is dynamic


class Call(NamedTuple):
    """A function of `fly.kernels` that is called with tensors."""

    ours: Callable[..., Any]


def rows_of(name: str, columns: int, rows: int, place: str) -> tuple[Any, list[torch.Tensor]]:
    """The case of a kernel, and random inputs."""
    (case,) = (one for one in CASES if one.name == name)
    return case, case.make(columns, place, rows * columns)


def pages_of(
    shape: tuple[int, int, int, int], lengths: list[int], place: str
) -> list[torch.Tensor]:
    """q, the caches, tables of pages in random order, and lengths."""
    heads, kv_heads, d, page = shape
    count = SEQUENCES * PAGES
    q = torch.randn(SEQUENCES, heads, d, device=place).bfloat16()
    k, v = (torch.randn(count, page, kv_heads, d, device=place).bfloat16() for _ in range(2))
    tables = torch.randperm(count, device=place).int().reshape(SEQUENCES, PAGES)
    return [q, k, v, tables, torch.tensor(lengths, dtype=torch.int32, device=place)]


def decoded(q: Any, k: Any, v: Any, tables: Any, lengths: Any) -> torch.Tensor:
    """The results in f64."""
    made = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    shared = q.shape[1] // k.shape[2]
    for i, length in enumerate(lengths.tolist()):
        if length:
            keys, values = (
                x[tables[i].long()].flatten(0, 1)[:length].double().repeat_interleave(shared, 1)
                for x in (k, v)
            )
            scores = torch.einsum("hd,nhd->hn", q[i].double(), keys) / q.shape[2] ** 0.5
            made[i] = torch.einsum("hn,nhd->hd", scores.softmax(-1), values)
    return made


def prepare(folder: Path, only: str = "") -> None:
    """Writes the images, and cases.json; of one kernel, or `decoding`, if it is named."""
    from fly import kernels

    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []

    def save(what: dict[str, Any], ours: Callable[..., Any], inputs: list[torch.Tensor]) -> None:
        compiled, arguments = recorded(Call(ours), inputs)  # type: ignore[arg-type]
        file = f"{len(rows)}.image"
        compiled.save(folder / file)
        rows.append({**what, "file": file, "arguments": arguments})
        print(what, flush=True)

    with patch.dict(os.environ, FLY_TARGET="sm_90a", FLY_ASSERTS="0"):
        for name in KERNELS:
            for columns in WIDTHS if only in ("", name) else ():
                case, inputs = rows_of(name, columns, ROWS, "cpu")
                save({"case": name, "columns": columns}, case.ours, inputs)
        for shape in DECODED if only in ("", "decoding") else ():
            inputs = pages_of(shape, [1] * SEQUENCES, "cpu")
            save({"case": "decoding", "shape": shape}, kernels.paged_attention, inputs)
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))


def call(folder: Path, row: dict[str, Any], inputs: list[torch.Tensor]) -> Callable[[], Any]:
    """The compiled function with these inputs, which may have more rows than it was recorded
    with."""
    from fly.call.loading import load

    arguments = []
    for one in row["arguments"]:
        if "input" in one and inputs[one["input"]].ndim == len(one["shape"]):
            arguments.append(inputs[one["input"]])
        else:
            arguments.append(_argument(one, inputs))
    return partial(load(str(folder / row["file"])), *arguments)


def run(folder: Path, count: int) -> int:
    """Compares all kernels with f64, `count` times each: 1 if a result is wrong."""
    random_, bad, tried = random.Random(0), 0, 0
    torch.manual_seed(0)
    for row in json.loads((folder / "cases.json").read_text()):
        for _ in range(count):
            if row["case"] == "decoding":
                shape = tuple(row["shape"])
                lengths = [random_.randint(0, PAGES * shape[3]) for _ in range(SEQUENCES)]
                inputs = pages_of(shape, lengths, "cuda")
                made, right = call(folder, row, inputs)(), decoded(*inputs)
                share = ((made.reshape(right.shape).double() - right).abs().max()).item()
                is_wrong = not share < 2**-6
            else:
                rows = random_.choice((1, random_.randint(2, 300), random_.randint(300, 3000)))
                case, inputs = rows_of(row["case"], row["columns"], rows, "cuda")
                made = call(folder, row, inputs)()
                share = wrong(case, made, exact(case, inputs))
                is_wrong = share > 0
            tried, bad = tried + 1, bad + is_wrong
            if is_wrong:
                told = {key: row[key] for key in row if key not in ("file", "arguments")}
                print("wrong:", told, share, [tuple(one.shape) for one in inputs], flush=True)
    print(f"{tried} calls, {bad} wrong")
    return int(bad > 0)


def main(words: list[str]) -> int:
    if words[:1] == ["prepare"] and len(words) in (2, 3):
        prepare(Path(words[1]), *words[2:])
        return 0
    if words[:1] == ["run"] and len(words) in (2, 3):
        return run(Path(words[1]), int(words[2]) if words[2:] else 10)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
