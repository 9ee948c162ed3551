"""libdevice: the math functions of f64 that LLVM's code generation does not expand.

convert-math-to-nvvm emits calls of `__nv_*`. Only the functions that are needed are linked here,
as bitcode with internal linkage, so that `opt` can inline them and no later stage depends on the
library.
"""

from __future__ import annotations

import functools
import glob
import os
import re
import sys

from fly_common.errors import InputError, MissingError
from fly_common.programs import toolchain
from fly_target.nvidia.triple import PTX_FEATURE
from fly_target.target import Target

FILE = "libdevice.10.bc"
HOW_TO_GET = (
    "pip install 'fly-filters[cuda]', or install the CUDA toolkit, or set FLY_LIBDEVICE to the path"
    f" of {FILE}"
)
# Folders of the file: in PyPI's packages for CUDA 13 and 12 and in Triton's, below site-packages;
# in a toolkit.
_PACKAGES = (
    "nvidia/cu13/nvvm/libdevice",
    "nvidia/cuda_nvcc/nvvm/libdevice",
    "triton/backends/nvidia/lib",
)
_TOOLKIT = "nvvm/libdevice"

_DECLARED = re.compile(r"^declare [^\n]*@(__nv_\w+)\(", re.MULTILINE)
_GROUP = re.compile(r"^attributes (#\d+) = \{ (.*) \}$", re.MULTILINE)
_DEFINED = re.compile(r"^define [^\n]*\) (?:[^\n]*?)(#\d+)", re.MULTILINE)
_TARGET_WORD = re.compile(r' ?"target-(?:cpu|features)"="[^"]*"')


def needed(text: str) -> tuple[str, ...]:
    """Returns the library functions that a module declares, sorted."""
    return tuple(sorted(set(_DECLARED.findall(text))))


@functools.cache
def file() -> str | None:
    """Returns the library's path: FLY_LIBDEVICE alone if it is set, else that of an installed
    package, else the toolkit's."""
    if chosen := os.environ.get("FLY_LIBDEVICE"):
        return chosen if os.path.isfile(chosen) else None
    folders = [os.path.join(root, name) for root in sys.path if root for name in _PACKAGES]
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    toolkits = [*([home] if home else []), "/usr/local/cuda", *sorted(_others(), reverse=True)]
    folders += [os.path.join(toolkit, _TOOLKIT) for toolkit in toolkits]
    folders += ["/usr/lib/cuda/nvvm/libdevice", "/usr/lib/nvidia-cuda-toolkit/libdevice"]
    paths = (os.path.join(folder, FILE) for folder in folders)
    return next(filter(os.path.isfile, paths), None)


def _others() -> list[str]:
    return glob.glob("/usr/local/cuda-*")


def identity() -> str:
    """Identifies the library for a cache key: path, size and modification time."""
    found = file()
    if found is None:
        return "none"
    status = os.stat(found)
    return f"{found}:{status.st_size}:{status.st_mtime_ns}"


def link(text: str, functions: tuple[str, ...], target: Target) -> str:
    """Links the library functions that the module declares, and their callees, into it.

    MissingError without the library; InputError if it lacks a function or can't be linked.
    """
    found = file()
    if found is None:
        raise MissingError(
            f"{functions[0]} is in NVIDIA's libdevice, which was not found", hint=HOW_TO_GET
        )
    arguments = ["-S", "--only-needed", "--internalize", "-", found]
    # The library's data layout is that of an older LLVM, which llvm-link warns about.
    done = toolchain.run_program("llvm-link", ["--suppress-warnings", *arguments], text.encode())
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(f"linking {found} failed: {said[-1] if said else 'no reason given'}")
    linked = done.stdout.decode()
    if missing := needed(linked):
        raise InputError(f"{found} has no {missing[0]}", hint="a newer release may have it")
    return _for_target(linked, target)


def _for_target(text: str, target: Target) -> str:
    """Sets the target on the linked functions: LLVM inlines only between equal targets."""
    groups = set(_DEFINED.findall(text))
    own = f'"target-cpu"="{target.cpu}" "target-features"="{PTX_FEATURE}"'

    def rewrite(match: re.Match[str]) -> str:
        group, words = match[1], match[2]
        if group not in groups or own in words:
            return match[0]
        return f"attributes {group} = {{ {_TARGET_WORD.sub('', words).strip()} {own} }}"

    return _GROUP.sub(rewrite, text)
