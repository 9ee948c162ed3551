"""Compiles the variants, and the kernel of the launches, into a folder."""

from __future__ import annotations

import json
from pathlib import Path

ELEMENTS, ROWS, COLUMNS = 1 << 28, 32768, 8192


def prepare(
    folder: Path,
    target: str = "sm_90a",
    elements: int = ELEMENTS,
    rows: int = ROWS,
    columns: int = COLUMNS,
) -> None:
    """Writes FILE.image for each variant, `launch.image`, and `cases.json`."""
    from h200.launches.launched import add
    from h200.memory.variants import variants

    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for variant in variants():
        compiled = variant.make(columns).compile(target=target)
        compiled.save(folder / f"{variant.file}.image")
        (kernel,) = compiled.kernels.values()
        resources = getattr(kernel, "resources", None)
        registers = getattr(resources, "registers", None) or getattr(kernel, "vgpr_count", None)
        found.append(
            {
                "workload": variant.workload,
                "name": variant.name,
                "file": f"{variant.file}.image",
                "shown": variant.shown,
                "registers": registers,
                "shared": kernel.shared_bytes,
            }
        )
        print(f"{variant.workload:14} {variant.name:8} {registers} registers")
    add.compile(target=target).save(folder / "launch.image")
    sizes = {"elements": elements, "rows": rows, "columns": columns}
    document = {"target": target, "sizes": sizes, "variants": found}
    (folder / "cases.json").write_text(json.dumps(document, indent=1))
