"""Compiles the OpenCL sources of opencl/ to code objects, and to a library for the host."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from fly_common.programs import toolchain
from fly_image.amd.code_object import CodeObject

from kernels.cases import CASES

FOLDER = Path(__file__).parent / "opencl"
LEVELS = ("-O0", "-O2", "-O3")
LAYOUT = ("gfx942", "-O3")  # whose argument layout the host's kernels use; every host case has it
# Each operation is rounded once, in every build, so that results are comparable bit for bit.
LANGUAGE = ("-x", "cl", "-cl-std=CL2.0", "-ffp-contract=off", "-w")
# clang keeps a copy of each kernel as a function, for others to call; internal, it costs nothing.
DEVICE = (
    *("-target", "amdgcn-amd-amdhsa", "-nogpulib", "-cl-fp32-correctly-rounded-divide-sqrt"),
    *("-mllvm", "-amdgpu-internalize-symbols"),
)
# Sources that use masks, lanes, private memory and function pointers.
WIDE = {"lanes", "scan", "control", "builtins", "sort", "histogram"}
HOST = ("-target", "x86_64-linux-gnu", "-march=x86-64-v3", "-ffp-contract=off", "-fPIC")


def _clang(*arguments: str, text: str | None = None) -> None:
    clang = str(toolchain.find_program("clang"))
    done = subprocess.run([clang, *arguments], input=text, capture_output=True, text=True)
    assert done.returncode == 0, f"clang {' '.join(arguments)}\n{done.stderr[:4000]}"


def _unit(sources: Iterable[str]) -> str:
    """Returns one translation unit of all: a clang process per file and build would cost a
    minute."""
    return "".join(f'#include "{FOLDER}/{name}.cl"\n' for name in sorted(set(sources)))


@functools.cache
def device(target: str, level: str, wide: bool = False) -> CodeObject:
    """Compiles all kernels that `target` supports at `level`. `wide`: only those of WIDE, for waves
    of 64 lanes on a target that usually has 32."""
    sources = {case.source for case in CASES if target in case.targets}
    options = ("-mwavefrontsize64", "-DWIDE") if wide else ()
    text = _unit(sources & WIDE if wide else sources)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "kernels.hsaco")
        device = (*LANGUAGE, *DEVICE, f"-mcpu={target}", *options)
        _clang(*device, level, "-o", str(made), "-", text=text)
        return CodeObject.parse(made.read_bytes(), f"{target}{level}")


def _entry(name: str, code: CodeObject) -> str:
    """Returns a function that calls the kernel with arguments laid out as on the device."""
    passed = []
    for argument in code.kernel(name).arguments:
        kind = argument.type_name
        if argument.value_kind == "global_buffer":
            kind = f"{argument.address_space} void *"
        passed.append(f"*({kind} *)(a + {argument.offset})")
    return f"void enter_{name}(char *a) {{ {name}({', '.join(passed)}); }}\n"


@functools.cache
def host() -> bytes:
    """Returns a shared library with `enter_NAME(arguments)` for each kernel that can run on the
    host, and host.c's `host_launch`."""
    layout = device(*LAYOUT)
    own = [case for case in CASES if case.host]
    text = _unit(case.source for case in own) + "".join(
        _entry(kernel, layout) for kernel in sorted({case.kernel for case in own})
    )
    with tempfile.TemporaryDirectory() as folder:
        kernels, driver, made = (str(Path(folder, name)) for name in ("k.o", "h.o", "host.so"))
        _clang(*LANGUAGE, *HOST, "-O1", "-c", "-o", kernels, "-", text=text)
        _clang(*HOST, "-O1", "-c", "-o", driver, str(FOLDER / "host.c"))
        lld = toolchain.run_program("ld.lld", ["-shared", kernels, driver, "-o", made], None)
        assert lld.returncode == 0, lld.stderr.decode()
        return Path(made).read_bytes()
