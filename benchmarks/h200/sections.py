"""The commands of benchmarks of one table each: mostly a section of benchmarks/results/h200.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from h200.page import put

Rows = list[dict[str, Any]]


def commands(
    words: list[str],
    usage: str | None,
    prepare: Callable[[Path], None],
    measure: Callable[[Path], Rows],
    table: Callable[[dict[str, Any]], str],
    show: Callable[[str], None] = put,
) -> int:
    """Runs `prepare FOLDER`, `run FOLDER RESULTS.json` or `table RESULTS.json`, and returns the
    exit status. `usage` is printed for other words. The JSON file has the rows of `measure`, and
    what they were measured on. `show` takes the table: it is put on the page, or printed."""
    match words:
        case ["prepare", folder]:
            prepare(Path(folder))
        case ["run", folder, results]:
            _write(Path(results), measure(Path(folder)))
        case ["table", results]:
            show(table(json.loads(Path(results).read_text())))
        case _:
            print(usage, file=sys.stderr)
            return 2
    return 0


def _write(path: Path, rows: Rows) -> None:
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
