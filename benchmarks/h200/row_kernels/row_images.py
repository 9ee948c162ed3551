"""What `h200.row_widths` measures: compiled here, and called there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from h200.library import _argument, recorded
from h200.row_kernels.row_cases import CASES, WIDTHS, Case
from h200.row_kernels.row_choices import variants

TARGET = "sm_90a"


def each() -> Iterator[tuple[Case, int]]:
    for case in CASES:
        for columns in WIDTHS:
            yield case, columns


def prepare(folder: Path, tries: str, only: str = "", width: str = "") -> None:
    """Writes the images, and cases.json; or cases-ONLY.json of one kernel, cases-ONLY-WIDTH.json of
    one width. tries: what is shipped, if it is empty; all plans for "try", and those of clusters
    beside what is shipped for "clusters"."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with patch.dict(os.environ, FLY_TARGET=TARGET, FLY_ASSERTS="0"):
        for case, columns in each():
            if only not in ("", case.name) or width not in ("", str(columns)):
                continue
            inputs = case.empty(columns)
            for name, shipped_as, context in _ways(case, columns, tries):
                with context as own:
                    made = (
                        patched(case, own) if callable(own) and not isinstance(own, dict) else case
                    )
                    compiled, arguments = recorded(made, inputs)  # type: ignore[arg-type]
                file = f"{compiled.image.digest[:24]}.image"
                if not (folder / file).exists():
                    compiled.save(folder / file)
                row = {"case": case.name, "columns": columns, "name": name, "ship": shipped_as}
                row |= {"file": file, "arguments": arguments, "asserts": False}
                rows.append(row)
            print(case.name, columns, len(rows), flush=True)
    name = "-".join(filter(None, ("cases", only, width)))
    (folder / f"{name}.json").write_text(json.dumps(rows))


def _ways(case: Case, columns: int, tries: str) -> Iterator[tuple[str, list[int], Any]]:
    if tries == "try" or case.name == "transpose":
        yield from variants(case, columns)
        return
    yield from shipped()
    if tries and case.name != "rotary_embedding":
        yield from variants(case, columns, clusters=True)


def shipped() -> Iterator[tuple[str, list[int], Any]]:
    yield "shipped", [], nullcontext()


def patched(case: Case, ours: Callable[..., Any]) -> Case:
    from dataclasses import replace

    return replace(case, ours=ours)


def documents(folder: Path) -> list[dict[str, Any]]:
    return [
        row for path in sorted(folder.glob("cases*.json")) for row in json.loads(path.read_text())
    ]


def prepared(folder: Path) -> list[tuple[Case, int, list[dict[str, Any]]]]:
    """The kernels and widths of a folder, with what it has of each."""
    documented = documents(folder)
    found = [
        (
            case,
            columns,
            [r for r in documented if (r["case"], r["columns"]) == (case.name, columns)],
        )
        for case, columns in each()
    ]
    return [one for one in found if one[2]]


def ours(folder: Path, rows: list[dict[str, Any]], inputs: list[torch.Tensor]) -> dict[str, Any]:
    """Our calls, by their names."""
    from fly.call.loading import load

    found = {}
    for row in rows:
        compiled = load(str(folder / row["file"]))
        found[f"ours|{row['name']}"] = partial(
            compiled, *(_argument(one, inputs) for one in row["arguments"])
        )
    return found
