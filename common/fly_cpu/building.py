"""Bitcode → the module for the host → an object.

bitcode → opt (names for values) → rewrite → opt -O2 → llc
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fly_common.errors import FlyError
from fly_common.programs import toolchain
from fly_image.image import Image

from fly_cpu import rewrite, section
from fly_cpu.runtime import sanitizer

PROCESSOR = "x86-64-v3"
_NOTES = re.compile(r'^@fly_notes = .* c"(.*)"$', re.MULTILINE)


@functools.cache
def sources() -> str:
    """A digest of this package, on which every object depends."""
    total = hashlib.sha256()
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        total.update(source.read_bytes())
    return total.hexdigest()


def offsets(image: Image) -> dict[str, list[int]]:
    """The offsets of each kernel's arguments in the packed ones."""
    return {
        name: [argument.offset for argument in kernel.arguments]
        for name, kernel in image.kernels.items()
    }


def module(
    bitcode: bytes,
    offsets: Mapping[str, Sequence[int]],
    sanitized: bool = False,
    strict: bool = False,
) -> str:
    """Returns the module for the host, as text. `offsets`: see there. A `sanitized` one needs
    AddressSanitizer's run-time library. `strict`: see `runtime.races`."""
    return rewrite.rewritten(section.text(bitcode), offsets, sanitized, strict)


def notes(module: str) -> dict[str, Any]:
    """What a module for the host says of itself: see `rewrite`."""
    found = _NOTES.search(module)
    assert found
    data = re.sub(r"\\([0-9A-F]{2})", lambda one: chr(int(one[1], 16)), found[1])
    return json.loads(data.encode("latin-1").rstrip(b"\0"))


def object_code(module: str, sanitized: bool = False) -> bytes:
    """Compiles a module for the host."""
    words = [f"-mcpu={PROCESSOR}", "-o", "-", "-"]
    # The runtime's checks are not yet part of the kernels, and need none.
    passes = ["-passes=asan,default<O2>", *sanitizer.PASS] if sanitized else ["-O2"]
    optimised = run("opt", [*passes, *words], module.encode())
    # Divisions of 128 bits become code, as for a GPU, and not calls of the compiler's library.
    code = ["-O2", "-filetype=obj", "-relocation-model=pic", "-expand-div-rem-bits=64"]
    return run("llc", [*code, *words], optimised)


def run(program: str, words: list[str], data: bytes) -> bytes:
    """Runs one of LLVM's programs on code for the host."""
    done = toolchain.run_program(program, words, data)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise FlyError(
            f"{program} does not accept the code for the device cpu: {said[0] if said else ''}",
            hint="this is a bug in the device or in this LLVM; LLVM 22 is known to work",
        )
    return done.stdout
