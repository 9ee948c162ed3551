"""An image's LLVM IR → a shared library for this host, which is cached.

    bitcode → object (fly_cpu.building) → ld.lld -shared

The key of the library is a digest of the bitcode, of the kernels' arguments, of these sources and
of LLVM. With FLY_CPU_KEEP=DIR the module and the library are also left in a folder, for debuggers.
"""

from __future__ import annotations

import _ctypes
import ctypes
import functools
import hashlib
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from fly_common.errors import InputError, MissingError
from fly_cpu import building, section
from fly_host.native import library as native_library
from fly_host.native.unavailable import Unavailable
from fly_image.image import Image
from fly_store import built_library, identity

KEEP = "FLY_CPU_KEEP"
# Flags of that level (x86-64 psABI, "micro-architecture levels"), as /proc/cpuinfo spells them.
_NEEDS = "avx avx2 bmi1 bmi2 f16c fma abm movbe"


@functools.cache
def check_host() -> None:
    """MissingError on a host for which there is no runtime."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        raise MissingError(
            f"the device cpu does not run on {platform.machine()} with {platform.system()}",
            hint="it runs on x86-64 with Linux",
        )
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    lacking = [flag for flag in _NEEDS.split() if flags and flag not in flags[1].split()]
    if lacking:
        raise MissingError(
            f"the device cpu needs an {building.PROCESSOR} processor; this one lacks"
            f" {', '.join(lacking)}",
            hint="run on an x86-64 processor with AVX2, FMA and F16C (any since 2015)",
        )


def obtain(image: Image, sanitized: bool = False, strict: bool = False) -> bytes:
    """Returns the library for an image, a cached one if there is one. A `sanitized` one needs
    AddressSanitizer's run-time library; a `strict` one finds races on shared memory."""
    bitcode = section.bitcode(image)
    offsets = building.offsets(image)
    key = hashlib.sha256(
        repr((building.sources(), identity.program("llc"), offsets, sanitized, strict)).encode()
    )
    key.update(bitcode)
    name = f"cpu-{key.hexdigest()[:32]}.so"
    noun = "code for the host processor"
    recipe = built_library.Recipe(
        name, lambda: build(bitcode, offsets, sanitized, strict), noun, "about 1 s"
    )
    return built_library.obtain(recipe)


def build(
    bitcode: bytes,
    offsets: Mapping[str, Sequence[int]],
    sanitized: bool = False,
    strict: bool = False,
) -> bytes:
    """Compiles and links the library."""
    link = ["-shared", "-z", "now", "-z", "noexecstack", "--build-id=none", "-o", "-", "/dev/stdin"]
    # By this table a report finds the callers on the stack.
    link += ["--eh-frame-hdr"] if sanitized else []
    module = building.module(bitcode, offsets, sanitized, strict)
    made = building.object_code(module, sanitized)
    return building.run("ld.lld", link, made)


def opened(data: bytes, name: str, number: int, sanitized: bool = False) -> ctypes.CDLL:
    """Loads a copy of a library, with variables of its own."""
    folder = os.environ.get(KEEP)
    try:
        _mathematics()
        if not folder and sanitized:
            return _Readable(data)
        if not folder:
            return native_library.opened(data)
        # A debugger reads symbols from the file.
        path = Path(folder, f"{name}-{os.getpid()}-{number}.so")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        return ctypes.CDLL(str(path.absolute()))
    except (OSError, Unavailable) as error:
        unknown = re.search(r"undefined symbol: (\S+)", str(error))
        if unknown:
            raise InputError(f"the host has no function {unknown[1]}, which is called") from None
        raise MissingError(f"code for the device cpu can't be loaded: {error}") from None


class _Readable(ctypes.CDLL):
    """A library whose file other programs can read as long as it is loaded: those in which
    AddressSanitizer looks names and lines up."""

    def __init__(self, data: bytes):
        self.file, _ = built_library.in_memory(data)
        try:
            super().__init__(f"/proc/{os.getpid()}/fd/{self.file}")
        except OSError:
            os.close(self.file)
            raise


def close(library: ctypes.CDLL) -> None:
    """Unloads a library."""
    _ctypes.dlclose(library._handle)
    if isinstance(library, _Readable):
        os.close(library.file)  # not earlier: the loader knows libraries by their paths


@functools.cache
def _mathematics() -> ctypes.CDLL:
    """The C library's mathematics, where generated code finds its functions."""
    return ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
