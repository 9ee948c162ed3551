"""python -m h200 prepare FOLDER [small] | run FOLDER RESULTS [memory|graphs|launch] | check FOLDER

`memory` and `launch` measure one of the two; `graphs` is `memory` with our kernels in CUDA graphs,
where native launchers can't be made.

`small` prepares small tensors, for `check`, which compares our kernels with torch and measures
nothing; such as under compute-sanitizer."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

SMALL = {"elements": 1 << 16, "rows": 256, "columns": 4096}


def run(folder: Path, results: Path, only: str = "") -> None:
    """Measures, and writes RESULTS/h200.md and RESULTS/h200.json."""
    import torch

    from h200.launches import launching
    from h200.memory import memory_bound

    about = {"Python": platform.python_version(), "torch": torch.__version__}
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        import triton

        about = {"device": torch.cuda.get_device_name(), "Triton": triton.__version__, **about}
        about["CUDA"] = str(torch.version.cuda)
    rows = memory_bound.measure(folder, graphs=only == "graphs") if only != "launch" else []
    write(results, about, rows, {})  # so that no later error loses it
    if has_gpu and only in ("", "launch"):
        write(results, about, rows, launching.measure(folder))
    print((results / "h200.md").read_text())


def write(
    results: Path, about: dict[str, str], rows: list[dict[str, Any]], launches: dict[str, float]
) -> None:
    from h200 import page
    from h200.memory import report

    results.mkdir(parents=True, exist_ok=True)
    page.begin(report.text(about, rows, launches), results / "h200.md")
    document = {"about": about, "rows": rows, "launches": launches}
    (results / "h200.json").write_text(json.dumps(document, indent=1))


def main(words: list[str]) -> int:
    if len(words) in (2, 3) and words[0] == "prepare":
        from h200.memory.preparing import prepare

        prepare(Path(words[1]), **(SMALL if words[2:] == ["small"] else {}))
    elif len(words) == 2 and words[0] == "check":
        from h200.memory.memory_bound import check

        print(f"{check(Path(words[1]))} kernels are right")
    elif len(words) in (3, 4) and words[0] == "run":
        run(Path(words[1]), Path(words[2]), *words[3:])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
