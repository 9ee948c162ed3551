"""ROCm's device libraries: math functions that LLVM's code generation does not expand.

convert-math-to-rocdl emits calls of `__ocml_*`. Only the functions that are needed are linked here,
as bitcode with internal linkage, so that `opt` can inline them and no later stage depends on the
library. The library reads constants (`__oclc_*`) that describe the target and the accuracy wanted.
They are emitted here as globals instead of linked from the library's own files, which only cover
the chips known to that release.
"""

from __future__ import annotations

import functools
import glob
import os
import re

from fly_common.errors import InputError, MissingError
from fly_common.programs import toolchain
from fly_target.amd.facts import facts_of
from fly_target.amd.triple import CODE_OBJECT_VERSION
from fly_target.target import Target

LIBRARIES = ("ocml.bc", "ockl.bc")
HOW_TO_GET = (
    "install them (Debian: apt-get install rocm-device-libs; ROCm: rocm-device-libs), or set"
    " FLY_DEVICE_LIBS to the directory that contains ocml.bc"
)

_DECLARED = re.compile(r"^declare [^\n]*@(__oc[mk]l_\w+)\(", re.MULTILINE)
_GROUP = re.compile(r"^attributes (#\d+) = \{ (.*) \}$", re.MULTILINE)
_DEFINED = re.compile(r"^define [^\n]*\) (?:[^\n]*?)(#\d+)", re.MULTILINE)
_TARGET_WORD = re.compile(
    r' ?"(?:target-cpu|target-features|amdgpu-[^"]*|uniform-[^"]*)"(?:="[^"]*")?'
)


def needed(text: str) -> tuple[str, ...]:
    """Returns the device library functions that a module declares, sorted."""
    return tuple(sorted(set(_DECLARED.findall(text))))


@functools.cache
def folder() -> str | None:
    """Returns the libraries' folder: FLY_DEVICE_LIBS alone if it is set, else ROCm's or
    Debian's."""
    if chosen := os.environ.get("FLY_DEVICE_LIBS"):
        candidates = [chosen]
    else:
        rocm = os.environ.get("ROCM_PATH", "/opt/rocm")
        within = "lib/llvm/lib/clang/*/lib/amdgcn/bitcode"
        candidates = [
            os.path.join(rocm, "amdgcn", "bitcode"),
            *sorted(glob.glob(os.path.join(glob.escape(rocm), within)), reverse=True),
            *sorted(glob.glob("/usr/lib/*-linux-gnu/amdgcn/bitcode")),
            "/usr/lib/amdgcn/bitcode",
        ]
    return next((path for path in candidates if _is_in(path, LIBRARIES[0])), None)


def _is_in(path: str, name: str) -> bool:
    return os.path.isfile(os.path.join(path, name))


def identity() -> str:
    """Identifies the libraries for a cache key: path, size and modification time of the first."""
    found = folder()
    if found is None:
        return "none"
    status = os.stat(os.path.join(found, LIBRARIES[0]))
    return f"{found}:{status.st_size}:{status.st_mtime_ns}"


def controls(target: Target) -> str:
    """Returns the library's control constants as LLVM IR: full accuracy on this target.

    Names and meanings: ROCm device libraries, doc/OCML.md "Controls" and oclc/inc/oclc.h.
    """
    rows = (
        ("finite_only_opt", "i8", 0),  # infinities and NaNs occur
        ("unsafe_math_opt", "i8", 0),  # no shortcuts
        ("daz_opt", "i8", 0),  # denormals are kept
        ("correctly_rounded_sqrt32", "i8", 1),
        ("wavefrontsize64", "i8", int(target.wave_size == 64)),
        ("ISA_version", "i32", facts_of(target).isa_version),
        ("ABI_version", "i32", CODE_OBJECT_VERSION),
    )
    lines = [f'target triple = "{target.triple}"', f'target datalayout = "{target.data_layout}"']
    lines += [
        f"@__oclc_{name} = hidden local_unnamed_addr addrspace(4) constant {kind} {value}, align 4"
        for name, kind, value in rows
    ]
    return "\n".join(lines) + "\n"


def link(text: str, functions: tuple[str, ...], target: Target) -> str:
    """Links the library functions that the module declares, and their callees, into it.

    MissingError without the libraries; InputError if they lack a function or can't be linked.
    """
    found = folder()
    if found is None:
        raise MissingError(
            f"{functions[0]} is in ROCm's device libraries, which were not found", hint=HOW_TO_GET
        )
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="fly-opt-", suffix=".ll") as control:
        control.write(controls(target))
        control.flush()
        libraries = [os.path.join(found, name) for name in LIBRARIES if _is_in(found, name)]
        # The controls come last: the libraries need them, the kernels do not.
        arguments = ["-S", "--only-needed", "--internalize", "-", *libraries, control.name]
        done = toolchain.run_program("llvm-link", arguments, text.encode())
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(
            f"linking the device libraries in {found} failed:"
            f" {said[-1] if said else 'no reason given'}"
        )
    linked = done.stdout.decode()
    if missing := needed(linked):
        raise InputError(
            f"the device libraries in {found} have no {missing[0]}",
            hint="a newer release of rocm-device-libs may have it; set FLY_DEVICE_LIBS to its"
            " directory",
        )
    return _for_target(linked, target)


def _for_target(text: str, target: Target) -> str:
    """Sets the target on the linked functions: LLVM inlines only between equal targets."""
    groups = set(_DEFINED.findall(text))

    def rewrite(match: re.Match[str]) -> str:
        group, words = match[1], match[2]
        if group not in groups or f'"target-cpu"="{target.cpu}"' in words:
            return match[0]
        kept = _TARGET_WORD.sub("", words)
        return f'attributes {group} = {{ {kept.strip()} "target-cpu"="{target.cpu}" }}'

    return _GROUP.sub(rewrite, text)
