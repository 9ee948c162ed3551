"""Times of `fly.kernels` on an NVIDIA GPU beside torch's, and their share of the roofline.

    python -m h200.library prepare FOLDER [small]     compiles; needs no GPU
    python -m h200.library run FOLDER RESULTS.json    measures
    python -m h200.library table RESULTS.json         writes the table of docs/kernels.md

Each function is called once here, which compiles it for the arguments at hand, and the call is
recorded: its image, and which arguments it has. On the GPU it is repeated in a CUDA graph, as
torch's call is, where a graph can hold both.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch

from fly.call.compiled import Compiled
from h200.library_calls import CALLS, Timed

LARGE = {"rows": 16384, "columns": 8192, "elements": 1 << 27, "edge": 4096}
SMALL = {"rows": 8, "columns": 512, "elements": 4096, "edge": 64}
# The most that an H200 does in a second, by NVIDIA's data sheet: bytes of its memory, operations of
# f32 without tensor cores.
BANDWIDTH, OPERATIONS = 4.8e12, 67e12
PAGE = Path(__file__).parents[2] / "docs" / "kernels.md"
FIRST, LAST = "<!-- benchmarks/h200/library.py -->\n", "<!-- end of times -->\n"


class _Recorded(Exception):
    """Ends a call before it runs anything."""


def recorded(call: Timed, inputs: list[torch.Tensor]) -> tuple[Compiled, list[dict[str, Any]]]:
    """The compiled function of a call of `fly.kernels`, and its arguments in order: views of
    inputs, or numbers."""
    seen: list[tuple[Compiled, dict[str, Any]]] = []

    def record(self: Compiled, given: Any, *_: Any) -> Any:
        seen.append((self, dict(given)))
        raise _Recorded

    with patch.object(Compiled, "run_viewed", record), suppress(_Recorded):
        call.ours(*inputs)
    ((compiled, given),) = seen
    return compiled, [_described(given[name], inputs) for name in compiled.parameter_names]


def _described(value: Any, inputs: list[torch.Tensor]) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor):
        return {"value": value}
    (index, *_) = (i for i, one in enumerate(inputs) if one.data_ptr() == value.data_ptr())
    return {"input": index, "shape": [*value.shape], "strides": [*value.stride()]}


def _argument(row: dict[str, Any], inputs: list[torch.Tensor]) -> Any:
    if "value" in row:
        return row["value"]
    return inputs[row["input"]].as_strided(row["shape"], row["strides"])


def prepare(folder: Path, target: str = "sm_90a", sizes: dict[str, int] = LARGE) -> None:
    """Writes an image for each call, and cases.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with patch.dict(os.environ, FLY_TARGET=target):
        for number, call in enumerate(CALLS):
            compiled, arguments = recorded(call, call.empty(sizes))
            file = f"{number}.image"
            compiled.save(folder / file)
            rows.append({"name": call.name, "file": file, "arguments": arguments})
            print(call.name, flush=True)
    document = {"target": target, "sizes": sizes, "calls": rows}
    (folder / "cases.json").write_text(json.dumps(document, indent=1))


def results(made: Any) -> list[torch.Tensor]:
    """What a call returned; some of several results may be None."""
    return [one for one in (made if isinstance(made, tuple) else (made,)) if one is not None]


def check(call: Timed, found: Any, expected: Any) -> None:
    """AssertionError if a result is not torch's, up to the rounding of bf16. What is compiled
    may have more dimensions, and another result: the places of the greatest elements."""
    for own, right in zip(results(found), results(expected), strict=False):
        own, right = own.double().reshape(right.shape), right.double()
        torch.testing.assert_close(own, right, rtol=call.rtol, atol=call.atol, equal_nan=True)


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.is_floating_point() else x


def cases(folder: Path) -> Any:
    """For each prepared call: itself, a function that makes our call, one that makes torch's, and
    the inputs. Our results have been compared with torch's of the same numbers in f32."""
    from fly.call.loading import load

    document = json.loads((folder / "cases.json").read_text())
    place = "cuda" if document["target"].startswith("sm_") else "cpu"
    for call, row in zip(CALLS, document["calls"], strict=True):
        inputs = call.make(document["sizes"], place)
        compiled = load(str(folder / row["file"]))
        ours = partial(compiled, *(_argument(one, inputs) for one in row["arguments"]))
        torchs = partial(call.torch, *inputs)
        check(call, ours(), call.torch(*map(_wide, inputs)))
        yield call, ours, torchs, inputs
        del inputs, compiled, ours, torchs


def measure(folder: Path) -> list[dict[str, Any]]:
    """A row for each call: the medians of ours and torch's in µs, the bytes of inputs and results,
    and operations where they bound the time."""
    from h200.measuring import seconds
    from h200.memory.memory_bound import _replayed

    rows = []
    for call, ours, torchs, inputs in cases(folder):
        moved = sum(_bytes(one) for one in (*inputs, *results(torchs())))
        ways = {"ours": ours, "torch": torchs}
        if call.captured:
            ways = {name: _replayed(one) for name, one in ways.items()}
        row: dict[str, Any] = {"name": call.name, "bytes": moved, "flops": call.flops(inputs)}
        row |= {name: median(times) * 1e6 for name, times in seconds(ways).items()}
        rows.append(row)
        print(row, flush=True)
        del ways, inputs, ours, torchs
        torch.cuda.empty_cache()
    return rows


def _bytes(tensor: Any) -> int:
    return tensor.numel() * tensor.element_size()


def run(folder: Path, path: Path) -> None:
    """Measures, and writes the rows."""
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"about": about, "rows": measure(folder)}, indent=1) + "\n")


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    lines = ["| call | bytes | µs | rate | of the roofline | torch's µs |\n", "|---" * 6 + "|\n"]
    for row in document["rows"]:
        work, most, unit = row["bytes"], BANDWIDTH, "GB/s"
        if row["flops"]:
            work, most, unit = row["flops"], OPERATIONS, "GFLOP/s"
        rate = work / row["ours"] * 1e6
        lines.append(
            f"| `{row['name']}` | {row['bytes'] / 1e6:,.0f} MB | {row['ours']:,.0f} "
            f"| {rate / 1e9:,.0f} {unit} | {100 * rate / most:.0f} % | {row['torch']:,.0f} |\n"
        )
    return "".join(lines)


def write(document: dict[str, Any]) -> None:
    """Puts the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(FIRST)
    PAGE.write_text(before + FIRST + table(document) + LAST + rest.split(LAST)[1], encoding="utf-8")


def main(words: list[str]) -> int:
    if words[:1] == ["prepare"] and len(words) in (2, 3):
        prepare(Path(words[1]), sizes=SMALL if words[2:] == ["small"] else LARGE)
    elif words[:1] == ["run"] and len(words) == 3:
        run(Path(words[1]), Path(words[2]))
    elif words[:1] == ["table"] and len(words) == 2:
        write(json.loads(Path(words[1]).read_text()))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
