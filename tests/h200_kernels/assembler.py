"""NVIDIA's assembler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path


def find() -> str | None:
    """Returns the path of ptxas: FLY_PTXAS, that of PyPI's package, or that on the PATH."""
    packages = (Path(root, "nvidia/cu13/bin/ptxas") for root in sys.path)
    found = next((str(path) for path in packages if path.is_file()), None)
    return os.environ.get("FLY_PTXAS") or found or shutil.which("ptxas")


def assemble(ptx: bytes, target: str, cubin: Path) -> str:
    """Assembles PTX; returns what ptxas says about registers, spills and the stack. Raises
    AssertionError with its errors."""
    program = find()
    assert program, "ptxas was not found: pip install nvidia-cuda-nvcc"
    source = cubin.with_suffix(".ptx")
    source.write_bytes(ptx)
    words = [program, f"-arch={target}", "-v", str(source), "-o", str(cubin)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def spilled(said: str) -> int:
    """Returns the bytes of spill stores and loads of all kernels."""
    numbers = re.findall(r"(\d+) bytes spill (?:stores|loads)", said)
    assert numbers, said
    return sum(map(int, numbers))


def stack(said: str) -> int:
    """Returns the bytes of stack frames of all functions."""
    return sum(map(int, re.findall(r"(\d+) bytes stack frame", said)))
