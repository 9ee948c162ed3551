"""Compiles the libraries and the C program into a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fly_link.shared import building
from library_support.functions import row_sums, saxpy

TARGETS = ("sm_80", "sm_90a")


def prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for function in (saxpy, row_sums):
        images = [function.compile(target=target).data for target in TARGETS]
        made = building.make(images, TARGETS, for_cpu=True)
        (folder / f"lib{function.name}.so").write_bytes(made.data)
        (folder / f"{function.name}.h").write_text(made.header)
    # Code for AMD's GPUs only: what a call with CUDA's tensors is told.
    foreign = folder / "foreign"
    foreign.mkdir(exist_ok=True)
    made = building.make([saxpy.compile(target="gfx942").data], ["gfx942"])
    (foreign / "libsaxpy.so").write_bytes(made.data)
    program = Path(__file__).with_name("program.c")
    # The program finds the libraries beside it, wherever the folder is.
    flags = ["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{folder}", f"-L{folder}"]
    linked = ["-Wl,-rpath,$ORIGIN", "-lsaxpy", "-lrow_sums", "-ldl", "-lpthread"]
    subprocess.run(["cc", *flags, program, *linked, "-o", folder / "program"], check=True)
    print(folder / "program")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("python -m h200_library FOLDER")
    prepare(Path(sys.argv[1]))
