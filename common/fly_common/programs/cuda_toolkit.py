"""Finds the programs of NVIDIA's CUDA toolkit: ptxas, nvdisasm.

The search order for ptxas is: `FLY_PTXAS` (its path; `none` if there shall be none), the packages
of PyPI (`nvidia-cuda-nvcc`, `nvidia-cuda-nvcc-cu12`, `nvidia-cuda-nvdisasm`; they are not
imported), PATH, `/usr/local/cuda/bin`. The other programs are searched for beside FLY_PTXAS first.
"""

from __future__ import annotations

import functools
import os
import sys

from fly_common.errors import MissingError

VARIABLE = "FLY_PTXAS"
NONE = "none"
# The variables that a search depends on.
VARIABLES = (VARIABLE, "PATH")
FOLDERS = ("nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "nvidia/cuda_nvdisasm/bin")
DEFAULT = "/usr/local/cuda/bin"
HOW_TO_GET = {
    "ptxas": "pip install 'fly-filters[cuda]' (nvidia-cuda-nvcc), or set FLY_PTXAS to its path",
    "nvdisasm": "pip install nvidia-cuda-nvdisasm, or add the CUDA toolkit's bin to PATH",
}


def find_program(name: str) -> str:
    """Returns the path of `name`. Raises MissingError if it is not found."""
    found = find_optional(name)
    if found is None:
        raise MissingError(f"{name} was not found", hint=HOW_TO_GET[name])
    return found


def find_optional(name: str) -> str | None:
    """Returns the path of `name`, or None. Raises MissingError if FLY_PTXAS names no program."""
    chosen = os.environ.get(VARIABLE) or None
    return _find(name, chosen, os.environ.get("PATH"), tuple(sys.path))


@functools.lru_cache(maxsize=32)
def _find(name: str, chosen: str | None, path: str | None, packages: tuple[str, ...]) -> str | None:
    if chosen == NONE and name == "ptxas":
        return None
    if chosen and chosen != NONE:
        if not _is_program(chosen):
            raise MissingError(
                f"{VARIABLE}={chosen} is not a program", hint="unset it, or name ptxas itself"
            )
        if name == "ptxas":
            return chosen
        if _is_program(beside := os.path.join(os.path.dirname(chosen), name)):
            return beside
    for package in packages:
        for folder in FOLDERS:
            if _is_program(inside := os.path.join(package, folder, name)):
                return inside
    from shutil import which

    usual = os.path.join(DEFAULT, name)
    return which(name, path=path) or (usual if _is_program(usual) else None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
