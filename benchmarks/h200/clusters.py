"""How many clusters of blocks a GPU holds, of the kernels of rows that clusters share.

    python -m h200.clusters prepare FOLDER    reads the images in FOLDER; needs no GPU
    python -m h200.clusters run FOLDER        asks the driver

A cluster is on one of the parts of the chip (GPCs), which have different numbers of
multiprocessors, so that some of these may be left over.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

FILE = "clusters.json"
CLUSTER_DIMENSION, DYNAMIC_SHARED = 4, 8  # of CUlaunchAttributeID, of CUfunction_attribute


def prepare(folder: Path) -> None:
    """Writes what is launched in clusters: a row for each different launch."""
    found: dict[tuple[int, ...], dict[str, Any]] = {}
    for path in sorted(folder.glob("*.image")):
        words = ["fly-run", "--inspect", str(path)]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        for part in text.split("\nkernel ")[1:]:
            kernel = part.partition("\n")[0]
            clusters = re.search(r"block +(\d+)×.*clusters of (\d+)×", part)
            if clusters is None:
                continue
            launch = re.search(rf"{kernel}\b[^\n]*\n[^\n]*dynamic shared memory (\d+)", text)
            registers = re.search(r"registers +(\d+)", part)
            static = re.search(r"(\d+) bytes shared", part)
            assert registers is not None, path
            assert static is not None, path
            numbers = (*map(int, clusters.groups()), int(registers[1]))
            shared = int(launch[1]) if launch else 0
            found[*numbers, shared, int(static[1])] = {
                "file": path.name, "kernel": kernel, "threads": numbers[0],
                "cluster": numbers[1], "registers": numbers[2],
                "shared": shared, "static": int(static[1]),
            }  # fmt: skip
    (folder / FILE).write_text(json.dumps(list(found.values()), indent=1))


class _Attribute(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


def resident(driver: Any, folder: Path, row: dict[str, Any]) -> int:
    """How many clusters of a launch run at a time."""
    module, function, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()

    def call(name: str, *given: Any) -> None:
        status = getattr(driver, name)(*given)
        if status:
            raise RuntimeError(f"{name}: {status}")

    call("cuModuleLoadData", ctypes.byref(module), (folder / row["file"]).read_bytes())
    name = row["kernel"].encode()
    call("cuModuleGetFunction", ctypes.byref(function), module, name)
    if row["shared"]:
        call("cuFuncSetAttribute", function, DYNAMIC_SHARED, row["shared"])
    own = _Attribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint * 16)(row["cluster"], 1, 1))
    launch = _Launch(
        (ctypes.c_uint * 3)(row["cluster"] * 1024, 1, 1),
        (ctypes.c_uint * 3)(row["threads"], 1, 1),
        row["shared"],
        None,
        ctypes.pointer(own),
        1,
    )
    call("cuOccupancyMaxActiveClusters", ctypes.byref(count), function, ctypes.byref(launch))
    call("cuModuleUnload", module)
    return count.value


def run(folder: Path) -> None:
    import torch

    torch.zeros(1, device="cuda")  # makes the context
    driver = ctypes.CDLL("libcuda.so.1")
    print("blocks of clusters, threads, registers, bytes of shared memory: clusters, blocks")
    for row in json.loads((folder / FILE).read_text()):
        count = resident(driver, folder, row)
        told = [row[key] for key in ("cluster", "threads", "registers", "shared", "static")]
        print(*told, ":", count, count * row["cluster"], flush=True)


if __name__ == "__main__":
    {"prepare": prepare, "run": run}[sys.argv[1]](Path(sys.argv[2]))
