"""python -m h200 prepare FOLDER [small] | run FOLDER RESULTS [memory|launch] | check FOLDER

`small` prepares small tensors, for `check`, which compares our kernels with torch and measures
nothing; such as under compute-sanitizer."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

SMALL = {"elements": 1 << 16, "rows": 256, "columns": 4096}


def run(folder: Path, results: Path, only: str = "") -> None:
    """Measures, and writes RESULTS/h200.md and RESULTS/h200.json."""
    import torch

    from h200 import launching, memory_bound, report

    about = {"Python": platform.python_version(), "torch": torch.__version__}
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        import triton

        about = {"device": torch.cuda.get_device_name(), "Triton": triton.__version__, **about}
        about["CUDA"] = str(torch.version.cuda)
    rows = memory_bound.measure(folder) if only != "launch" else []
    launches = launching.measure(folder) if has_gpu and only != "memory" else {}
    results.mkdir(parents=True, exist_ok=True)
    text = report.text(about, rows, launches)
    (results / "h200.md").write_text(text)
    document = {"about": about, "rows": rows, "launches": launches}
    (results / "h200.json").write_text(json.dumps(document, indent=1))
    print(text)


def main(words: list[str]) -> int:
    if len(words) in (2, 3) and words[0] == "prepare":
        from h200.preparing import prepare

        prepare(Path(words[1]), **(SMALL if words[2:] == ["small"] else {}))
    elif len(words) == 2 and words[0] == "check":
        from h200.memory_bound import check

        print(f"{check(Path(words[1]))} kernels are right")
    elif len(words) in (3, 4) and words[0] == "run":
        run(Path(words[1]), Path(words[2]), *words[3:])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
