"""Images of the plans of a product, and the rates of plans in turn, for benchmarks of options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from unittest.mock import patch

from h200.products import seconds

PLANNED = "as planned"


class _Recorded(Exception):
    """Ends a call before it runs anything."""


def compiled_for(function: Any, *given: Any) -> Any:
    """The compiled code of a call of a `@fly.jit` function, which is not run."""
    from fly.call.compiled import Compiled

    seen: list[Compiled] = []

    def record(self: Any, *_: Any, **__: Any) -> Any:
        seen.append(self)
        raise _Recorded

    with patch.object(Compiled, "run_viewed", record), suppress(_Recorded):
        function(*given)
    return seen[0]


def write(
    folder: Path, cases: Iterable[tuple[Any, dict[str, Any]]], compiled: Callable[[Any], Any]
) -> None:
    """Writes an image for each plan, as `compiled` makes it, and cases.json: the extents of each
    case, and the files of its plans by their names."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    files: dict[Any, str] = {}
    for extents, plans in cases:
        for plan in plans.values():
            if plan not in files:
                files[plan] = f"{len(files)}.image"
                compiled(plan).save(folder / files[plan])
        rows.append({"extents": extents, "files": {n: files[plan] for n, plan in plans.items()}})
    (folder / "cases.json").write_text(json.dumps(rows, indent=1))
    print(len(files), "kernels")


def rates(flops: float, ways: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """The median and quartiles of the rate of each way, in TFLOP/s; they take turns."""
    found = {}
    for name, times in seconds(ways).items():
        low, _, high = quantiles(times, n=4)
        found[name] = [flops / t / 1e12 for t in (median(times), high, low)]
    return found


def table(document: dict[str, Any]) -> str:
    """The medians and quartiles, as Markdown; products with the same options together."""
    lines = [f"{', '.join(document['about'].values())}. TFLOP/s: medians, quartiles below.\n"]
    before: list[str] = []
    for row in document["rows"]:
        names = [name for name in row if name not in ("name", "errors")]
        if names != before:
            lines += [f"\n| product | {' | '.join(names)} |\n", f"|---|{'---:|' * len(names)}\n"]
            before = names
        rates = (f"{row[name][0]:,.0f}" for name in names)
        lines.append(f"| {row['name']} | {' | '.join(rates)} |\n")
        spread = (f"{row[name][1]:,.0f}–{row[name][2]:,.0f}" for name in names)
        lines.append(f"| | {' | '.join(spread)} |\n")
    return "".join(lines)
